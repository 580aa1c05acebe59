//! Go programs, with and without debug info.

use profiler_core::symbolize::Lines;

use super::programs::{Folder, Lookup, function};

const SOURCE: &str = "\
package main

import \"fmt\"

var sink int

func twice(x int) int {
\tsink = x
\treturn x*2 + 1
}

//go:noinline
func work(n int) int {
\tsum := 0
\tfor i := 0; i < n; i++ {
\t\tsum += twice(i)
\t}
\treturn sum
}

func main() {
\tfmt.Println(work(1000))
}
";

fn program(flags: &str, name: &str, folder: &Folder) {
    folder.run(&format!("go build {flags} -o {name} main.go"));
}

/// Inlined calls and lines are the same whether they are from DWARF or from Go's own table.
#[test]
fn a_stripped_program_reads_like_one_with_debug_info() {
    let folder = Folder::new(&[("main.go", SOURCE), ("go.mod", "module demo\n\ngo 1.18\n")]);
    program("", "full", &folder);
    program("-ldflags=-w", "symbols", &folder);
    program("-ldflags=-s", "bare", &folder);
    let full = folder.path("full");
    let (start, size) = function(&full, "main.work");
    let addresses: Vec<u64> = (start..start + size).collect();
    let answers = |name: &str, lines: Lines| {
        let mut lookup = Lookup::of(&folder.path(name));
        assert_eq!(lookup.report().lines, lines, "{name}");
        let answers = lookup.all(&addresses).into_iter();
        let frames = answers.map(|answer| {
            let frames = answer.unwrap();
            let frames = frames.iter().map(|frame| (frame.name.clone(), frame.file.clone(), frame.line));
            frames.collect::<Vec<_>>()
        });
        frames.collect::<Vec<_>>()
    };
    let wanted = answers("full", Lines::DebugInfo);
    let file = folder.path("main.go");
    assert!(wanted.iter().any(|frames| frames.len() == 2 && &*frames[0].0 == "main.twice" && frames[1].2.0 == 16));
    assert!(wanted.iter().flatten().all(|(_, path, _)| **path == *file.to_str().unwrap()), "{wanted:?}");
    for name in ["symbols", "bare"] {
        let found = answers(name, Lines::GoTable);
        for (address, (found, wanted)) in addresses.iter().zip(found.iter().zip(&wanted)) {
            assert_eq!(found, wanted, "{name} at {address:#x}");
        }
    }
}

#[test]
fn functions_of_a_stripped_program_say_where_they_start() {
    let folder = Folder::new(&[("main.go", SOURCE), ("go.mod", "module demo\n\ngo 1.18\n")]);
    program("-ldflags=-s", "bare", &folder);
    program("", "full", &folder);
    let (start, _) = function(&folder.path("full"), "main.work");
    let frames = Lookup::of(&folder.path("bare")).frames(start);
    assert_eq!((&*frames[0].name, frames[0].start_line.0), ("main.work", 13));
    // The runtime is assembly in part, which has lines as well.
    let (assembly, _) = function(&folder.path("full"), "runtime.memmove");
    let frames = Lookup::of(&folder.path("bare")).frames(assembly);
    assert!(frames[0].file.ends_with("/runtime/memmove_amd64.s") || frames[0].file.ends_with(".s"), "{frames:?}");
}
