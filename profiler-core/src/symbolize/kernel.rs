//! Names of kernel functions, from `/proc/kallsyms`.

use super::{Avma, Frame};

/// Most symbols that are read.
const MAX_SYMBOLS: usize = 4 << 20;

/// The functions of a running kernel and its modules.
///
/// ```
/// use profiler_core::symbolize::{Avma, KernelSymbols};
/// let symbols = KernelSymbols::parse("ffffffff81000000 T _stext\nffffffff81000100 t do_work\n\
///     ffffffffc0000000 t helper\t[kvm]\n");
/// assert_eq!(symbols.find(Avma(0xffff_ffff_8100_0180)), Some(("do_work", "")));
/// assert_eq!(symbols.find(Avma(0xffff_ffff_c000_0010)), Some(("helper", "kvm")));
/// assert_eq!(symbols.find(Avma(0x1000)), None);
/// ```
#[derive(Clone, Debug, Default)]
pub struct KernelSymbols {
    text: String,
    /// Sorted by address.
    symbols: Vec<Symbol>,
}

/// A symbol; name and module are places in the text.
#[derive(Clone, Copy, Debug)]
struct Symbol {
    address: u64,
    name: (u32, u32),
    module: (u32, u32),
}

impl KernelSymbols {
    /// Reads the file's content. Data symbols are left out.
    pub fn parse(text: &str) -> Self {
        let text = text.get(..text.len().min(u32::MAX as usize)).unwrap_or_default().to_owned();
        let place = |word: &str| {
            let start = u32::try_from(word.as_ptr() as usize - text.as_ptr() as usize).unwrap_or(0);
            (start, start + u32::try_from(word.len()).unwrap_or(0))
        };
        let symbols = text.lines().take(MAX_SYMBOLS).filter_map(|line| {
            let mut words = line.split_ascii_whitespace();
            let address = u64::from_str_radix(words.next()?, 16).ok()?;
            let is_code = matches!(words.next()?, "T" | "t" | "W" | "w");
            let name = words.next()?;
            let module = words.next().and_then(|word| word.strip_prefix('[')?.strip_suffix(']'));
            (is_code && address != 0).then(|| Symbol {
                address,
                name: place(name),
                module: module.map_or((0, 0), place),
            })
        });
        let mut symbols: Vec<_> = symbols.collect();
        symbols.sort_by_key(|symbol| symbol.address);
        Self { text, symbols }
    }

    /// Whether there is nothing: the kernel shows addresses only to the privileged, and zeros to
    /// others.
    pub fn is_empty(&self) -> bool {
        self.symbols.is_empty()
    }

    /// The function at an address, and its module; `""` for the kernel itself.
    pub fn find(&self, address: Avma) -> Option<(&str, &str)> {
        let end = self.symbols.partition_point(|symbol| symbol.address <= address.0);
        // Of several names at one address the first of the file.
        let last = self.symbols[..end].last()?.address;
        let first = self.symbols[..end].partition_point(|symbol| symbol.address < last);
        let Symbol { name, module, .. } = self.symbols[first];
        let text = |(start, end): (u32, u32)| self.text.get(start as usize..end as usize).unwrap_or_default();
        Some((text(name), text(module)))
    }

    /// The frame at an address: a name, as there is no source.
    pub fn frame(&self, address: Avma) -> Option<Frame> {
        let (name, _) = self.find(address)?;
        Some(Frame { name: name.into(), ..Frame::default() })
    }
}
