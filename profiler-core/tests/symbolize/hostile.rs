//! Damaged files, and files made to hurt: an answer or a reason, soon, and never a panic.

use std::sync::LazyLock;

use profiler_core::cancel::CancelFlag;
use profiler_core::symbolize::{
    Elf, FileOffset, FrameAddress, JitDump, KernelSymbols, Module, ModuleAddress, PerfMap, Reason, Svma, SymbolOptions,
    Symbolizer,
};
use proptest::prelude::*;

use super::programs::{Folder, Lookup, function, shown, text};

const SOURCE: &str = "\
static inline __attribute__((always_inline)) int twice(int x) { volatile int y = x; return y * 2; }
__attribute__((noinline)) int work(int x) { return twice(x) + twice(x + 1); }
int main(int argc, char** argv) { return work(argc); }
";

/// A small program, and the same with packed sections and with Go's table.
static PROGRAMS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let folder = Folder::new(&[("a.c", SOURCE), ("a.go", "package main\nfunc main() { println(1) }\n")]);
    folder.run("gcc -O1 -gdwarf-5 -nostartfiles -static -Wl,-e,main -o five a.c");
    folder.run("gcc -O1 -gdwarf-4 -gz=zlib -nostartfiles -static -Wl,-e,main -o four a.c");
    ["five", "four"].map(|name| std::fs::read(folder.path(name)).unwrap()).into()
});

/// Asks for everything; there must be an answer for each address.
fn ask(bytes: &[u8]) {
    let folder = Folder::new(&[]);
    let path = folder.path("program");
    std::fs::write(&path, bytes).unwrap();
    let mut symbolizer = Symbolizer::new(SymbolOptions::default());
    let module = symbolizer.add(Module { path, ..Module::default() });
    let stated = (0..64).map(|step| ModuleAddress::Stated(Svma(0x40_1000 + step * 3)));
    let offsets = (0..16).map(|step| ModuleAddress::Offset(FileOffset(0x1000 + step * 16)));
    let extremes = [0, 1, u64::MAX - 1, u64::MAX];
    let extremes =
        extremes.into_iter().flat_map(|at| [ModuleAddress::Stated(Svma(at)), ModuleAddress::Offset(FileOffset(at))]);
    let addresses: Vec<_> = stated.chain(offsets).chain(extremes).collect();
    let answers = symbolizer.symbolize(module, &addresses, &CancelFlag::new());
    assert_eq!(answers.len(), addresses.len());
    for frames in answers.into_iter().flatten() {
        assert!(!frames.is_empty());
    }
}

