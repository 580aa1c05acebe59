//! The forms that debug info comes in.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use profiler_core::symbolize::{DebugFiles, Lines, Module, Reason, Refusal, SymbolOptions};

use super::programs::{Folder, Lookup, run, shown, symbols};

/// `twice` is inlined into `work`, on a line of its own.
const SOURCE: &str = "\
static inline __attribute__((always_inline)) int twice(int x) {
    volatile int y = x; return y * 2;
}
__attribute__((noinline)) int work(int x) {
    volatile int sum = 0;
    for (int i = 0; i < x; i++)
        sum += twice(i);
    return sum;
}
int main(int argc, char** argv) {
    return work(argc);
}
";

fn source() -> Folder {
    Folder::new(&[("demo/demo.c", SOURCE)])
}

/// Every line of `work` and nothing else, with the inlined call on top of its caller.
#[track_caller]
fn assert_lines(lookup: &mut Lookup, program: &Path) {
    let report = lookup.report();
    assert_eq!(report.lines, Lines::DebugInfo, "{report:?}");
    let lines = lookup.lines_of(program, "work");
    for wanted in ["demo.c:2 twice < demo.c:7 work", "demo.c:5 work", "demo.c:6 work", "demo.c:8 work"] {
        assert!(lines.iter().any(|line| line == wanted), "{wanted} is missing: {lines:#?}");
    }
    assert!(lines.iter().all(|line| line.ends_with(" work")), "{lines:#?}");
}

fn debug_dir(dir: &Path) -> SymbolOptions {
    SymbolOptions {
        files: DebugFiles { debug_dirs: vec![dir.to_owned()], ..DebugFiles::default() },
        ..SymbolOptions::default()
    }
}

fn module(path: &Path) -> Module {
    Module { path: path.to_owned(), ..Module::default() }
}

fn build_id(path: &Path) -> String {
    let notes = run(Command::new("readelf").arg("-n").arg(path));
    notes.split("Build ID: ").nth(1).unwrap().split_whitespace().next().unwrap().to_owned()
}

#[test]
fn dwarf_inside_of_the_program() {
    for flags in [
        "-gdwarf-4",
        "-gdwarf-5",
        "-gdwarf-3",
        "-gdwarf-5 -gz=zlib",
        "-gdwarf-4 -gz=zlib-gnu",
        "-gdwarf-5 -no-pie",
        "-gdwarf-5 -static",
        "-gdwarf-5 -Wl,-z,separate-code",
        "-gdwarf-5 -ffunction-sections -Wl,--gc-sections",
        "-gdwarf-5 -flto",
        "-gdwarf64 -gdwarf-5",
    ] {
        let folder = source();
        folder.run(&format!("gcc -O1 {flags} -o program demo/demo.c"));
        println!("{flags}");
        let program = folder.path("program");
        assert_lines(&mut Lookup::of(&program), &program);
    }
}

/// Packs the debug sections of a file as `-gz=zstd` of newer compilers does.
fn pack_by_zstd(program: &Path) {
    let bytes = std::fs::read(program).unwrap();
    let names: Vec<String> = {
        use object::{Object, ObjectSection};
        let object = object::File::parse(&*bytes).unwrap();
        object.sections().filter_map(|section| Some(section.name().ok()?.to_owned())).collect()
    };
    for name in names.iter().filter(|name| name.starts_with(".debug_")) {
        let raw = program.with_extension("raw");
        run(Command::new("objcopy").arg(format!("--dump-section={name}={}", raw.display())).arg(program));
        let content = std::fs::read(&raw).unwrap();
        let mut packed = Vec::new();
        packed.extend(2_u32.to_le_bytes()); // ELFCOMPRESS_ZSTD
        packed.extend(0_u32.to_le_bytes());
        packed.extend((content.len() as u64).to_le_bytes());
        packed.extend(1_u64.to_le_bytes());
        packed.extend(ruzstd::encoding::compress_to_vec(&content[..], ruzstd::encoding::CompressionLevel::Fastest));
        std::fs::write(&raw, packed).unwrap();
        run(Command::new("objcopy").arg(format!("--update-section={name}={}", raw.display())).arg(program));
    }
    // The flag that says so; objcopy has no name for it.
    let mut bytes = std::fs::read(program).unwrap();
    let number = |bytes: &[u8], at: usize, size: usize| {
        bytes[at..at + size].iter().rev().fold(0_usize, |number, &byte| number << 8 | usize::from(byte))
    };
    let (table, count, names_index) = (number(&bytes, 40, 8), number(&bytes, 60, 2), number(&bytes, 62, 2));
    let names = number(&bytes, table + names_index * 64 + 24, 8);
    for header in (0..count).map(|index| table + index * 64) {
        let name = names + number(&bytes, header, 4);
        if bytes[name..].starts_with(b".debug_") {
            bytes[header + 9] |= 8; // SHF_COMPRESSED
        }
    }
    std::fs::write(program, bytes).unwrap();
}

