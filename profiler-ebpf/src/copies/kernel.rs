//! Names for the kernel's part of stacks.
//!
//! Addresses stay here; what leaves are names, each with a number of its own. Where the kernel hides
//! its addresses, there is one nameless function.

use std::fs::File;
use std::io::{BufRead, BufReader};

use rustc_hash::FxHashMap;

use crate::protocol::{KernelSymbol, event};

/// Most symbols that are read.
const MAX_SYMBOLS: usize = 2_000_000;

/// The kernel's functions by address, read when the first one is asked for.
#[derive(Default)]
pub(super) struct Kernel {
    symbols: Option<Vec<(u64, Box<str>)>>,
    told: FxHashMap<usize, u32>,
}

impl Kernel {
    /// The number of the function that holds an address.
    pub(super) fn name(&mut self, address: u64, tell: &mut impl FnMut(event::Kind)) -> u32 {
        let symbols = self.symbols.get_or_insert_with(read);
        let row = symbols.partition_point(|(start, _)| *start <= address);
        let next = u32::try_from(self.told.len() + 1).unwrap_or(u32::MAX);
        *self.told.entry(row).or_insert_with(|| {
            let text = row.checked_sub(1).map_or("", |row| &*symbols[row].1);
            let (name, module) = text.split_once('\t').unwrap_or((text, ""));
            let module = module.trim_matches(['[', ']']).to_owned();
            tell(event::Kind::KernelSymbol(KernelSymbol { id: next, name: name.to_owned(), module }));
            next
        })
    }
}

fn read() -> Vec<(u64, Box<str>)> {
    let Ok(file) = File::open("/proc/kallsyms") else { return Vec::new() };
    let mut symbols: Vec<(u64, Box<str>)> =
        BufReader::new(file).lines().map_while(Result::ok).take(MAX_SYMBOLS).filter_map(|line| parse(&line)).collect();
    symbols.sort_by_key(|(address, _)| *address);
    symbols
}

/// Reads `ffffffff81000000 T _stext` or `… t name\t[module]`; `None` for data and hidden addresses.
fn parse(line: &str) -> Option<(u64, Box<str>)> {
    let mut fields = line.splitn(3, ' ');
    let address = u64::from_str_radix(fields.next()?, 16).ok()?;
    let is_code = matches!(fields.next()?, "T" | "t" | "W" | "w");
    (is_code && address != 0).then(|| Some((address, fields.next()?.into())))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_has_names_and_hidden_code_has_none() {
        assert_eq!(parse("ffffffff81000000 T _stext"), Some((0xffff_ffff_8100_0000, "_stext".into())));
        assert_eq!(parse("ffffffffc0000000 t init\t[ext4]"), Some((0xffff_ffff_c000_0000, "init\t[ext4]".into())));
        assert_eq!(parse("0000000000000000 T _stext"), None);
        assert_eq!(parse("ffffffff81000000 D data"), None);
        assert_eq!(parse("x"), None);
    }

    #[test]
    fn equal_functions_have_one_number() {
        let symbols = vec![(0x10, "first".into()), (0x20, "second\t[module]".into())];
        let mut kernel = Kernel { symbols: Some(symbols), told: FxHashMap::default() };
        let mut told = Vec::new();
        let numbers: Vec<u32> =
            [0x12, 0x1f, 0x20, 0x99, 0x01].map(|address| kernel.name(address, &mut |said| told.push(said))).to_vec();
        assert_eq!(numbers, [1, 1, 2, 2, 3]);
        let symbol = |id, name: &str, module: &str| {
            event::Kind::KernelSymbol(KernelSymbol { id, name: name.into(), module: module.into() })
        };
        assert_eq!(told, [symbol(1, "first", ""), symbol(2, "second", "module"), symbol(3, "", "")]);
    }
}
