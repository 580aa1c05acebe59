//! The decoders of text formats and of the binary profiles from before pprof, through the
//! front door, against what other tools say about the same files.

mod raw;

use std::path::{Path, PathBuf};

use profiler_core::cancel::CancelFlag;
use profiler_core::decode::{DecodeError, DecodeErrorKind, Limits, decode};
use profiler_core::profile::Profile;

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data").join(name)
}

fn bytes(name: &str) -> Vec<u8> {
    std::fs::read(data(name)).unwrap()
}

fn text(name: &str) -> String {
    std::fs::read_to_string(data(name)).unwrap()
}

fn read(bytes: &[u8]) -> Result<Profile, DecodeError> {
    decode(bytes, &Limits::default(), &CancelFlag::new())
}

fn profile(bytes: &[u8]) -> Profile {
    read(bytes).unwrap()
}

fn has_note(profile: &Profile, part: &str) -> bool {
    profile.notes().iter().any(|note| note.contains(part))
}

#[test]
fn legacy_files_read_like_pprof_reads_them() {
    for (file, oracle, format, names) in [
        ("public/cppbench.cpu", "public/oracle/cppbench.cpu.pprof-raw.txt", "legacy-cpu", raw::Names::Shown),
        ("public/cppbench.heap", "public/oracle/cppbench.heap.pprof-raw.txt", "legacy-heap", raw::Names::Shown),
        (
            "public/cppbench.contention",
            "public/oracle/cppbench.contention.pprof-raw.txt",
            "legacy-contention",
            raw::Names::Shown,
        ),
        ("public/gobench.heap", "public/oracle/gobench.heap.pprof-raw.txt", "legacy-heap", raw::Names::Shown),
        ("public/java.cpu", "public/oracle/java.cpu.pprof-raw.txt", "legacy-cpu", raw::Names::Shown),
        // pprof does not read the names in comments.
        ("go/profiles/heap.debug1.txt", "go/oracle/heap.debug1.raw.txt", "legacy-heap", raw::Names::Hidden),
        ("go/profiles/goroutine.debug1.txt", "go/oracle/goroutine.debug1.raw.txt", "go-text", raw::Names::Hidden),
    ] {
        let profile = profile(&bytes(file));
        assert_eq!(profile.format(), format, "{file}");
        let (ours, theirs) = (raw::dump(&profile, names), text(oracle));
        for (number, (our, their)) in ours.lines().zip(theirs.lines()).enumerate() {
            assert_eq!(our, their, "{file}, line {} of the dump", number + 1);
        }
        assert_eq!(ours, theirs, "{file}");
        println!("{file}: {:#?}", profile.notes());
    }
}