#[test]
fn sections_packed_by_zstd() {
    let folder = source();
    folder.run("gcc -O1 -g -o program demo/demo.c");
    let program = folder.path("program");
    pack_by_zstd(&program);
    let sections = run(Command::new("readelf").args(["-t", "--wide"]).arg(&program));
    assert!(sections.contains("ZSTD"), "{sections}");
    assert_lines(&mut Lookup::of(&program), &program);
}

#[test]
fn the_folder_of_the_compiler_is_part_of_the_path() {
    let folder = source();
    for version in [4, 5] {
        run(Command::new("gcc")
            .args(["-O1", &format!("-gdwarf-{version}"), "-o", "../program", "demo.c"])
            .current_dir(folder.path("demo")));
        let program = folder.path("program");
        let (start, _) = super::programs::function(&program, "work");
        let frames = Lookup::of(&program).frames(start);
        assert_eq!(Path::new(&*frames[0].file), folder.path("demo/demo.c"), "DWARF {version}");
        assert_eq!(frames[0].start_line.0, 4);
    }
}

#[test]
fn debug_info_beside_the_program_is_found_by_its_link() {
    for place in ["program.debug", ".debug/program.debug"] {
        let folder = source();
        folder.run("gcc -O1 -g -Wl,--build-id=none -o program demo/demo.c");
        std::fs::create_dir_all(folder.path(".debug")).unwrap();
        folder.run(&format!("objcopy --only-keep-debug program {place}"));
        folder.run("strip program");
        folder.run(&format!("objcopy --add-gnu-debuglink={place} program"));
        let program = folder.path("program");
        assert_lines(&mut Lookup::of(&program), &folder.path(place));
    }
}

#[test]
fn debug_info_is_found_by_build_id() {
    let folder = source();
    folder.run("gcc -O1 -g -o program demo/demo.c");
    let program = folder.path("program");
    let id = build_id(&program);
    let dir = folder.path(&format!("debug/.build-id/{}", &id[..2]));
    std::fs::create_dir_all(&dir).unwrap();
    let debug = dir.join(format!("{}.debug", &id[2..]));
    run(Command::new("objcopy").arg("--only-keep-debug").arg(&program).arg(&debug));
    folder.run("strip program");
    let mut lookup = Lookup::new(debug_dir(&folder.path("debug")), module(&program));
    assert_lines(&mut lookup, &debug);

    // Even where the program itself is gone, as on another machine.
    std::fs::remove_file(&program).unwrap();
    let gone = Module { build: id, ..module(Path::new("/nowhere/program")) };
    let mut lookup = Lookup::new(debug_dir(&folder.path("debug")), gone);
    assert_lines(&mut lookup, &debug);
    // But it doesn't know where in the binary the code was.
    assert_eq!(lookup.offset(0x1140), Err(Reason::NeedsBinary));
}

