//! Speed and memory of symbolising beside its peers: the same addresses of the same binary, one
//! process per tool, all in one run. `docs/benchmarks.md` says how to read it.
//!
//! `cargo bench -p perflens-tests --features peers --bench symbolize -- [BINARY]`

#![allow(clippy::print_stdout, reason = "figures are what it is for")]
#![allow(clippy::unwrap_used, reason = "a measurement that can't go on has failed")]

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use object::{Object, ObjectSection};
use profiler_core::cancel::CancelFlag;
use profiler_core::symbolize::{Module, ModuleAddress, Svma, SymbolOptions, Symbolizer};

const TOOLS: [&str; 3] = ["perflens", "addr2line", "blazesym"];
const COUNTS: [u64; 3] = [100, 2_000, 20_000];
/// Every tool is measured this often; the least of each figure counts, as other work only adds.
const ROUNDS: usize = 5;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    match &args[..] {
        [tool, binary, list] => measure(tool, Path::new(binary), Path::new(list)),
        [binary] => compare(Path::new(binary)),
        _ => compare(perflens_tests::cli::binary()),
    }
}

/// Addresses all over the code, sorted.
fn addresses(binary: &Path, count: u64) -> Vec<u64> {
    let bytes = std::fs::read(binary).unwrap();
    let object = object::File::parse(&*bytes).unwrap();
    let text = object.section_by_name(".text").unwrap();
    let step = (text.size() / count).max(1);
    (0..count).map(|index| text.address() + index * step).collect()
}

/// CPU time of this thread in milliseconds.
fn cpu() -> f64 {
    // The kernel brings the number up to date when the thread gives way.
    std::thread::yield_now();
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    text.split_whitespace().next().unwrap().parse::<f64>().unwrap() / 1e6
}

/// Peak memory in MiB.
fn peak() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find(|line| line.starts_with("VmHWM")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() >> 10
}

/// Looks everything up twice and prints: cold and warm CPU time, wall time of the cold one,
/// memory, frames.
fn measure(tool: &str, binary: &Path, list: &Path) {
    let list = std::fs::read_to_string(list).unwrap();
    let hex = |line: &str| u64::from_str_radix(line.trim_start_matches("0x"), 16).unwrap();
    let addresses: Vec<u64> = list.lines().map(hex).collect();
    let before = peak();
    match tool {
        "perflens" => {
            let asked: Vec<_> = addresses.iter().map(|&address| ModuleAddress::Stated(Svma(address))).collect();
            let mut symbolizer = Symbolizer::new(SymbolOptions::default());
            let module = symbolizer.add(Module { path: binary.to_owned(), ..Module::default() });
            twice(before, || {
                let answers = symbolizer.symbolize(module, &asked, &CancelFlag::new());
                answers
                    .iter()
                    .flatten()
                    .flat_map(|frames| frames.iter())
                    .map(|frame| usize::from(!frame.name.is_empty()))
                    .sum()
            });
        }
        "addr2line" => {
            let mut loader = None;
            twice(before, || {
                let loader = loader.get_or_insert_with(|| addr2line::Loader::new(binary).unwrap());
                let mut named = 0;
                for &address in &addresses {
                    let mut found = 0;
                    let mut frames = loader.find_frames(address).unwrap();
                    while let Ok(Some(frame)) = frames.next() {
                        let has_name =
                            frame.function.is_some_and(|name| name.raw_name().is_ok_and(|name| !name.is_empty()));
                        found += usize::from(has_name);
                    }
                    named += if found == 0 { usize::from(loader.find_symbol(address).is_some()) } else { found };
                }
                named
            });
        }
        "blazesym" => {
            use blazesym::symbolize::{Input, Symbolized, Symbolizer, source};
            let symbolizer = Symbolizer::builder().enable_demangling(false).build();
            let source = source::Source::Elf(source::Elf::new(binary));
            twice(before, || {
                let answers = symbolizer.symbolize(&source, Input::VirtOffset(&addresses)).unwrap();
                let frames = answers.iter().map(|answer| match answer {
                    Symbolized::Sym(symbol) => 1 + symbol.inlined.len(),
                    Symbolized::Unknown(_) => 0,
                });
                frames.sum()
            });
        }
        _ => panic!("no tool {tool}"),
    }
}

fn twice(before: u64, mut look_up: impl FnMut() -> usize) {
    let (start, wall) = (cpu(), Instant::now());
    let frames = look_up();
    let (cold, wall) = (cpu() - start, wall.elapsed().as_secs_f64() * 1e3);
    let memory = peak().saturating_sub(before);
    let start = cpu();
    look_up();
    println!("{cold} {} {wall} {memory} {frames}", cpu() - start);
}

fn load() -> String {
    std::fs::read_to_string("/proc/loadavg").unwrap().split_whitespace().next().unwrap().to_owned()
}

fn compare(binary: &Path) {
    let size = std::fs::metadata(binary).unwrap().len() >> 20;
    println!("{} ({size} MiB), load {}", binary.file_name().unwrap().display(), load());
    println!(
        "{:>9}  {:<15} {:>9} {:>9} {:>9} {:>7} {:>8}",
        "addresses", "tool", "cold CPU", "warm CPU", "cold wall", "memory", "frames"
    );
    let folder = tempfile::tempdir().unwrap();
    let list = folder.path().join("addresses");
    for count in COUNTS {
        let lines = addresses(binary, count).iter().map(|address| format!("{address:#x}\n")).collect::<Vec<_>>();
        std::fs::write(&list, lines.concat()).unwrap();
        let mut least = [[f64::MAX; 5]; TOOLS.len()];
        for _ in 0..ROUNDS {
            for (tool, least) in TOOLS.iter().zip(&mut least) {
                let this = std::env::current_exe().unwrap();
                let output = Command::new(this).arg(tool).arg(binary).arg(&list).output().unwrap();
                assert!(output.status.success(), "{tool}: {}", String::from_utf8_lossy(&output.stderr));
                let text = String::from_utf8_lossy(&output.stdout).into_owned();
                for (least, figure) in least.iter_mut().zip(text.split_whitespace()) {
                    *least = least.min(figure.parse().unwrap());
                }
            }
        }
        for (tool, [cold, warm, wall, memory, frames]) in TOOLS.iter().zip(least) {
            println!("{count:>9}  {tool:<15} {cold:>6.1} ms {warm:>6.2} ms {wall:>6.1} ms {memory:>3} MiB {frames:>8}");
        }
        if let Some((user, memory)) = llvm(binary, &list) {
            println!("{count:>9}  {:<15} {user:>6.1} ms {:>9} {:>9} {memory:>3} MiB", "llvm-symbolizer", "", "");
        }
    }
    println!("load {}", load());
}

/// CPU time and memory of one run, start and end included.
fn llvm(binary: &Path, list: &Path) -> Option<(f64, u64)> {
    let output = Command::new("/usr/bin/time")
        .args(["-f", "%U %S %M", "llvm-symbolizer", "--no-demangle", "--inlines", "--obj"])
        .arg(binary)
        .stdin(std::fs::File::open(list).ok()?)
        .stdout(Stdio::null())
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let figures: Vec<f64> = text.lines().last()?.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let [user, system, memory] = figures[..] else { return None };
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a number of KiB")]
    Some(((user + system) * 1e3, memory as u64 >> 10))
}
