//! What an editor shows: hints, lenses, hovers, lists, heat, status. One profile serves most
//! tests, made so that the numbers are those of a real program of 3.52 s.

mod hints;
mod lenses;
mod profiles;
mod widths;
