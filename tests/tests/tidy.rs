//! Rules about the repository itself: what may be depended on, and that documents speak of
//! things that exist.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests/ is in the repository").to_owned()
}

fn cargo(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO")).current_dir(root()).args(arguments).output().expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("cargo prints UTF-8")
}

/// Names of the packages that are linked into `package`.
fn linked(package: &str) -> BTreeSet<String> {
    cargo(&["tree", "--locked", "--package", package, "--edges", "normal", "--prefix", "none", "--format", "{p}"])
        .lines()
        .filter_map(|line| Some(line.split_whitespace().next()?.to_owned()))
        .collect()
}

#[test]
fn the_core_knows_no_runtime_network_or_protocol() {
    let linked = linked("profiler-core");
    assert!(linked.contains("prost"), "{linked:?}");
    for forbidden in ["tokio", "reqwest", "hyper", "tower-lsp", "lsp-types", "clap"] {
        assert!(!linked.contains(forbidden), "profiler-core links {forbidden}");
    }
}

#[test]
fn nothing_linked_has_a_copyleft_licence() {
    let licences = cargo(&[
        "tree",
        "--locked",
        "--package",
        "perflens",
        "--edges",
        "normal",
        "--prefix",
        "none",
        "--format",
        "{p} | {l}",
    ]);
    let mut seen = 0;
    for line in licences.lines() {
        let Some((package, licence)) = line.split_once(" | ") else { continue };
        seen += 1;
        // One acceptable choice among alternatives is enough.
        let is_free = licence
            .split(" OR ")
            .flat_map(|part| part.split('/'))
            .any(|choice| !["GPL", "AGPL", "LGPL", "CDDL", "SSPL", "BUSL"].iter().any(|bad| choice.contains(bad)));
        assert!(is_free && !licence.trim_end_matches(" (*)").is_empty(), "{package}: {licence}");
    }
    assert!(seen > 20, "{licences}");
}

#[test]
fn documents_name_files_that_exist() {
    for document in ["README.md", "ARCHITECTURE.md", "docs/benchmarks.md"] {
        let text = std::fs::read_to_string(root().join(document)).unwrap();
        let mut checked = 0;
        for quoted in text.split('`').skip(1).step_by(2) {
            let top = quoted.split('/').next().unwrap_or_default();
            let is_ours = ["profiler-core", "lsp-server", "profiler-ebpf", "tests", "docs", "editors"].contains(&top);
            // Placeholders are written in capitals.
            let is_path =
                is_ours && quoted.contains('/') && !quoted.contains([' ', '…', '*']) && !quoted.contains("NAME");
            if is_path {
                checked += 1;
                assert!(root().join(quoted).exists(), "{document} names {quoted}, which is not there");
            }
        }
        assert!(checked > 0, "{document} names no file at all; is the check broken?");
    }
}

#[test]
fn every_command_is_in_the_readme() {
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    for command in ["cargo run --release --bin perflens -- demo", "tests/run", "perflens report", "perflens annotate"] {
        assert!(readme.contains(command), "README.md does not show `{command}`");
    }
}
