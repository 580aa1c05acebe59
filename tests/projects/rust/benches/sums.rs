//! A benchmark with a `main` of its own.

fn main() {
    let rounds = std::hint::black_box(20_000_000);
    assert_ne!(hot_sums::hot(rounds), hot_sums::steady(rounds));
}
