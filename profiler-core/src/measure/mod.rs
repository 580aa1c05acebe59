//! Units, scaling, and the text of every number that people see.
//!
//! One number looks the same in a hint, a lens, a table and a sentence only if one place
//! writes it. That place is this module; nothing else multiplies by a thousand, rounds, or
//! appends a unit.
//!
//! * [`Scale`] says what the values of a value type are for people: the unit they are shown
//!   in and the factor to it ([`Unit`] reads the file's word for it).
//! * [`Quantity`] is one value in such a unit: `1.20s`, `49.1MiB`, `15.6k`.
//! * [`Share`] is a value as part of a named whole: `34.0%`; [`PointChange`] the difference
//!   of two shares: `+7.7pp`; [`Heat`] the level a share is drawn with.
//! * [`difference_is_noise`] says whether a difference is more than chance; [`Judged`] what became
//!   of a row, from any number of runs.
//!
//! Every rounding is decided from the exact integers, half away from zero, and never from a
//! text that has been rounded before. A minus is U+2212, which is as wide as a plus.
//!
//! What is not here: how numbers are put together into a label or a row
//! ([`view`](crate::view)), and JSON, whose values are exact, in the unit of the file and
//! never scaled.

mod noise;
mod quantity;
mod share;
mod unit;
mod verdict;

pub use noise::difference_is_noise;
pub use quantity::Quantity;
pub use share::{Heat, PointChange, Share};
pub use unit::{Scale, Unit};
pub use verdict::{Allowance, Judged, RunPair, TELLING_PAIRS, Verdict};

/// The minus of every negative number.
const MINUS: &str = "\u{2212}";
