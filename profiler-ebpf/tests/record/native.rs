//! Native programs: complete stacks, known shares.

use crate::recording::{CC, Programs, Recording, possible};

#[test]
fn c_without_frame_pointers() {
    if !possible() {
        return;
    }
    let programs = Programs::new();
    let program = programs.build("shares", "shares.c", CC);
    let mut recording = Recording::of(&program, &["1.5"], 999);
    recording.assert_complete();
    let (twice, once) = (recording.leaf_share("twice"), recording.leaf_share("once"));
    recording.assert_share("twice", twice / (twice + once) * 100.0, 200.0 / 3.0);
    let deep = recording.share(|names| {
        let chain: Vec<_> = names.iter().filter(|name| *name == "middle").collect();
        names[0] != "twice" || (chain.len() == 11 && names.contains(&"main".to_owned()))
    });
    recording.assert_share("stacks through the whole chain", deep, 100.0);
    let period = 1_000_000_000 / 999;
    assert!(recording.samples.iter().all(|sample| sample.value == period));
    // Samples stand for the CPU time that the program used.
    let seconds = recording.samples.len() as f64 / 999.0;
    assert!((1.3..1.9).contains(&seconds), "{seconds} s");
    assert!(recording.lost.is_empty(), "{:?}", recording.lost);
}