#[test]
fn debug_info_that_debuginfod_fetched_before() {
    let folder = source();
    folder.run("gcc -O1 -g -o program demo/demo.c");
    let program = folder.path("program");
    let id = build_id(&program);
    let cached = folder.path(&format!("cache/{id}"));
    std::fs::create_dir_all(&cached).unwrap();
    run(Command::new("objcopy").arg("--only-keep-debug").arg(&program).arg(cached.join("debuginfo")));
    folder.run("strip program");
    let options = || SymbolOptions {
        files: DebugFiles { debuginfod_caches: vec![folder.path("cache")], ..DebugFiles::default() },
        ..SymbolOptions::default()
    };
    assert_lines(&mut Lookup::new(options(), module(&program)), &cached.join("debuginfo"));
    // The program itself may be there as well, for what comes from another machine.
    std::fs::rename(&program, cached.join("executable")).unwrap();
    let gone = || Module { build: id.clone(), ..module(Path::new("/nowhere/program")) };
    let mut lookup = Lookup::new(options(), gone());
    assert_lines(&mut lookup, &cached.join("debuginfo"));
    let (start, _) = super::programs::function(&cached.join("debuginfo"), "work");
    assert_eq!(lookup.offset(start), Ok(lookup.frames(start)), "it knows where in the binary the code was");
    // What lies there under the number of another build is not believed.
    folder.run("gcc -O2 -g -o other demo/demo.c");
    std::fs::rename(folder.path("other"), cached.join("debuginfo")).unwrap();
    let mut lookup = Lookup::new(options(), gone());
    assert_ne!(lookup.report().lines, Lines::DebugInfo);
}

/// `dwz` moves what several files have in common into one that they name by path and build id.
#[test]
fn debug_info_that_files_share() {
    let common = "struct shared { int all[4]; struct shared *next; };\nstatic inline __attribute__((always_inline)) int \
                  twice(struct shared *it) {\n    volatile int y = it->all[0];\n    return y * 2;\n}\n";
    let user = |name: &str| {
        format!(
            "#include \"common.h\"\n__attribute__((noinline)) int work(struct shared *it) {{\n    return twice(it) + \
             {name}(it);\n}}\nint main(int argc, char **argv) {{\n    struct shared it = {{{{argc}}, 0}};\n    return \
             work(&it);\n}}\n"
        )
    };
    let one = user("twice");
    let two = user("-twice");
    for version in [4, 5] {
        let folder = Folder::new(&[("common.h", common), ("one.c", &one), ("two.c", &two)]);
        for name in ["one", "two"] {
            folder.run(&format!("gcc -O1 -g -gdwarf-{version} -o {name} {name}.c"));
        }
        let shared = folder.path("shared.debug");
        folder.run(&format!("dwz --low-mem-die-limit none -m {} -M {} one two", shared.display(), shared.display()));
        let sections = folder.run("readelf -S --wide one");
        assert!(sections.contains(".gnu_debugaltlink"), "{sections}");
        let expected = "common.h:4 twice < one.c:3 work";
        let program = folder.path("one");
        let lines = Lookup::of(&program).lines_of(&program, "work");
        assert!(lines.iter().any(|line| line == expected), "DWARF {version}: {lines:#?}");

        // Elsewhere it is found by its build id.
        let id = build_id(&shared);
        let by_id = folder.path(&format!("debug/.build-id/{}", &id[..2]));
        std::fs::create_dir_all(&by_id).unwrap();
        std::fs::rename(&shared, by_id.join(format!("{}.debug", &id[2..]))).unwrap();
        let lines = Lookup::new(debug_dir(&folder.path("debug")), module(&program)).lines_of(&program, "work");
        assert!(lines.iter().any(|line| line == expected), "DWARF {version}: {lines:#?}");

        // Without it lines are known, and what is in the other file is not made up.
        std::fs::remove_dir_all(folder.path("debug")).unwrap();
        let lines = Lookup::of(&program).lines_of(&program, "work");
        assert!(lines.iter().any(|line| line.contains("one.c:3")), "DWARF {version}: {lines:#?}");
    }
}

#[test]
fn units_in_files_of_their_own() {
    for version in [4, 5] {
        let folder = source();
        folder.run(&format!("gcc -O1 -gdwarf-{version} -gsplit-dwarf -c -o demo.o demo/demo.c"));
        folder.run("gcc -o program demo.o");
        let program = folder.path("program");
        assert!(folder.path("demo.dwo").exists());
        assert_lines(&mut Lookup::of(&program), &program);

        // The folder was moved: the unit is beside the program.
        let moved = folder.path("moved");
        std::fs::create_dir(&moved).unwrap();
        std::fs::rename(&program, moved.join("program")).unwrap();
        std::fs::rename(folder.path("demo.dwo"), moved.join("demo.dwo")).unwrap();
        assert_lines(&mut Lookup::of(&moved.join("program")), &moved.join("program"));

        // Without it there is the line, but not who was inlined.
        std::fs::remove_file(moved.join("demo.dwo")).unwrap();
        let program = moved.join("program");
        let lines = Lookup::of(&program).lines_of(&program, "work");
        assert!(lines.contains(&"demo.c:2 work".to_owned()), "{lines:#?}");
    }
}

