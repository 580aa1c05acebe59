//! What an editor shows: hints, lenses, hovers, lists, heat, status. One profile serves most
//! tests, made so that the numbers are those of a real program of 3.52 s.

#![allow(clippy::unwrap_used, reason = "a profile that can not be made fails its test")]

mod assistant;
mod filters;
mod hints;
mod hovers;
mod lenses;
mod lists;
mod profiles;
mod status;
mod verdicts;
mod widths;
