//! Sums that take time.

/// Costs twice what [`steady`] does.
pub fn hot(rounds: u64) -> u64 {
    (0..2 * rounds).fold(1, |sum: u64, round| (sum ^ round).wrapping_mul(0x9E37_79B9).rotate_left(7)) // hot
}

/// Costs what it costs.
pub fn steady(rounds: u64) -> u64 {
    (0..rounds).fold(3, |sum: u64, round| (sum ^ round).wrapping_mul(0x85EB_CA6B).rotate_left(9)) // steady
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;

    use super::*;

    #[test]
    fn sums() {
        let rounds = black_box(20_000_000);
        assert_ne!(hot(rounds), steady(rounds));
    }

    #[test]
    fn fails() {
        assert_eq!(hot(black_box(1_000_000)), 7, "it is never seven");
    }

    #[test]
    fn never_ends() {
        while hot(black_box(1_000_000)) != 7 {}
    }
}
