//! Sums that take time.

/// Costs twice what [`steady`] does.
#[inline(never)]
pub fn hot(rounds: u64) -> u64 {
    (0..2 * rounds).fold(1, |sum: u64, round| (sum ^ round).wrapping_mul(0x9E37_79B9).rotate_left(7)) // hot
}

/// Costs what it costs.
#[inline(never)]
pub fn steady(rounds: u64) -> u64 {
    (0..rounds).fold(3, |sum: u64, round| (sum ^ round).wrapping_mul(0x85EB_CA6B).rotate_left(9)) // steady
}
