//! JavaScript's costs in the source it was made of.

use std::path::Path;

use profiler_core::attribute::FileGroups;
use profiler_core::attribute::analysis::Analysis;
use profiler_core::cancel::CancelFlag;
use profiler_core::paths::{Workspace, WorkspaceOptions};
use profiler_core::profile::Profile;
use serde_json::json;

use crate::{Costs, assert_note, bytes, lines, profile};

/// A workspace with these files.
fn folder(files: &[(&str, &[u8])]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (path, content) in files {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
    folder
}

fn workspace(folder: &Path) -> Workspace {
    Workspace::open(&[folder.to_owned()], &WorkspaceOptions::default(), &CancelFlag::new())
}

fn mapped(profile: &Profile, folder: &Path) -> Profile {
    workspace(folder).map_sources(profile, &CancelFlag::new()).unwrap().expect("there is something to map")
}

/// Lines with a cost, by the name of the workspace file.
fn placed(profile: &Profile, folder: &Path) -> Costs {
    let workspace = workspace(folder);
    let groups = FileGroups::in_workspace(profile, &workspace, &CancelFlag::new()).unwrap();
    let analysis = Analysis::new(std::sync::Arc::new(profile.clone()), groups, 0, &[], &CancelFlag::new()).unwrap();
    let rows = analysis.costs.lines.iter().filter_map(|row| {
        let file = analysis.groups.get(row.file).placement.as_ref()?.workspace_file.clone()?;
        Some((format!("{file}:{}", row.line.0), (row.cost.flat, row.cost.cumulative)))
    });
    rows.collect()
}

fn node(name: &str) -> Vec<u8> {
    bytes(&format!("made/node/{name}"))
}

fn project() -> tempfile::TempDir {
    folder(&[
        ("dist/app.js", &node("dist/app.js")),
        ("dist/app.js.map", &node("dist/app.js.map")),
        ("dist/app.min.js", &node("dist/app.min.js")),
        ("dist/app.min.js.map", &node("dist/app.min.js.map")),
        ("src/app.ts", &node("src/app.ts")),
        ("src/work.ts", &node("src/work.ts")),
    ])
}

#[test]
fn a_bundles_lines_are_those_of_its_sources() {
    let project = project();
    let bundled = profile(node("bundle.cpuprofile"));
    let ticks = lines(&bundled, 0);
    let of = |line: u32| ticks[&format!("/home/dev/src/web/dist/app.js:{line}")];
    let profile = mapped(&bundled, project.path());
    let placed = placed(&profile, project.path());
    // The sort, the loop over all items, both recursive calls: by hand, from both files.
    for (generated, source) in
        [(29, "src/app.ts:9"), (16, "src/work.ts:19"), (4, "src/work.ts:5"), (9, "src/work.ts:11")]
    {
        assert_eq!(placed.get(source), Some(&of(generated)), "{source}: {placed:?}");
    }
    assert_eq!(profile.sum(0), bundled.sum(0));
    let hot = profile.functions().iter().find(|row| profile.text(row.name) == "hot" && row.start_line.0 == 16);
    assert!(hot.is_some(), "the function starts where its source says");
    assert_eq!(profile.notes().iter().filter(|note| note.contains("self only")).count(), 1);
}

#[test]
fn functions_of_minified_files_are_found_by_where_they_start() {
    let project = project();
    let minified = profile(node("minified.cpuprofile"));
    let profile = mapped(&minified, project.path());
    let functions = crate::functions(&profile, 0);
    let expected = crate::functions(&minified, 0);
    // `r`, `n`, `i`, `c` in the file are these in the source.
    for (short, name) in [("r", "fib"), ("i", "hot"), ("c", "main")] {
        assert_eq!(functions[name], expected[short], "{name}");
    }
    assert!(placed(&profile, project.path()).is_empty(), "no line can be told");
    assert_note(&profile, "functions are from minified files");
}

/// A profile with one tick on each of these lines of a file.
fn ticks(url: &str, lines: &[i64]) -> Profile {
    let ticks: Vec<_> = lines.iter().map(|line| json!({"line": line, "ticks": 1})).collect();
    let node = json!({"id": 1, "callFrame": {"functionName": "f", "url": url, "lineNumber": 0, "columnNumber": 9},
                      "hitCount": lines.len(), "positionTicks": ticks});
    profile(json!({"nodes": [node], "startTime": 0, "endTime": 9}).to_string())
}

/// Line 1 comes from `a.ts:3`, line 2 from `a.ts:5`.
const MAPPINGS: &str = "AAEA;AAEA";
const CODE: &str = "function f() {}\nf();\n";

fn map(sources: &str, root: &str) -> String {
    json!({"version": 3, "sources": [sources], "sourceRoot": root, "names": [], "mappings": MAPPINGS}).to_string()
}

#[test]
fn maps_are_found_and_sources_named_in_all_the_usual_ways() {
    let source = ("src/a.ts", &b"\n\nfunction f() {}\n\nf();\n"[..]);
    let by = |url: &str| format!("{CODE}//# sourceMappingURL={url}\n");
    let base64 = "eyJ2ZXJzaW9uIjozLCJzb3VyY2VzIjpbIi4uL3NyYy9hLnRzIl0sIm5hbWVzIjpbXSwibWFwcGluZ3MiOiJBQUVBO0FBRUEifQ==";
    let indexed = json!({"version": 3, "sections": [
        {"offset": {"line": 0, "column": 0}, "map": {"version": 3, "sources": ["../src/a.ts"], "names": [], "mappings": "AAEA"}},
        {"offset": {"line": 1, "column": 0}, "map": {"version": 3, "sources": ["../src/a.ts"], "names": [], "mappings": "AAIA"}},
    ]})
    .to_string();
    for (what, code, map_name, map) in [
        ("beside it", by("a.js.map"), "out/a.js.map", map("../src/a.ts", "")),
        ("unnamed", CODE.to_owned(), "out/a.js.map", map("../src/a.ts", "")),
        ("in another folder, escaped", by("../maps/my%20map.json?v=3"), "maps/my map.json", map("../src/a.ts", "")),
        ("inside", by(&format!("data:application/json;base64,{base64}")), "unused", String::new()),
        ("with a root", by("a.js.map"), "out/a.js.map", map("a.ts", "../src/")),
        ("of webpack", by("a.js.map"), "out/a.js.map", map("webpack://my-app/./src/a.ts?1f3c", "")),
        ("of older webpack", by("a.js.map"), "out/a.js.map", map("webpack:///./src/a.ts", "")),
        ("indexed", by("a.js.map"), "out/a.js.map", indexed),
    ] {
        let project = folder(&[source, ("out/a.js", code.as_bytes()), (map_name, map.as_bytes())]);
        let profile = mapped(&ticks("/elsewhere/build/out/a.js", &[1, 2, 2]), project.path());
        let expected = Costs::from([("src/a.ts:3".into(), (1, 1)), ("src/a.ts:5".into(), (2, 2))]);
        assert_eq!(placed(&profile, project.path()), expected, "{what}");
    }
}

#[test]
fn files_from_a_development_server_are_those_it_serves() {
    let project = folder(&[
        ("src/a.ts", b"\n\nfunction f() {}\n\nf();\n"),
        ("dist/assets/a-4f3.js", format!("{CODE}//# sourceMappingURL=a-4f3.js.map").as_bytes()),
        ("dist/assets/a-4f3.js.map", map("../../src/a.ts", "").as_bytes()),
    ]);
    let profile = mapped(&ticks("http://localhost:4173/assets/a-4f3.js?t=1", &[2]), project.path());
    assert_eq!(placed(&profile, project.path()), Costs::from([("src/a.ts:5".into(), (1, 1))]));
}

#[test]
fn what_can_not_be_mapped_stays_and_says_why() {
    let long = format!("{}\n", "f();".repeat(600));
    for (code, map_text, note) in [
        (format!("{CODE}//# sourceMappingURL=gone.map\n"), String::new(), "name a source map that is not there"),
        (long, String::new(), "minified files have no source map"),
        (format!("{CODE}//# sourceMappingURL=a.js.map\n"), "{".to_owned(), "source maps can't be read"),
        ("f()\n".to_owned(), map("../src/a.ts", ""), "source maps are of another build"),
    ] {
        let files = [("out/a.js", code.as_bytes()), ("out/a.js.map", map_text.as_bytes())];
        let files = if map_text.is_empty() { &files[..1] } else { &files[..] };
        let project = folder(files);
        let original = ticks("/elsewhere/out/a.js", &[1]);
        let profile = mapped(&original, project.path());
        assert_note(&profile, note);
        assert_eq!(lines(&profile, 0), lines(&original, 0), "{note}");
    }
}

#[test]
fn code_written_by_hand_needs_no_map() {
    let project = folder(&[("out/a.js", CODE.as_bytes())]);
    let none = workspace(project.path()).map_sources(&ticks("/elsewhere/out/a.js", &[1]), &CancelFlag::new()).unwrap();
    assert!(none.is_none());
    let go = profile(bytes("go/profiles/cpu.pb.gz"));
    assert!(workspace(project.path()).map_sources(&go, &CancelFlag::new()).unwrap().is_none());
}

#[test]
fn maps_outside_of_the_workspace_are_not_read() {
    let outside = folder(&[("a.js.map", map("a.ts", "").as_bytes())]);
    let url = format!("{CODE}//# sourceMappingURL={}\n", outside.path().join("a.js.map").display());
    let project = folder(&[("out/a.js", url.as_bytes())]);
    let profile = mapped(&ticks("/elsewhere/out/a.js", &[1]), project.path());
    assert_note(&profile, "name a source map that is not there");
}

#[test]
fn any_map_is_read_or_refused() {
    for text in [
        "",
        "{}",
        "[]",
        "null",
        "{\"version\":3}",
        "{\"version\":3,\"mappings\":\"AAAA\"}",
        "{\"version\":3,\"sources\":[null],\"mappings\":\"AAAA,;;;gggggggggggggggggggB\"}",
        "{\"version\":3,\"sources\":[\"a\"],\"names\":[],\"mappings\":\"D,D,DADDD,A/////////9\"}",
        "{\"version\":3,\"sections\":[{\"offset\":{\"line\":4294967295,\"column\":4294967295},\"map\":{\"version\":3,\"sources\":[\"a\"],\"names\":[],\"mappings\":\"AAAA;AAAA\"}}]}",
        "{\"version\":3,\"sources\":[\"a\"],\"names\":[],\"mappings\":\"AAAA\",\"x_facebook_sources\":[[]]}",
    ] {
        let code = format!("{CODE}//# sourceMappingURL=a.js.map\n");
        let project = folder(&[("out/a.js", code.as_bytes()), ("out/a.js.map", text.as_bytes())]);
        let original = ticks("/elsewhere/out/a.js", &[1, 2]);
        let mapped = workspace(project.path()).map_sources(&original, &CancelFlag::new()).unwrap();
        if let Some(mapped) = mapped {
            assert_eq!(mapped.sum(0), original.sum(0), "{text}");
        }
    }
}