#[test]
fn units_in_a_package() {
    let folder = source();
    folder.run("gcc -O1 -gdwarf-4 -gsplit-dwarf -c -o demo.o demo/demo.c");
    folder.run("gcc -o program demo.o");
    folder.run("dwp -e program -o program.dwp");
    std::fs::remove_file(folder.path("demo.dwo")).unwrap();
    let program = folder.path("program");
    assert_lines(&mut Lookup::of(&program), &program);
}

#[test]
fn symbols_that_stripping_packed_away() {
    let folder = source();
    folder.run("gcc -O1 -o program demo/demo.c");
    let program = folder.path("program");
    let (start, _) = super::programs::function(&program, "work");
    folder.run("objcopy -S --keep-symbol=work --keep-symbol=main program mini");
    folder.run("xz -k mini");
    folder.run("strip program");
    assert_eq!(super::programs::shown(&Lookup::of(&program).one(start)), "the file has no symbol there");
    folder.run("objcopy --add-section=.gnu_debugdata=mini.xz program");
    let mut lookup = Lookup::of(&program);
    assert_eq!(super::programs::shown(&lookup.one(start)), ":0 work");
    assert_eq!(lookup.report().lines, Lines::NamesOnly);
}

#[test]
fn a_shared_library() {
    let folder = source();
    folder.run("gcc -O1 -g -fPIC -shared -o libdemo.so demo/demo.c");
    let library = folder.path("libdemo.so");
    assert_lines(&mut Lookup::of(&library), &library);
}

