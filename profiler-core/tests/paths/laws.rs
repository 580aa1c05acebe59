//! Laws that hold for every workspace and every profile.

use std::collections::BTreeMap;

use profiler_core::paths::Resolution;
use proptest::prelude::*;

use crate::{files, query};

/// Few names in few folders, so that files and paths often agree by chance.
fn small_path() -> impl Strategy<Value = String> {
    (proptest::collection::vec(0..3usize, 0..3), 0..3usize).prop_map(|(folders, name)| {
        let folders: Vec<&str> = folders.into_iter().map(|i| ["a/", "b/", "c/"][i]).collect();
        format!("{}{}.c", folders.concat(), ["x", "y", "z"][name])
    })
}

/// Files with one function or none, at the first line or further down.
fn small_files(most: usize) -> impl Strategy<Value = BTreeMap<String, String>> {
    let text = prop_oneof![
        Just(String::new()),
        Just("int fa(void)\n".to_owned()),
        Just("int fb(void)\n".to_owned()),
        Just("\n\n\n\n\n\nint fa(void)\n".to_owned())
    ];
    proptest::collection::btree_map(small_path(), text, 0..most)
}

fn small_profile() -> impl Strategy<Value = Vec<String>> {
    let head = prop_oneof![Just(""), Just("/p/"), Just("/q/a/")];
    let function = prop_oneof![Just(""), Just(" | fa@1:2"), Just(" | fb@1:2"), Just(" | fa@1:2 | fb@1:2")];
    let line = (head, small_path(), function).prop_map(|(head, path, function)| format!("{head}{path}{function}"));
    proptest::collection::vec(line, 1..8)
}

fn common_components(a: &str, b: &str) -> usize {
    a.rsplit('/').zip(b.rsplit('/')).take_while(|(a, b)| a == b).count()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Decoys may make an answer uncertain. They change it into another file only by fitting
    /// the path better.
    #[test]
    fn decoys_never_mislead(given in small_files(8), decoys in small_files(8), mut profile in small_profile()) {
        fn path_of(line: &str) -> &str {
            line.split(" | ").next().unwrap()
        }
        profile.sort();
        profile.dedup_by(|a, b| path_of(a) == path_of(b));
        let fixture = files("");
        let write = |files: &BTreeMap<String, String>| {
            for (path, text) in files {
                let path = fixture.roots[0].join(path);
                if !path.exists() {
                    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                    std::fs::write(path, text).unwrap();
                }
            }
        };
        let resolve = || {
            let queries: Vec<_> = profile.iter().map(|line| query(path_of(line), line.split(" | ").skip(1))).collect();
            fixture.open().resolve(&queries)
        };
        write(&given);
        let before = resolve();
        write(&decoys);
        for ((before, after), line) in before.iter().zip(resolve()).zip(&profile) {
            if let (Resolution::File { file: a, .. }, Resolution::File { file: b, how, .. }) = (before, after)
                && *a != b
            {
                let path = path_of(line);
                let longer = common_components(path, &b.relative) > common_components(path, &a.relative);
                prop_assert!(longer, "{} was {} and became {} ({})", path, a.relative, b.relative, how);
            }
        }
    }
}
