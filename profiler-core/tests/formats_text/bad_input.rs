//! Any bytes are a profile or an error.

use profiler_core::cancel::CancelFlag;
use profiler_core::decode::{DecodeErrorKind, Limits, decode};
use proptest::prelude::*;

use crate::{bytes, read};

/// A small file of each kind.
fn samples() -> Vec<Vec<u8>> {
    let head = |name: &str, length: usize| bytes(name)[..length.min(bytes(name).len())].to_vec();
    let compact = |name: &str| crate::json(name).to_string().into_bytes();
    vec![
        head("public/cppbench.heap", 250),
        [b"--- contentionz 1 ---\nsampling period = 9\n", &bytes("public/cppbench.contention")[850..1000]].concat(),
        head("public/java.cpu", 440),
        head("go/profiles/heap.debug1.txt", 300),
        head("go/profiles/goroutine.debug1.txt", 130),
        b"--- threadz 1 ---\n--- Thread 7f (name: a/1) stack: ---\n 0x1 0x2\n--- Memory map: ---\n0-9 r-xp $x (@1) a\n"
            .to_vec(),
        b"--- heapz 1 ---\nformat = java\nresolution = bytes\n 2048 2 @ 0x3\n 0x3 a (b.java:1)\n".to_vec(),
        head("made/python/py-spy.raw.txt", 120),
        compact("public/two.sampled.speedscope.json"),
        compact("public/simple.evented.speedscope.json"),
    ]
}

/// Reads what must not panic, and asks for everything a profile tells.
fn try_read(bytes: &[u8]) {
    if let Ok(profile) = read(bytes) {
        assert!(profile.samples().len() <= bytes.len());
        for value_type in 0..profile.value_types().len() {
            assert_eq!(profile.samples().values(value_type).len(), profile.samples().len());
        }
    }
}

#[test]
fn a_file_cut_anywhere_is_a_profile_or_an_error() {
    for file in samples() {
        for length in 0..file.len() {
            try_read(&file[..length]);
        }
    }
}

#[test]
fn compressed_text_that_is_cut_off_keeps_what_is_complete() {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
    std::io::Write::write_all(&mut gzip, &bytes("made/python/py-spy.raw.txt")).unwrap();
    let file = gzip.finish().unwrap();
    let profile = read(&file[..file.len() - 20]).unwrap();
    assert_eq!(profile.samples().len(), 19);
    crate::assert_note(&profile, "the file is incomplete");
}

#[test]
fn frames_are_bounded() {
    let limits = Limits { max_frames: 20, ..Limits::default() };
    for file in [
        "public/cppbench.cpu",
        "public/gobench.heap",
        "made/python/py-spy.raw.txt",
        "made/python/py-spy.speedscope.json",
    ] {
        let error = decode(&*bytes(file), &limits, &CancelFlag::new()).unwrap_err();
        assert_eq!(error.kind(), DecodeErrorKind::Limit, "{file}");
    }
}

#[test]
fn events_on_a_deep_stack_are_bounded() {
    let open =
        (0..3000).fold(String::new(), |events, at| events + &format!("{{\"type\":\"O\",\"at\":{at},\"frame\":0}},"));
    let file = format!(
        "{{\"shared\":{{\"frames\":[{{\"name\":\"a\"}}]}},\"profiles\":[{{\"type\":\"evented\",\"name\":\"x\",\
         \"unit\":\"none\",\"startValue\":0,\"endValue\":3000,\"events\":[{}]}}]}}",
        open.trim_end_matches(',')
    );
    let read = |max_frames| decode(file.as_bytes(), &Limits { max_frames, ..Limits::default() }, &CancelFlag::new());
    assert_eq!(read(5_000_000).unwrap().samples().len(), 3000);
    assert_eq!(read(4_000_000).unwrap_err().kind(), DecodeErrorKind::Limit);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn changed_bytes_are_a_profile_or_an_error(
        which in 0..10usize,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let mut file = samples().swap_remove(which);
        for (at, byte) in changes {
            let at = at.index(file.len());
            file[at] = byte;
        }
        try_read(&file);
    }

    #[test]
    fn any_text_is_a_profile_or_an_error(text in "[ -~\n\t;@:x0-9]{0,400}") {
        try_read(text.as_bytes());
        try_read(format!("heap profile: 1: 2 [3: 4] @ heap/2\n{text}").as_bytes());
        try_read(format!("goroutine profile: total 1\n{text}").as_bytes());
        try_read(format!("a;b 1\nc;d 2\n{text}").as_bytes());
    }
}