const RUST: &str = "\
#[inline(always)]
fn twice(x: u64) -> u64 {
    std::hint::black_box(x)
}
#[inline(never)]
fn work(x: u64) -> u64 {
    let mut sum = 0;
    for i in 0..x {
        sum += twice(i);
    }
    sum
}
fn main() {
    println!(\"{}\", work(std::env::args().count() as u64));
}
";

#[test]
fn a_program_linked_by_lld() {
    let folder = Folder::new(&[("demo.rs", RUST)]);
    for debug in ["2", "1", "line-tables-only"] {
        folder.run(&format!("rustc -O -C debuginfo={debug} -o program demo.rs"));
        let program = folder.path("program");
        let linker = run(Command::new("readelf").args(["-p", ".comment"]).arg(&program));
        assert!(linker.contains("LLD"), "{linker}");
        let lines = Lookup::of(&program).lines_of(&program, "work");
        // Line tables alone don't have the module of what was inlined.
        let twice = if debug == "line-tables-only" { "twice" } else { "demo::twice" };
        let wanted = format!("demo.rs:3 {twice} < demo.rs:9 demo::work");
        assert!(lines.iter().any(|line| line.ends_with(&wanted)), "{debug}: {lines:#?}");
        assert!(lines.iter().all(|line| line.ends_with(" demo::work")), "{debug}: {lines:#?}");
    }
}

#[test]
fn asynchronous_rust_reads_as_it_is_written() {
    const SOURCE: &str = "
use std::future::Future;
use std::task::{Context, Waker};
pub mod shop {
    pub async fn price(n: u64) -> u64 {
        std::hint::black_box(n) * 3
    }
    #[inline(never)]
    pub fn checkout(n: u64) -> impl std::future::Future<Output = u64> {
        async move { price(n).await + 1 }
    }
}
#[inline(never)]
fn run(n: u64) {
    let mut future = std::pin::pin!(shop::checkout(n));
    let _ = std::hint::black_box(future.as_mut().poll(&mut Context::from_waker(Waker::noop())));
}
fn main() {
    run(std::env::args().count() as u64);
}
";
    let folder = Folder::new(&[("demo.rs", SOURCE)]);
    let whole = ["async fn demo::shop::price", "async block in demo::shop::checkout"];
    // Line tables alone name only functions that others are inlined into, and what is inlined, without saying what that
    // is in; for the rest there is the symbol, which knows closures only.
    for (options, wanted) in [
        ("-O -C debuginfo=2", whole),
        ("-C debuginfo=2 -C symbol-mangling-version=v0", whole),
        ("-C debuginfo=2", whole),
        ("-C debuginfo=line-tables-only", ["demo::shop::price::{{closure}}", whole[1]]),
        ("-O -C debuginfo=line-tables-only", ["async fn", "async block"]),
    ] {
        folder.run(&format!("rustc --edition 2024 {options} -o program demo.rs"));
        let program = folder.path("program");
        let mut lookup = Lookup::of(&program);
        let functions = symbols(&program).into_iter().filter(|(name, ..)| name.starts_with("demo::"));
        let addresses: Vec<u64> = functions.flat_map(|(_, start, size)| start..start + size).collect();
        let answers = lookup.all(&addresses);
        let lines: BTreeSet<String> = answers.iter().map(shown).collect();
        let has = |name: &str| lines.iter().any(|line| format!("{line} <").contains(&format!(" {name} <")));
        assert!(wanted.into_iter().all(has), "{options}: {lines:#?}");
    }
}

#[test]
fn rust_units_in_files_of_their_own() {
    let folder = Folder::new(&[("demo.rs", RUST)]);
    for (split, version) in [("packed", 4), ("packed", 5), ("unpacked", 4), ("unpacked", 5)] {
        folder.run(&format!("rustc -O -g -C split-debuginfo={split} -C dwarf-version={version} -o program demo.rs"));
        let program = folder.path("program");
        assert_eq!(folder.path("program.dwp").exists(), split == "packed");
        let lines = Lookup::of(&program).lines_of(&program, "work");
        let wanted = "demo.rs:3 demo::twice < demo.rs:9 demo::work";
        assert!(lines.iter().any(|line| line.ends_with(wanted)), "{split} {version}: {lines:#?}");
        let _ = std::fs::remove_file(folder.path("program.dwp"));
    }
}

#[test]
fn a_file_of_another_build_is_refused() {
    let folder = source();
    folder.run("gcc -O1 -g -o program demo/demo.c");
    let program = folder.path("program");
    let id = build_id(&program);
    let planted = folder.path(&format!("debug/.build-id/{}/{}.debug", &id[..2], &id[2..]));
    std::fs::create_dir_all(planted.parent().unwrap()).unwrap();
    // Other code, so another id.
    folder.run("gcc -O2 -g -DOTHER -o other demo/demo.c");
    std::fs::copy(folder.path("other"), &planted).unwrap();
    folder.run("strip program");
    let mut lookup = Lookup::new(debug_dir(&folder.path("debug")), module(&program));
    let report = lookup.report();
    assert_eq!(report.lines, Lines::NamesOnly);
    let refusal = &report.tried.iter().find(|tried| tried.path == planted).unwrap().refusal;
    assert!(matches!(refusal, Refusal::OtherBuild { found: Some(_) }), "{refusal:?}");

    // Nor is the program itself, when the profile is of another build.
    let other = Module { build: "00112233445566778899".into(), ..module(&program) };
    let report = Lookup::new(SymbolOptions::default(), other).report();
    assert!(matches!(report.lines, Lines::NoFile(Refusal::OtherBuild { .. })), "{report:?}");
}

#[cfg(unix)]
#[test]
fn what_is_no_regular_file_is_refused_without_waiting() {
    let folder = source();
    folder.run("mkfifo pipe");
    folder.run("ln -s loop2 loop1");
    folder.run("ln -s loop1 loop2");
    for (name, wanted) in [
        ("pipe", Refusal::NotRegular),
        ("demo", Refusal::NotRegular),
        ("loop1", Refusal::LinkLoop),
        ("nothing", Refusal::Missing),
        ("demo/demo.c", Refusal::NotElf("not an ELF file")),
    ] {
        let report = Lookup::of(&folder.path(name)).report();
        assert_eq!(report.lines, Lines::NoFile(wanted), "{name}");
    }
    let device = Lookup::of(Path::new("/dev/zero")).report();
    assert!(matches!(device.lines, Lines::NoFile(Refusal::NoPath | Refusal::NotRegular)), "{device:?}");
}
