//! Symbol tables: names of functions, where there is nothing better.

use std::sync::Arc;

use object::read::elf::{FileHeader, SectionHeader, Sym};
use object::{Endianness, elf};
use rustc_hash::FxHashMap;

use super::elf::Elf;

/// Most symbols kept of one file.
const MAX_SYMBOLS: usize = 16 << 20;
/// Most symbols inside of a function that are looked past.
const MAX_INNER: usize = 16;

/// Names of data that somebody needs.
const KEPT_DATA: [&[u8]; 1] = [b"go:func.*"];

/// The functions of a file by address.
#[derive(Debug, Default)]
pub(super) struct Symbols {
    /// Sorted by address; of several at one address the best one.
    sorted: Vec<Symbol>,
    names: Vec<u8>,
    /// Addresses of data, by name.
    data: Vec<(&'static [u8], u64)>,
    /// Names that were asked for.
    asked: FxHashMap<u32, Arc<str>>,
}

#[derive(Clone, Copy, Debug)]
struct Symbol {
    address: u64,
    /// 0 when the file doesn't say.
    size: u64,
    name: u32,
    rank: u8,
}

impl Symbols {
    /// Collects the symbols of files, the best first: of equal addresses the first file wins.
    pub(super) fn of<'a>(files: impl IntoIterator<Item = &'a Elf>) -> Self {
        let mut symbols = Self::default();
        for (order, file) in files.into_iter().enumerate() {
            let order = u8::try_from(order).unwrap_or(u8::MAX);
            symbols.add(file, elf::SHT_SYMTAB, order);
            symbols.add(file, elf::SHT_DYNSYM, order);
        }
        symbols.sorted.sort_by_key(|symbol| (symbol.address, symbol.rank));
        symbols.sorted.dedup_by_key(|symbol| symbol.address);
        symbols.sorted.shrink_to_fit();
        symbols.names.shrink_to_fit();
        symbols
    }

    fn add(&mut self, file: &Elf, kind: object::elf::SectionType, order: u8) {
        match object::FileKind::parse(file.bytes()) {
            Ok(object::FileKind::Elf64) => self.read::<elf::FileHeader64<Endianness>>(file, kind, order),
            Ok(object::FileKind::Elf32) => self.read::<elf::FileHeader32<Endianness>>(file, kind, order),
            _ => None,
        };
    }

    fn read<H: FileHeader<Endian = Endianness>>(
        &mut self,
        file: &Elf,
        kind: object::elf::SectionType,
        order: u8,
    ) -> Option<()> {
        let bytes = file.bytes();
        let wants_data = file.has_section(".gopclntab");
        let header = H::parse(bytes).ok()?;
        let endian = header.endian().ok()?;
        let sections = header.sections(endian, bytes).ok()?;
        let table = sections.symbols(endian, bytes, kind).ok()?;
        let is_code: Vec<bool> =
            sections.iter().map(|section| section.sh_flags(endian).contains(elf::SHF_EXECINSTR)).collect();
        for symbol in table.iter() {
            let address: u64 = symbol.st_value(endian).into();
            let rank = match symbol.st_type() {
                elf::STT_FUNC | elf::STT_GNU_IFUNC | elf::STT_OBJECT => 0,
                elf::STT_NOTYPE => 4,
                _ => continue,
            };
            if address == 0 || self.sorted.len() >= MAX_SYMBOLS {
                continue;
            }
            let is_code = is_code.get(usize::from(symbol.st_shndx(endian).0)).copied().unwrap_or(false);
            if !is_code && !wants_data {
                continue;
            }
            let Ok(name) = table.symbol_name(endian, symbol) else { continue };
            if !is_code {
                self.data.extend(KEPT_DATA.iter().find(|&&kept| kept == name).map(|&kept| (kept, address)));
                continue;
            }
            // Labels that compilers and assemblers leave behind are no functions.
            let is_label = name.is_empty() || name.starts_with(b".L") || name.starts_with(b"$");
            if is_label || name.len() > usize::from(u16::MAX) {
                continue;
            }
            let binding = match symbol.st_bind() {
                elf::STB_GLOBAL => 0,
                elf::STB_WEAK => 1,
                _ => 2,
            };
            let Ok(at) = u32::try_from(self.names.len()) else { break };
            let size: u64 = symbol.st_size(endian).into();
            let unsized_rank = if size == 0 { 8 } else { 0 };
            self.names.extend_from_slice(&u16::try_from(name.len()).unwrap_or(0).to_le_bytes());
            self.names.extend_from_slice(name);
            self.sorted.push(Symbol {
                address,
                size,
                name: at,
                rank: order.min(7) << 5 | unsized_rank | rank | binding,
            });
        }
        Some(())
    }

    pub(super) fn heap_size(&self) -> usize {
        self.sorted.len() * 24 + self.names.len()
    }

    /// The address of a name that was kept apart: see [`KEPT_DATA`].
    pub(super) fn address_of(&self, name: &[u8]) -> Option<u64> {
        self.data.iter().find(|(known, _)| known == &name).map(|(_, address)| *address)
    }

    /// The name of the function at an address.
    pub(super) fn find(&mut self, address: u64) -> Option<Arc<str>> {
        let end = self.sorted.partition_point(|symbol| symbol.address <= address);
        // A symbol without a size reaches to the next one. One with a size may have labels and
        // aliases inside of it.
        let mut before = self.sorted[..end].iter().rev().take(MAX_INNER).enumerate();
        let (_, symbol) =
            before.find(
                |(distance, symbol)| {
                    if symbol.size == 0 { *distance == 0 } else { address - symbol.address < symbol.size }
                },
            )?;
        if let Some(known) = self.asked.get(&symbol.name) {
            return Some(Arc::clone(known));
        }
        let at = symbol.name as usize;
        let length = usize::from(u16::from_le_bytes([*self.names.get(at)?, *self.names.get(at + 1)?]));
        let name: Arc<str> = String::from_utf8_lossy(self.names.get(at + 2..at + 2 + length)?).into();
        self.asked.insert(symbol.name, Arc::clone(&name));
        Some(name)
    }
}
