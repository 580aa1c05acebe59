//! Symbol tables: names of functions, where there is nothing better.

use std::ops::Range;
use std::sync::Arc;

use object::read::elf::{FileHeader, SectionHeader, Sym};
use object::{Endianness, elf};
use rustc_hash::FxHashMap;

use super::elf::Elf;

/// Most symbols kept of one file.
const MAX_SYMBOLS: usize = 16 << 20;
/// Most symbols inside of a function that are looked past.
const MAX_INNER: usize = 16;

/// Longer names are none.
const MAX_NAME: usize = 1 << 16;

/// Names of data that somebody needs.
const KEPT_DATA: [&[u8]; 1] = [b"go:func.*"];

/// The functions of a file by address.
#[derive(Debug, Default)]
pub(super) struct Symbols {
    /// Sorted by address; of several at one address the best one.
    sorted: Vec<Symbol>,
    /// Where names are: they stay in their files, since few are ever asked for.
    names: Vec<(Arc<Elf>, Range<usize>)>,
    /// Addresses of data, by name.
    data: Vec<(&'static [u8], u64)>,
    /// Names that were asked for.
    asked: FxHashMap<(u8, u32), Arc<str>>,
}

#[derive(Clone, Copy, Debug)]
struct Symbol {
    address: u64,
    /// 0 when the file doesn't say.
    size: u64,
    /// Where in the table of names.
    name: u32,
    rank: u8,
    /// Which table of names.
    table: u8,
}

impl Symbols {
    /// Collects the symbols of files, the best first: of equal addresses the first file wins.
    pub(super) fn of(files: impl IntoIterator<Item = Arc<Elf>>) -> Self {
        let mut symbols = Self::default();
        for (order, file) in files.into_iter().enumerate() {
            let order = u8::try_from(order).unwrap_or(u8::MAX);
            symbols.add(&file, elf::SHT_SYMTAB, order);
            symbols.add(&file, elf::SHT_DYNSYM, order);
        }
        symbols.sorted.sort_unstable_by_key(|symbol| (symbol.address, symbol.rank, symbol.table, symbol.name));
        symbols.sorted.dedup_by_key(|symbol| symbol.address);
        symbols
    }

    fn add(&mut self, file: &Arc<Elf>, kind: object::elf::SectionType, order: u8) {
        match object::FileKind::parse(file.bytes()) {
            Ok(object::FileKind::Elf64) => self.read::<elf::FileHeader64<Endianness>>(file, kind, order),
            Ok(object::FileKind::Elf32) => self.read::<elf::FileHeader32<Endianness>>(file, kind, order),
            _ => None,
        };
    }

    fn read<H: FileHeader<Endian = Endianness>>(
        &mut self,
        file: &Arc<Elf>,
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
        let (start, length) = sections.section(table.string_section()).ok()?.file_range(endian)?;
        let start = usize::try_from(start).ok()?;
        let range = start..start.checked_add(usize::try_from(length).ok()?)?;
        let names = bytes.get(range.clone())?;
        let place = u8::try_from(self.names.len()).ok()?;
        self.names.push((Arc::clone(file), range));
        self.sorted.reserve(table.len().min(MAX_SYMBOLS));
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
            let at = symbol.st_name(endian);
            let Some(name) = names.get(at as usize..) else { continue };
            if !is_code {
                let name = name.split(|&byte| byte == 0).next().unwrap_or_default();
                self.data.extend(KEPT_DATA.iter().find(|&&kept| kept == name).map(|&kept| (kept, address)));
                continue;
            }
            // Labels that compilers and assemblers leave behind are no functions.
            if name.starts_with(b"\0") || name.starts_with(b".L") || name.starts_with(b"$") {
                continue;
            }
            let binding = match symbol.st_bind() {
                elf::STB_GLOBAL => 0,
                elf::STB_WEAK => 1,
                _ => 2,
            };
            let size: u64 = symbol.st_size(endian).into();
            let unsized_rank = if size == 0 { 8 } else { 0 };
            self.sorted.push(Symbol {
                address,
                size,
                name: at,
                rank: order.min(7) << 5 | unsized_rank | rank | binding,
                table: place,
            });
        }
        Some(())
    }

    pub(super) fn heap_size(&self) -> usize {
        self.sorted.len() * 24 + self.asked.len() * 160
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
        let key = (symbol.table, symbol.name);
        if let Some(known) = self.asked.get(&key) {
            return Some(Arc::clone(known));
        }
        let (file, range) = self.names.get(usize::from(symbol.table))?;
        let names = file.bytes().get(range.clone())?.get(symbol.name as usize..)?;
        let name = &names[..names.len().min(MAX_NAME)];
        let name: Arc<str> = String::from_utf8_lossy(&name[..memchr::memchr(0, name)?]).into();
        self.asked.insert(key, Arc::clone(&name));
        Some(name)
    }
}
