//! Names of the kernel's functions. Addresses go in and never come out.

use std::io::{self, BufRead};

/// Most functions that are kept.
const MAX_SYMBOLS: usize = 1 << 20;
/// Names longer than this are cut; their length is a byte.
const MAX_NAME: usize = 255;

/// The kernel's functions by address.
#[derive(Debug, Default)]
pub struct KernelSymbols {
    /// Address, and where the name begins in `names`; sorted.
    symbols: Vec<(u64, u32)>,
    /// Names and modules, each with its length before it.
    names: Vec<u8>,
}

/// The name of a function of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KernelName<'a> {
    /// The function.
    pub function: &'a str,
    /// Its module; empty for the kernel itself.
    pub module: &'a str,
}

impl KernelSymbols {
    /// Reads `/proc/kallsyms`. Without the right to see addresses they are all zero: nothing is kept then.
    pub fn parse(text: impl BufRead) -> io::Result<Self> {
        let mut all = Self::default();
        for line in text.split(b'\n') {
            let line = line?;
            let Ok(line) = str::from_utf8(&line) else { continue };
            let mut fields = line.split_ascii_whitespace();
            let (Some(address), Some(kind), Some(name)) = (fields.next(), fields.next(), fields.next()) else {
                continue;
            };
            let Ok(address) = u64::from_str_radix(address, 16) else { continue };
            if address == 0 || !matches!(kind, "t" | "T" | "w" | "W") || all.symbols.len() == MAX_SYMBOLS {
                continue;
            }
            let module = fields.next().unwrap_or_default().trim_matches(['[', ']']);
            let Ok(at) = u32::try_from(all.names.len()) else { break };
            all.push(name);
            all.push(module);
            all.symbols.push((address, at));
        }
        all.symbols.sort_by_key(|symbol| symbol.0);
        all.symbols.shrink_to_fit();
        all.names.shrink_to_fit();
        Ok(all)
    }

    fn push(&mut self, text: &str) {
        let cut = &text[..text.floor_char_boundary(MAX_NAME)];
        self.names.push(u8::try_from(cut.len()).unwrap_or(u8::MAX));
        self.names.extend(cut.as_bytes());
    }

    /// Whether there are names at all.
    pub fn is_empty(&self) -> bool {
        self.symbols.is_empty()
    }

    /// Which function an address is in: its number, and its name.
    pub fn find(&self, address: u64) -> Option<(usize, KernelName<'_>)> {
        let at = self.symbols.partition_point(|symbol| symbol.0 <= address).checked_sub(1)?;
        let (function, next) = self.text(self.symbols[at].1 as usize)?;
        let (module, _) = self.text(next)?;
        Some((at, KernelName { function, module }))
    }

    fn text(&self, at: usize) -> Option<(&str, usize)> {
        let end = at + 1 + usize::from(*self.names.get(at)?);
        Some((str::from_utf8(self.names.get(at + 1..end)?).ok()?, end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
ffffffff81000000 T startup_64
ffffffff81000100 t do_work
ffffffff81000180 D some_data
ffffffffc0000000 t helper\t[ext4]
";

    #[test]
    fn functions_are_found_by_any_address_in_them() {
        let symbols = KernelSymbols::parse(TEXT.as_bytes()).unwrap();
        let name = |address| {
            symbols.find(address).map(|(_, name)| format!("{} {}", name.function, name.module).trim().to_owned())
        };
        assert_eq!(name(0x1000), None);
        assert_eq!(name(0xffff_ffff_8100_0000).as_deref(), Some("startup_64"));
        assert_eq!(name(0xffff_ffff_8100_0190).as_deref(), Some("do_work"));
        assert_eq!(name(0xffff_ffff_c000_0001).as_deref(), Some("helper ext4"));
    }

    #[test]
    fn hidden_addresses_are_no_symbols() {
        let hidden = TEXT.replace("ffffffff810001", "0000000000000").replace("ffffffff81000000", "0000000000000000");
        let symbols = KernelSymbols::parse(hidden.lines().next().unwrap().as_bytes()).unwrap();
        assert!(symbols.is_empty());
    }

    #[test]
    fn broken_lines_are_skipped() {
        let long = format!("ffffffff81000000 T {}\n", "é".repeat(500));
        let symbols = KernelSymbols::parse(format!("\nxyz\n1 T\n{long}").as_bytes()).unwrap();
        let _ = symbols.find(u64::MAX);
    }
}
