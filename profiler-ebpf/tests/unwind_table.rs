//! Tables against another reader of the same rules, on real files and on broken ones.

use std::path::{Path, PathBuf};
use std::process::Command;

use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{ExplicitModuleSectionInfo, FrameAddress, Module, Unwinder as _};
use object::{Object as _, ObjectSection as _};
use profiler_ebpf::unwind_table::{Cfa, FramePointer, Image, Rule, Rules, build};
use proptest::prelude::*;

type Elf<'a> = object::read::elf::ElfFile64<'a, object::LittleEndian>;

/// A program with a frame of every shape, built here.
fn built(folder: &Path) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/record/programs/cases.c");
    let program = folder.join("cases");
    let status =
        Command::new("cc").args(["-O2", "-fomit-frame-pointer", "-pthread", "-o"]).arg(&program).arg(source).status();
    assert!(status.is_ok_and(|status| status.success()), "a C compiler is there");
    program
}

fn image(path: &Path) -> Image {
    Image::from_file(std::fs::File::open(path).expect("it is there"), &[]).expect("it is a program")
}

/// The stack that both unwinders read: every word of it says where it lies.
const STACK: std::ops::Range<u64> = 0x7fff_0000_0000..0x7fff_0010_0000;

fn word(address: u64) -> Result<u64, ()> {
    if STACK.contains(&address) && STACK.contains(&(address + 7)) { Ok(address ^ 0x5555_0000_0000) } else { Err(()) }
}

/// What the kernel program does with a rule: caller's pc, sp and fp.
fn follow(rule: Rule, pc: u64, sp: u64, fp: u64) -> Option<(u64, u64, u64)> {
    let at = |base: u64, offset: i32| base.wrapping_add_signed(i64::from(offset));
    let (cfa, return_address) = match rule.cfa {
        Cfa::StackPointer => (at(sp, rule.cfa_offset), rule.extra),
        Cfa::FramePointer => (at(fp, rule.cfa_offset), rule.extra),
        Cfa::Plt => (sp + if pc & 15 >= u64::try_from(rule.cfa_offset).ok()? { 16 } else { 8 }, -8),
        Cfa::DerefFramePointer => (at(word(at(fp, rule.cfa_offset)).ok()?, rule.extra), -8),
        Cfa::DerefStackPointer => (at(word(at(sp, rule.cfa_offset)).ok()?, rule.extra), -8),
        _ => return None,
    };
    let caller_fp = match rule.fp {
        FramePointer::Same => fp,
        FramePointer::AtCfa => word(at(cfa, rule.fp_offset)).ok()?,
        FramePointer::AtFramePointer => word(at(fp, rule.fp_offset)).ok()?,
        FramePointer::Lost => return None,
    };
    Some((word(at(cfa, return_address)).ok()?, cfa, caller_fp))
}

/// Asserts that table and framehop find the same caller from any address of a file; how many were compared.
fn compare(path: &Path, steps: u64) -> u64 {
    let bytes = std::fs::read(path).expect("it is there");
    let file = Elf::parse(bytes.as_slice()).expect("it is a program");
    let mut rules = Rules::default();
    let table = build(&image(path), &mut rules).expect("it has rules");

    let section = |name: &str| {
        let section = file.section_by_name(name)?;
        let range = section.address()..section.address() + section.size();
        Some((range, section.data().ok()?.to_vec()))
    };
    let (text, eh_frame) = (section(".text").expect("code"), section(".eh_frame").expect("rules"));
    let header = section(".eh_frame_hdr");
    let end = 1 << 40;
    let module = Module::new(
        "it".into(),
        0..end,
        0,
        ExplicitModuleSectionInfo {
            text_svma: Some(text.0.clone()),
            eh_frame_svma: Some(eh_frame.0.clone()),
            eh_frame: Some(eh_frame.1.clone()),
            eh_frame_hdr_svma: header.clone().map(|header| header.0),
            eh_frame_hdr: header.map(|header| header.1),
            ..Default::default()
        },
    );
    let mut unwinder = UnwinderX86_64::new();
    unwinder.add_module(module);
    let mut cache = CacheX86_64::<_>::new();

    let (sp, fp) = (STACK.start + 0x8000, STACK.start + 0x9000);
    let mut compared = 0;
    let mut address = text.0.start;
    while address < text.0.end {
        let rule = rules.all()[usize::from(table.rule_at(address))];
        if let Some(ours) = follow(rule, address, sp, fp) {
            let mut registers = UnwindRegsX86_64::new(address, sp, fp);
            let caller =
                unwinder.unwind_frame(FrameAddress::InstructionPointer(address), &mut registers, &mut cache, &mut word);
            if let Ok(Some(pc)) = caller {
                let theirs = (pc, registers.sp(), registers.bp());
                assert_eq!(ours, theirs, "{}: {address:#x} by {rule:?}", path.display());
                compared += 1;
            }
        }
        address += steps;
    }
    compared
}

/// framehop has no rule for stubs of linkers and reads instructions where there are no rules, so only code with rules is
/// compared; that is nearly all of it.
#[test]
fn tables_and_framehop_find_the_same_callers() {
    let folder = tempfile::tempdir().unwrap();
    let program = built(folder.path());
    assert!(compare(&program, 1) > 500);
    for library in ["/lib/x86_64-linux-gnu/libc.so.6", "/usr/lib/x86_64-linux-gnu/libstdc++.so.6"] {
        if Path::new(library).exists() {
            assert!(compare(Path::new(library), 7) > 50_000, "{library}");
        }
    }
}

