//! Any bytes are a profile or an error.

use profiler_core::cancel::CancelFlag;
use profiler_core::decode::{DecodeErrorKind, FORMATS, Limits, decode};
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
        compact("public/chrome65.cpuprofile"),
        b"{\"head\":{\"callFrame\":{\"functionName\":\"f\",\"url\":\"a.js\",\"lineNumber\":3},\"selfSize\":8,\"children\":[{\"callFrame\":{\"functionName\":\"g\",\"url\":\"a.js\",\"lineNumber\":5},\"selfSize\":4,\"children\":[]}]}}"
            .to_vec(),
        head("made/python/py-spy.chrometrace.json", 700),
        crate::v8::small_trace(),
        crate::firefox::small(),
        head("public/simple.perf-script.txt", 1600)[1000..].to_vec(),
        b"app 1 2.0: 5 cycles:\n\t 12 hot (inlined)\n  a.c:3\n\t 12 main+0x3 (/bin/app)\n  a.c:9\n\n".to_vec(),
        bytes("public/xdebug3.cachegrind"),
        head("made/python/demo.pstats", 400),
        head("made/python/demo.austin.txt", 900),
        head("made/python/demo.mojo", 500),
        compact("made/c/dhat.json"),
        b"{\"elapsed_time_sec\":2,\"files\":{\"a.py\":{\"lines\":[{\"lineno\":3,\"n_cpu_percent_python\":40,\"n_malloc_mb\":2}]}}}"
            .to_vec(),
        b"{\"mode\":\"cpu\",\"interval\":1,\"samples\":3,\"gc_samples\":0,\"frames\":{\"1\":{\"name\":\"f\",\"file\":\"a.rb\",\"line\":1,\"total_samples\":3,\"samples\":1,\"lines\":{\"2\":[3,1]}}},\"raw\":[1,1,3],\"raw_lines\":[1,2,3]}"
            .to_vec(),
        b"heap_v2/524288\n  t*: 2: 9 [0: 0]\n@ 0x10 0x20\n  t*: 1: 8 [2: 9]\nMAPPED_LIBRARIES:\n0-30 r-xp 0 08:01 4 /a\n".to_vec(),
        bytes("public/sleep.perf.data")[..2_000].to_vec(),
        crate::java::small(),
        crate::otlp::small(),
        crate::otlp::small_17(),
        bytes("made/rust/pprof-rs.pb"),
    ]
}

/// Real files, as far as they are small enough to be read many times.
fn real_files() -> Vec<(String, Vec<u8>)> {
    const MOST: u64 = 60_000;
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data");
    let mut files = Vec::new();
    for folder in ["go/profiles", "made/c", "made/node", "made/python", "made/rust", "otlp", "public"] {
        for entry in std::fs::read_dir(root.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            let is_one =
                path.extension().is_none_or(|ending| !["md", "c", "rs", "py", "toml"].iter().any(|it| ending == *it));
            if path.is_file() && is_one && path.metadata().unwrap().len() <= MOST {
                files.push((path.file_name().unwrap().to_string_lossy().into_owned(), std::fs::read(path).unwrap()));
            }
        }
    }
    files.sort();
    files
}

/// A format without a file here would be one that nothing below tries.
#[test]
fn every_format_is_tried() {
    let own = samples();
    let real = real_files();
    let all = own.iter().chain(real.iter().map(|(_, bytes)| bytes));
    let tried: std::collections::BTreeSet<&str> = all.filter_map(|file| Some(read(file).ok()?.format())).collect();
    let known = FORMATS.iter().map(|format| format.name);
    // Of raw profiles nothing is known but addresses; cut ones are no profiles, which is what is tried.
    for name in known {
        assert!(tried.contains(name), "no file of {name} among {tried:?}");
    }
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
        // Every place of a short file, many of a longer one.
        for length in (0..file.len()).step_by(1 + file.len() / 150) {
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
        which: prop::sample::Index,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let mut files = samples();
        let mut file = files.swap_remove(which.index(files.len()));
        for (at, byte) in changes {
            let at = at.index(file.len());
            file[at] = byte;
        }
        try_read(&file);
    }

    /// What a disk, a copy or somebody who means harm makes of a real file: bytes that differ, pieces that are
    /// missing, twice or from elsewhere.
    #[test]
    fn damaged_real_files_are_profiles_or_errors(
        which: prop::sample::Index,
        other: prop::sample::Index,
        cuts in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0..4_u8), 1..4),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
    ) {
        static FILES: std::sync::LazyLock<Vec<(String, Vec<u8>)>> = std::sync::LazyLock::new(real_files);
        let mut file = which.get(&FILES).1.clone();
        for (from, to, how) in cuts {
            let (from, to) = (from.index(file.len() + 1), to.index(file.len() + 1));
            let (from, to) = (from.min(to), from.max(to));
            match how {
                0 => drop(file.drain(from..to)),
                1 => file.extend_from_within(from..to),
                2 => file.truncate(to.max(1)),
                _ => {
                    let piece = &other.get(&FILES).1;
                    file.splice(from..from, piece[..piece.len().min(to - from)].iter().copied());
                }
            }
            if file.is_empty() {
                file.push(0);
            }
        }
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
