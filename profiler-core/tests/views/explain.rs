use expect_test::expect;
use profiler_core::attribute::FileGroups;
use profiler_core::profile::{LocId, MapId, Mapping, Profile, ProfileBuilder, ValueType};
use profiler_core::view::explain::explain;
use profiler_core::view::text;

use crate::profiles::{analyze, placed, profile};

/// One sample for every reason that a profile can give.
fn everything() -> Profile {
    profile(&[
        ("mine src/a.rs:1", 40),
        ("twice twice/a.rs:1", 3),
        ("stub gen/a.rs:1", 4),
        ("pool dep/a.rs:1", 5),
        ("gc std/a.rs:1", 6),
        ("theirs other/a.rs:1", 7),
        ("lineless src/a.rs:0", 8),
        ("evaluated <string>:1", 9),
        ("fileless :0", 2),
    ])
}

#[test]
fn every_reason_has_words() {
    let profile = everything();
    let analysis = analyze(&profile, placed(&profile), &["fn!=nobody"]);
    expect![[r#"
        cpu.pb.gz · cpu 840ms · 84 samples over 4.00s · 48% placed in the workspace
        Filtered by fn!=nobody: 0 of 840ms left out

        In the workspace, by the best frame of each stack, of 840ms cpu
        █ 47.6%  400ms  1 record   shown on your lines
        ▄  3.6% 30.0ms  1 record   several candidates
        ▄  4.8% 40.0ms  1 record   generated code
        ▄  6.0% 50.0ms  1 record   dependencies
        ▄  7.1% 60.0ms  1 record   toolchain
        ▄  8.3% 70.0ms  1 record   no such file here
        ▄  9.5% 80.0ms  1 record   no line
        ▆ 13.1%  110ms  2 records  no file

        Several candidates: several files of the workspace fit equally well, and a wrong one would be worse
        than none. Give a narrower --workspace: the folder of the service that was profiled.
        Generated code: a tool wrote the code that runs, and none of yours calls it on these stacks. Look at
        what it is generated from.
        Dependencies: threads of libraries that none of your lines is on the stack of. What your lines call
        in libraries is counted on your lines.
        Toolchain: the language's own work, such as garbage collection and scheduling, with none of your
        lines on the stack.
        No such file here: the profile has lines there, but in files that the workspace does not have. If
        they are yours, give their folder with --workspace as well, or check out what was profiled.

        other/a.rs, 8% (70.0ms) with calls: elsewhere
        twice/a.rs, 4% (30.0ms) with calls: elsewhere

        On lines, by the leaf of each stack, of 840ms cpu
        █ 77.4%  650ms  6 records  on a source line
        ▄  9.5% 80.0ms  1 record   no line number
        ▂  2.4% 20.0ms  1 record   no file name
        ▆ 10.7% 90.0ms  1 record   not a file

        No line number: the function has a file, but the profile gives no usable line in it. Record with
        line tables (Rust: debug = "line-tables-only", C and C++: -g1); the cost is on the function all the
        same.
        No file name: the function has a name, but no source file: it was built without debug information,
        or is part of the kernel or of a runtime. Build with debug information and record again.
        Not a file: the code came from no file: evaluated text, generated at run time, or inside an
        interpreter. Look at the lines that call it.

        By package or binary, what no line of the workspace causes, of 840ms cpu
        ▆ 10.7% 90.0ms  1 record  <string>
        ▄  9.5% 80.0ms  1 record  src/a.rs
        ▄  8.3% 70.0ms  1 record  other/a.rs
        ▄  7.1% 60.0ms  1 record  std 1.95
        ▄  6.0% 50.0ms  1 record  fastjson 1.2.0
        ▄  4.8% 40.0ms  1 record  generated code
        ▄  3.6% 30.0ms  1 record  twice/a.rs
        ▂  2.4% 20.0ms  1 record  unknown
    "#]]
    .assert_eq(&text::plain(&explain("cpu.pb.gz", &analysis), Some(100)));
}

#[test]
fn addresses_lead_to_their_binary() {
    let mut builder = ProfileBuilder::new("test", vec![ValueType::new("samples", "count")]);
    let file = builder.string("/usr/lib/libssl.so.3").unwrap();
    let mapping = builder.push_mapping(Mapping { file, ..Mapping::default() }).unwrap();
    let address = builder.location(mapping, 0x1234, &[]).unwrap();
    let nowhere = builder.location(MapId::NONE, 0x99, &[]).unwrap();
    builder.push_sample(&[address], &[70], &[]).unwrap();
    builder.push_sample(&[nowhere], &[10], &[]).unwrap();
    builder.push_sample(&[LocId::NONE], &[5], &[]).unwrap();
    builder.push_sample(&[], &[15], &[]).unwrap();
    let profile = builder.finish().unwrap();
    let analysis = analyze(&profile, FileGroups::by_path(&profile), &[]);
    expect![[r#"
        perf.pb · samples 100 · 100 samples

        On lines, by the leaf of each stack, of 100 samples
        █ 80.0% 80  2 records  address only
        ▄  5.0%  5  1 record   undefined location
        ▆ 15.0% 15  1 record   no stack

        Address only: nothing but an address is known: the binary is stripped, or its symbols were not at
        hand when the profile was made. Keep the symbols of the binaries named below where the recorder
        finds them.
        Undefined location: the profile refers to places that it does not describe: it was damaged or cut by
        a tool. Export it again.
        No stack: the recorder could not walk the stack. Build with frame pointers or unwind tables, or
        record with more of the stack.

        By package or binary, of the leaf of each stack, of 100 samples
        █ 70.0% 70  1 record   libssl.so.3
        ▆ 15.0% 15  1 record   no stack
        ▆ 15.0% 15  2 records  unknown

        No workspace was given: add --workspace DIR to see what the lines of your own code cost.
    "#]]
    .assert_eq(&text::plain(&explain("perf.pb", &analysis), Some(100)));
}
