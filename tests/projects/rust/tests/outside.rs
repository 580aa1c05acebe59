//! From outside.

#[test]
fn sums_from_outside() {
    let rounds = std::hint::black_box(20_000_000);
    assert_ne!(hot_sums::hot(rounds), hot_sums::steady(rounds));
}