#[test]
fn the_undamaged_program_is_read() {
    for bytes in &*PROGRAMS {
        let elf = Elf::from_bytes(bytes.clone()).unwrap();
        assert!(elf.has_section(".debug_info"));
        ask(bytes);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn flipped_bytes(
        which in 0..2_usize,
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
    ) {
        let mut bytes = PROGRAMS[which].clone();
        for (at, value) in flips {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        ask(&bytes);
    }

    /// Numbers at places where numbers are: sizes, offsets, counts that are far too large.
    #[test]
    fn wild_numbers(which in 0..2_usize, at in any::<prop::sample::Index>(), value in prop_oneof![
        Just(u64::MAX), Just(1 << 63), Just(u64::from(u32::MAX)), Just(1 << 40), any::<u64>()
    ]) {
        let mut bytes = PROGRAMS[which].clone();
        let at = at.index(bytes.len() - 8);
        bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
        ask(&bytes);
    }

    #[test]
    fn cut_anywhere(which in 0..2_usize, at in any::<prop::sample::Index>()) {
        let bytes = &PROGRAMS[which];
        ask(&bytes[..at.index(bytes.len())]);
    }

    #[test]
    fn any_text_is_some_map(text in "([0-9a-f]{1,16} [0-9a-f]{1,16} .{0,12}\n|.{0,20}\n){0,20}", at in any::<u64>()) {
        let _ = PerfMap::parse(&text).find(FrameAddress::Return(profiler_core::symbolize::Avma(at)));
        let _ = KernelSymbols::parse(&text).find(profiler_core::symbolize::Avma(at));
    }

    #[test]
    fn any_bytes_are_some_dump(mut bytes in prop::collection::vec(any::<u8>(), 0..400), at in any::<u64>()) {
        if bytes.len() > 4 {
            bytes[..4].copy_from_slice(&0x4a69_5444_u32.to_le_bytes());
        }
        if let Ok(dump) = JitDump::parse(&bytes) {
            let _ = dump.find(FrameAddress::Return(profiler_core::symbolize::Avma(at)));
        }
    }
}

/// A hundred thousand calls inside of each other, in a file of a few hundred kilobytes: whoever
/// follows them is out of stack. The function keeps its name.
#[test]
fn nesting_is_not_followed_to_the_end() {
    for (levels, depth) in [(60, 61), (100_000, 1)] {
        let folder = Folder::new(&[("deep.s", &deep(levels))]);
        folder.run("gcc -nostdlib -static -Wl,-e,work -o deep deep.s");
        let program = folder.path("deep");
        let (start, _) = text(&program);
        let frames = Lookup::of(&program).frames(start);
        assert_eq!(&*frames.last().unwrap().name, "work");
        assert_eq!(frames.len(), depth, "{levels} levels");
    }
}

/// Assembly of a function with calls inlined into each other.
fn deep(levels: usize) -> String {
    let mut source = String::from(
        ".text\n.globl work\n.type work,@function\nwork:\nnop\nnop\nret\n.size work,.-work\nend:\n.section .debug_abbrev\n\
         .uleb128 1\n.uleb128 0x11\n.byte 1\n.uleb128 0x11\n.uleb128 1\n.uleb128 0x12\n.uleb128 7\n.byte 0,0\n\
         .uleb128 2\n.uleb128 0x2e\n.byte 1\n.uleb128 3\n.uleb128 8\n.uleb128 0x11\n.uleb128 1\n.uleb128 0x12\n.uleb128 7\n.byte 0,0\n\
         .uleb128 3\n.uleb128 0x1d\n.byte 1\n.uleb128 0x11\n.uleb128 1\n.uleb128 0x12\n.uleb128 7\n.byte 0,0\n.byte 0\n\
         .section .debug_info\n.long done-version\nversion:\n.short 4\n.long .debug_abbrev\n.byte 8\n\
         .uleb128 1\n.quad work\n.quad end-work\n.uleb128 2\n.asciz \"work\"\n.quad work\n.quad end-work\n",
    );
    source.push_str(&".uleb128 3\n.quad work\n.quad end-work\n".repeat(levels));
    source + &format!(".fill {},1,0\ndone:\n", levels + 2)
}

/// One function says that it ends before it begins; the others are as good as ever.
#[test]
fn a_bad_range_costs_nothing_but_itself() {
    let mut source = deep(1).replace(
        ".uleb128 2\n.asciz \"work\"",
        ".uleb128 2\n.asciz \"bad\"\n.quad end\n.quad work-end-8\n.byte 0\n.uleb128 2\n.asciz \"work\"",
    );
    source = source.replace(".uleb128 3\n.quad work\n.quad end-work\n", "");
    let folder = Folder::new(&[("bad.s", &source)]);
    folder.run("gcc -nostdlib -static -Wl,-e,work -o bad bad.s");
    let program = folder.path("bad");
    let (start, _) = text(&program);
    assert_eq!(shown(&Lookup::of(&program).one(start)), ":0 work");
}

/// A unit that states no range at all, as of code generated at run time: its lines do.
#[test]
fn a_unit_without_ranges_is_found_by_its_lines() {
    let source = ".file 1 \"/p/jitted.js\"\n.text\n.globl work\n.type work,@function\nwork:\n.loc 1 7 3\nnop\n.loc 1 8 1\nret\n\
        .size work,.-work\n.section .debug_abbrev\n.uleb128 1\n.uleb128 0x11\n.byte 0\n.uleb128 0x10\n.uleb128 0x17\n.byte 0,0\n.byte 0\n\
        .section .debug_info\n.long done-version\nversion:\n.short 4\n.long .debug_abbrev\n.byte 8\n.uleb128 1\n.long .debug_line\ndone:\n";
    let folder = Folder::new(&[("jitted.s", source)]);
    folder.run("gcc -nostdlib -static -Wl,-e,work -o jitted jitted.s");
    let program = folder.path("jitted");
    let (start, _) = function(&program, "work");
    let mut lookup = Lookup::of(&program);
    assert_eq!(shown(&lookup.one(start)), "jitted.js:7 work");
    assert_eq!(shown(&lookup.one(start + 1)), "jitted.js:8 work");
}

#[test]
fn what_was_cancelled_says_so() {
    let folder = Folder::new(&[("a.c", SOURCE)]);
    folder.run("gcc -O1 -g -o program a.c");
    let mut symbolizer = Symbolizer::new(SymbolOptions::default());
    let module = symbolizer.add(Module { path: folder.path("program"), ..Module::default() });
    let cancel = CancelFlag::new();
    cancel.cancel();
    let answers = symbolizer.symbolize(module, &[ModuleAddress::Stated(Svma(0x1140)); 3], &cancel);
    assert_eq!(answers, [Err(Reason::Cancelled), Err(Reason::Cancelled), Err(Reason::Cancelled)]);
}

/// Two units; an entry of the first one has a form that doesn't exist. Of that unit lines are left, and the name that the
/// symbol has; the other one has everything.
#[test]
fn a_damaged_unit_costs_no_other_and_keeps_its_lines() {
    let folder =
        Folder::new(&[("a.c", SOURCE), ("b.c", "__attribute__((noinline)) int other(int x) { return x * 3; }\n")]);
    folder.run("gcc -O1 -gdwarf-4 -c a.c");
    folder.run("gcc -O1 -gdwarf-4 -c b.c");
    folder.run("gcc -nostartfiles -static -Wl,-e,main -o program a.o b.o");
    let program = folder.path("program");
    let (work, _) = function(&program, "work");
    let (other, _) = function(&program, "other");
    assert_eq!(shown(&Lookup::of(&program).one(other)), "b.c:1 other");
    assert_eq!(shown(&Lookup::of(&program).one(work)), "a.c:1 twice < a.c:2 work");

    // Of the first unit, which is the one with something inlined, a form becomes one that doesn't exist.
    let bytes = std::fs::read(&program).unwrap();
    let elf = object::File::parse(&*bytes).unwrap();
    let section = object::Object::section_by_name(&elf, ".debug_abbrev").unwrap();
    let (start, size) = object::ObjectSection::file_range(&section).unwrap();
    let abbreviations = usize::try_from(start).unwrap()..usize::try_from(start + size).unwrap();
    // DW_AT_inline, DW_FORM_data1.
    let inline = bytes[abbreviations.clone()].windows(2).position(|window| window == [0x20, 0x0b]);
    let inline = inline.expect("something is inlined in the first file");
    let mut damaged = bytes.clone();
    damaged[abbreviations.start + inline + 1] = 0x7e;
    std::fs::write(&program, damaged).unwrap();
    assert_eq!(shown(&Lookup::of(&program).one(other)), "b.c:1 other");
    assert_eq!(shown(&Lookup::of(&program).one(work)), "a.c:1 work");
}

/// A list of ranges that thousands of functions share: reading it for each of them would take gigabytes.
#[test]
fn what_is_shared_is_not_read_for_everyone() {
    let mut source = String::from(
        ".text\n.globl work\n.type work,@function\nwork:\nnop\nret\n.size work,.-work\nend:\n.section .debug_abbrev\n\
         .uleb128 1\n.uleb128 0x11\n.byte 1\n.uleb128 0x11\n.uleb128 1\n.uleb128 0x12\n.uleb128 7\n.byte 0,0\n\
         .uleb128 2\n.uleb128 0x2e\n.byte 0\n.uleb128 0x55\n.uleb128 0x17\n.byte 0,0\n.byte 0\n\
         .section .debug_ranges\nlist:\n",
    );
    source.push_str(&".quad work,work+1\n".repeat(100_000));
    source.push_str(
        ".quad 0,0\n.section .debug_info\n.long done-version\nversion:\n.short 4\n.long .debug_abbrev\n.byte 8\n\
         .uleb128 1\n.quad work\n.quad end-work\n",
    );
    source.push_str(&".uleb128 2\n.long list\n".repeat(100_000));
    source.push_str(".byte 0\ndone:\n");
    let folder = Folder::new(&[("shared.s", &source)]);
    folder.run("gcc -nostdlib -static -Wl,-e,work -o shared shared.s");
    let program = folder.path("shared");
    let (start, _) = text(&program);
    assert_eq!(shown(&Lookup::of(&program).one(start)), ":0 work");
    let peak = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = peak.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap().trim_end_matches("kB").trim();
    assert!(peak.parse::<u64>().unwrap() < 4 << 20, "{peak} KiB");
}