#[test]
fn every_page_can_be_searched_by_itself() {
    let folder = tempfile::tempdir().unwrap();
    for path in [built(folder.path()), std::env::current_exe().unwrap()] {
        let mut rules = Rules::default();
        let table = build(&image(&path), &mut rules).unwrap();
        assert_eq!(rules.all()[0], Rule::plain(Cfa::None));
        assert!(rules.all().len() < 2000 && rules.refused() == 0);
        assert_eq!(table.base & 0xffff, 0);
        let mut next = 0;
        for page in &table.pages {
            assert_eq!(page.start, next, "pages follow each other");
            next = page.end;
            let rows = &table.rows[page.start as usize..page.end as usize];
            assert_eq!(rows[0] >> 16, 0, "a page begins with the rule in force");
            assert!(rows.is_sorted_by_key(|row| row >> 16));
            assert!(rows.windows(2).all(|pair| pair[0] >> 16 != pair[1] >> 16), "an address has one rule");
        }
        assert_eq!(next as usize, table.rows.len());
        let last = table.base + (table.pages.len() as u64) * 0x1_0000;
        assert_eq!(table.rule_at(table.base.wrapping_sub(1)), 0);
        assert_eq!(table.rule_at(last), 0);
    }
}

#[test]
fn a_file_and_its_memory_give_the_same_table() {
    struct OwnMemory;
    impl profiler_ebpf::unwind_table::Memory for OwnMemory {
        fn read(&self, address: u64, to: &mut [u8]) -> std::io::Result<()> {
            use std::os::unix::fs::FileExt as _;
            std::fs::File::open("/proc/self/mem")?.read_exact_at(to, address)
        }
    }
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let line = maps.lines().find(|line| line.ends_with("/libc.so.6")).unwrap();
    let start = u64::from_str_radix(line.split('-').next().unwrap(), 16).unwrap();
    let path = line.split_ascii_whitespace().last().unwrap();

    let (file, memory) = (image(Path::new(path)), Image::from_memory(&OwnMemory, start).unwrap());
    assert_eq!((&file.loads, &file.build_id), (&memory.loads, &memory.build_id));
    let (mut rules, mut again) = (Rules::default(), Rules::default());
    let (a, b) = (build(&file, &mut rules).unwrap(), build(&memory, &mut again).unwrap());
    assert_eq!((a.pages, a.rows), (b.pages, b.rows));

    // The kernel's own library has no file at all.
    let vdso = maps.lines().find(|line| line.ends_with("[vdso]")).unwrap();
    let start = u64::from_str_radix(vdso.split('-').next().unwrap(), 16).unwrap();
    let table = build(&Image::from_memory(&OwnMemory, start).unwrap(), &mut rules).unwrap();
    assert!(table.functions > 2);
}

#[test]
fn signal_frames_and_outermost_frames_are_known() {
    let mut rules = Rules::default();
    let libc = Path::new("/lib/x86_64-linux-gnu/libc.so.6");
    if libc.exists() {
        build(&image(libc), &mut rules).unwrap();
        for cfa in [Cfa::Signal, Cfa::End, Cfa::Plt] {
            assert!(rules.all().iter().any(|rule| rule.cfa == cfa), "{cfa:?}");
        }
    }
}

#[test]
fn the_part_that_is_executable_decides_the_bias() {
    // As lld lays files out: two parts share a page of the file, at different distances from their addresses.
    use profiler_ebpf::unwind_table::Load;
    let load = |offset, file_size, address, executable| Load { offset, file_size, address, executable };
    let image = Image {
        loads: vec![load(0, 0x1890, 0, false), load(0x1890, 0x2000, 0x2890, true), load(0x3890, 0x100, 0x5890, false)],
        ..Image::default()
    };
    assert_eq!(image.bias(0x7000_0000_2000, 0x1000), Some(0x7000_0000_0000));
    assert_eq!(image.bias(0x7000_0000_2000, 0x9000), None);
    let fixed = Image { loads: vec![load(0, 0x2000, 0x40_0000, true)], ..Image::default() };
    assert_eq!(fixed.bias(0x40_0000, 0), Some(0));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// A target's file is its user's business; whatever is in it must not stop the recorder.
    #[test]
    fn broken_files_give_a_table_or_none(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..60),
        cut in any::<prop::sample::Index>(),
        whole in any::<bool>(),
    ) {
        static PROGRAM: std::sync::LazyLock<Vec<u8>> = std::sync::LazyLock::new(|| {
            let folder = tempfile::tempdir().expect("a folder");
            std::fs::read(built(folder.path())).expect("it was built")
        });
        let mut bytes = PROGRAM.clone();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if !whole {
            bytes.truncate(cut.index(bytes.len()));
        }
        let mut rules = Rules::default();
        if let Ok(image) = Image::from_bytes(&bytes)
            && let Ok(table) = build(&image, &mut rules)
        {
            for address in [0, 1, table.base, u64::MAX] {
                let _ = table.rule_at(address);
            }
            let _ = image.bias(0x1000, 0x1000);
        }
    }

    /// Rules themselves, not their surroundings: any bytes as `.eh_frame`.
    #[test]
    fn any_rules_give_a_table_or_none(data in proptest::collection::vec(any::<u8>(), 0..400), address in any::<u64>()) {
        use profiler_ebpf::unwind_table::Section;
        let section = Section { address, data };
        let mut rules = Rules::default();
        let _ = build(&Image { eh_frame: Some(section.clone()), ..Image::default() }, &mut rules);
        let _ = build(&Image { debug_frame: Some(section.clone()), ..Image::default() }, &mut rules);
        let mut go = section;
        go.data.splice(0..0, [0xf1, 0xff, 0xff, 0xff, 0, 0, 1, 8]);
        let _ = build(&Image { gopclntab: Some(go), go_text: Some(0x1000), ..Image::default() }, &mut rules);
    }
}
