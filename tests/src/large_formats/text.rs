//! Files of lines.

use std::io::{self, Write};

use super::{Program, file, function_of, line_of, name};
use crate::large_profile::SITES_PER_FUNCTION;

/// Of what address a call site is.
pub(super) fn address(site: u64) -> u64 {
    0x40_1000 + site * 64
}

pub(super) fn folded(program: &Program, out: &mut dyn Write) -> io::Result<()> {
    program.each_stack(|stack| {
        for (at, &site) in stack.iter().enumerate() {
            let function = function_of(site);
            let semicolon = if at > 0 { ";" } else { "" };
            write!(out, "{semicolon}{} ({}:{})", name(function), file(function, "py"), line_of(site))?;
        }
        writeln!(out, " 1")
    })
}

pub(super) fn perf(program: &Program, out: &mut dyn Write) -> io::Result<()> {
    let mut time = 0_u64;
    program.each_stack(|stack| {
        time += 1_001_003;
        writeln!(
            out,
            "shop  4321 [001] {}.{:06}:   10101010 cpu-clock:ppp:",
            time / 1_000_000_000,
            time / 1000 % 1_000_000
        )?;
        for &site in stack.iter().rev() {
            let function = function_of(site);
            writeln!(out, "\t{:16x} {}+0x{:x} (/usr/bin/shop)", address(site), name(function), site % 13 * 64)?;
            writeln!(out, "  {}:{}", file(function, "c"), line_of(site))?;
        }
        writeln!(out)
    })
}

pub(super) fn austin(program: &Program, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "# austin: 3.7.0\n# interval: 5000\n# mode: wall\n")?;
    program.each_stack(|stack| {
        write!(out, "P4321;T0:4322")?;
        for &site in stack {
            let function = function_of(site);
            write!(out, ";{}:{}:{}", file(function, "py"), name(function), line_of(site))?;
        }
        writeln!(out, " 5003")
    })
}

/// What Go writes with `debug=1`, without its comments.
pub(super) fn heap(program: &Program, out: &mut dyn Write) -> io::Result<()> {
    let count = program.samples;
    writeln!(
        out,
        "heap profile: {count}: {} [{count}: {}] @ heap/1048576",
        u64::from(count) * 512,
        u64::from(count) * 512
    )?;
    program.each_stack(|stack| {
        write!(out, "1: 512 [1: 512] @")?;
        for &site in stack.iter().rev() {
            write!(out, " {:#x}", address(site))?;
        }
        writeln!(out)
    })?;
    writeln!(out, "\nMAPPED_LIBRARIES:\n00400000-7f0000000000 r-xp 00000000 08:01 4 /usr/bin/shop")
}

pub(super) fn jemalloc(program: &Program, out: &mut dyn Write) -> io::Result<()> {
    let count = program.samples;
    writeln!(out, "heap_v2/524288\n  t*: {count}: {} [0: 0]", u64::from(count) * 512)?;
    program.each_stack(|stack| {
        write!(out, "@")?;
        for &site in stack.iter().rev() {
            write!(out, " {:#x}", address(site))?;
        }
        writeln!(out, "\n  t*: 1: 512 [0: 0]\n  t0: 1: 512 [0: 0]")
    })?;
    writeln!(out, "\nMAPPED_LIBRARIES:\n00400000-7f0000000000 r-xp 00000000 08:01 4 /usr/bin/shop")
}

/// Every line that calls, with what it costs itself and what its call costs.
pub(super) fn callgrind(program: &Program, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "# callgrind format\nversion: 1\ncreator: callgrind-3.19.0\ncmd: shop\npositions: line\nevents: Ir")?;
    let mut total = 0;
    for function in 0..program.functions() {
        // The same name stands for the same file; a number would do after the first time.
        writeln!(out, "\nfl={}\nfn={}", file(function, "c"), name(function))?;
        for site in function * SITES_PER_FUNCTION..(function + 1) * SITES_PER_FUNCTION {
            let (line, own) = (line_of(site), 10 + site % 97);
            let callee = program.graph.callee(site);
            total += own;
            writeln!(
                out,
                "{line} {own}\ncfi={}\ncfn={}\ncalls=3 {}\n{line} {}",
                file(callee, "c"),
                name(callee),
                1,
                own * 7
            )?;
        }
    }
    writeln!(out, "\ntotals: {total}")
}

pub(super) fn cachegrind(program: &Program, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "desc: I1 cache: 32768 B, 64 B, 8-way associative\ncmd: shop\nevents: Ir I1mr ILmr Dr D1mr DLmr")?;
    let mut totals = [0; 6];
    for function in 0..program.functions() {
        writeln!(out, "fl={}\nfn={}", file(function, "c"), name(function))?;
        for site in function * SITES_PER_FUNCTION..(function + 1) * SITES_PER_FUNCTION {
            let costs = [10 + site % 97, site % 3, site % 2, site % 41, site % 5, site % 2];
            write!(out, "{}", line_of(site))?;
            for (cost, total) in costs.iter().zip(&mut totals) {
                *total += cost;
                write!(out, " {cost}")?;
            }
            writeln!(out)?;
        }
    }
    writeln!(out, "summary: {}", totals.map(|total| total.to_string()).join(" "))
}
