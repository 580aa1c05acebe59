//! The parts of a program or library that unwinding needs, from its file or from a process's memory.

use std::fs::File;
use std::io;

use object::elf::{self, FileHeader64};
use object::read::elf::{Dyn as _, FileHeader as _, ProgramHeader as _, SectionHeader as _, Sym as _};
use object::{LittleEndian, ReadCache, ReadRef};

type Header = FileHeader64<LittleEndian>;
const LE: LittleEndian = LittleEndian;

/// Longest section that is read.
const MAX_SECTION: u64 = 256 << 20;
/// Most symbols that are looked through.
const MAX_SYMBOLS: usize = 1 << 20;
/// Most entries of a dynamic section that are looked through.
const MAX_DYNAMIC: usize = 4096;
/// Most folders that a file names for its libraries.
const MAX_LIBRARY_FOLDERS: usize = 16;
/// A page.
const PAGE: u64 = 4096;

/// A piece of a file, and where the file wants to have it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Section {
    /// In the file's own terms.
    pub address: u64,
    /// Its bytes.
    pub data: Vec<u8>,
}

/// A part of a file that is mapped as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// Where it begins in the file.
    pub offset: u64,
    /// How much of it comes from the file.
    pub file_size: u64,
    /// Where the file wants to have it.
    pub address: u64,
    /// Whether it can be executed.
    pub executable: bool,
}

/// What unwinding needs of a program or library.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Image {
    /// What is mapped.
    pub loads: Vec<Load>,
    /// `.eh_frame`.
    pub eh_frame: Option<Section>,
    /// `.debug_frame`, unless compressed.
    pub debug_frame: Option<Section>,
    /// Go's table of functions.
    pub gopclntab: Option<Section>,
    /// Where Go's code begins, unless its table says so itself. With C linked in that is not where all code begins.
    pub go_text: Option<u64>,
    /// Address of `.text`; 0 without.
    pub text: u64,
    /// Address of `.got`; 0 without.
    pub got: u64,
    /// GNU build id; empty without.
    pub build_id: Vec<u8>,
    /// Go's build id; empty without.
    pub go_build_id: String,
    /// Whether Go made it.
    pub is_go: bool,
    /// File names of the libraries that it is to be loaded with.
    pub needed: Vec<Vec<u8>>,
    /// Where it wants them looked for first, as it says; `$ORIGIN` stands for the folder it is in.
    pub library_folders: Vec<Vec<u8>>,
    /// Addresses of the symbols that were asked for, of those that it has.
    pub symbols: Vec<(&'static str, u64)>,
}

/// Why there is no image.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// Not a program for this processor, or broken.
    #[error("it is no program or library for this processor")]
    NotElf,
    /// It could not be read.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl From<object::Error> for ImageError {
    fn from(_: object::Error) -> Self {
        Self::NotElf
    }
}

impl Image {
    /// The parts of a file. Of a large file only what is needed is read.
    ///
    /// `symbols` are dynamic symbols to look for as well.
    pub fn from_file(file: File, symbols: &[&'static str]) -> Result<Self, ImageError> {
        Self::parse(&ReadCache::new(file), symbols)
    }

    /// The parts of a file that is in memory.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ImageError> {
        Self::parse(bytes, &[])
    }

    fn parse<'data, R: ReadRef<'data>>(data: R, wanted: &[&'static str]) -> Result<Self, ImageError> {
        let header = Header::parse(data)?;
        if header.e_machine(LE) != elf::EM_X86_64 || !header.is_little_endian() {
            return Err(ImageError::NotElf);
        }
        let mut image = Self::default();
        for segment in header.program_headers(LE, data)? {
            match segment.p_type(LE) {
                elf::PT_LOAD => image.loads.push(Load {
                    offset: segment.p_offset(LE),
                    file_size: segment.p_filesz(LE),
                    address: segment.p_vaddr(LE),
                    executable: segment.p_flags(LE).contains(elf::PF_X),
                }),
                elf::PT_NOTE if segment.p_filesz(LE) < MAX_SECTION => {
                    if let Ok(Some(notes)) = segment.notes(LE, data) {
                        image.take_notes(notes);
                    }
                }
                _ => {}
            }
        }
        let sections = header.sections(LE, data)?;
        let mut dynamic_symbols = None;
        for (index, section) in sections.enumerate() {
            let (kind, size) = (section.sh_type(LE), section.sh_size(LE));
            if kind == elf::SHT_DYNSYM {
                dynamic_symbols = Some(index);
            }
            if kind == elf::SHT_NOBITS || size == 0 || size > MAX_SECTION {
                continue;
            }
            let Ok(name) = sections.section_name(LE, section) else { continue };
            let compressed = section.sh_flags(LE).contains(elf::SHF_COMPRESSED);
            let read = || {
                let data = section.data(LE, data).ok()?.to_vec();
                Some(Section { address: section.sh_addr(LE), data })
            };
            match name {
                b".eh_frame" => image.eh_frame = read(),
                b".debug_frame" if !compressed => image.debug_frame = read(),
                b".text" => image.text = section.sh_addr(LE),
                b".got" => image.got = section.sh_addr(LE),
                b".gopclntab" | b".data.rel.ro.gopclntab" => (image.is_go, image.gopclntab) = (true, read()),
                b".note.go.buildid" => image.is_go = true,
                _ => {}
            }
        }
        if image.gopclntab.is_some() {
            let symbols = sections.symbols(LE, data, elf::SHT_SYMTAB)?;
            let go_text = symbols
                .iter()
                .take(MAX_SYMBOLS)
                .find(|symbol| symbol.name(LE, symbols.strings()).is_ok_and(|name| name == b"runtime.text"));
            let alone = image.eh_frame.is_none();
            image.go_text = go_text.map(|symbol| symbol.st_value(LE)).or(alone.then_some(image.text));
        }
        if let Ok(Some((entries, strings))) = sections.dynamic(LE, data)
            && let Ok(strings) = sections.strings(LE, data, strings)
        {
            let needed = entries.iter().take(MAX_DYNAMIC).filter(|entry| entry.tag(LE) == elf::DT_NEEDED);
            let names = needed.filter_map(|entry| strings.get(u32::try_from(entry.val(LE)).ok()?).ok());
            // A name with a folder is a path, and none of ours.
            image.needed = names.filter(|name| !name.contains(&b'/')).map(<[u8]>::to_vec).collect();
            let is_path = |tag| tag == elf::DT_RUNPATH || tag == elf::DT_RPATH;
            let paths = entries.iter().take(MAX_DYNAMIC).filter(|entry| is_path(entry.tag(LE)));
            let paths = paths.filter_map(|entry| strings.get(u32::try_from(entry.val(LE)).ok()?).ok());
            let folders = paths.flat_map(|path| path.split(|&byte| byte == b':')).take(MAX_LIBRARY_FOLDERS);
            image.library_folders = folders.map(<[u8]>::to_vec).collect();
        }
        if let (false, Some(index)) = (wanted.is_empty(), dynamic_symbols) {
            let symbols = sections.symbol_table_by_index(LE, data, index)?;
            for symbol in symbols.iter().take(MAX_SYMBOLS).filter(|symbol| symbol.st_shndx(LE) != elf::SHN_UNDEF) {
                let Ok(name) = symbol.name(LE, symbols.strings()) else { continue };
                if let Some(wanted) = wanted.iter().find(|wanted| wanted.as_bytes() == name) {
                    image.symbols.push((wanted, symbol.st_value(LE)));
                }
            }
        }
        Ok(image)
    }

    fn take_notes(&mut self, mut notes: object::read::elf::NoteIterator<'_, Header>) {
        const GO_BUILD_ID: elf::NoteType = elf::NoteType(4);
        while let Ok(Some(note)) = notes.next() {
            match (note.name(), note.n_type(LE)) {
                (b"GNU", elf::NT_GNU_BUILD_ID) if note.desc().len() <= 64 => self.build_id = note.desc().to_vec(),
                (b"Go", GO_BUILD_ID) if note.desc().len() <= 256 => {
                    self.is_go = true;
                    self.go_build_id = String::from_utf8_lossy(note.desc()).into_owned();
                }
                _ => {}
            }
        }
    }

    /// The address of a symbol that was asked for.
    pub fn symbol(&self, name: &str) -> Option<u64> {
        self.symbols.iter().find(|symbol| symbol.0 == name).map(|symbol| symbol.1)
    }

    /// Where in the file an address in its own terms lies.
    pub fn file_offset(&self, address: u64) -> Option<u64> {
        let load = self
            .loads
            .iter()
            .find(|load| (load.address..load.address.saturating_add(load.file_size)).contains(&address))?;
        (address - load.address).checked_add(load.offset)
    }

    /// Runtime address minus address in the file's own terms, for an executable mapping that begins at `start` and shows
    /// the file from `offset` on; `None` when no part of the file is meant to be mapped there.
    ///
    /// Parts may share a page of the file, so only executable ones count.
    pub fn bias(&self, start: u64, offset: u64) -> Option<u64> {
        let covers = |load: &&Load| {
            let end = load.offset.saturating_add(load.file_size).saturating_add(PAGE - 1) & !(PAGE - 1);
            load.executable && (load.offset & !(PAGE - 1)..end).contains(&offset)
        };
        let load = self.loads.iter().find(covers)?;
        Some(start.wrapping_sub(load.address.wrapping_add(offset).wrapping_sub(load.offset)))
    }

    /// How far the addresses of its code are from its places in the file; `None` where that differs.
    pub fn shift(&self) -> Option<u64> {
        let mut shifts =
            self.loads.iter().filter(|load| load.executable).map(|load| load.address.wrapping_sub(load.offset));
        let shift = shifts.next()?;
        shifts.all(|other| other == shift).then_some(shift)
    }
}

/// A process's memory, as far as an image needs it.
pub trait Memory {
    /// Fills `to` from `address` on, or fails.
    fn read(&self, address: u64, to: &mut [u8]) -> io::Result<()>;
}

impl Image {
    /// The parts of a file as they lie in a process's memory at `start`, for files that can't be opened any more
    /// and those that never were any (`[vdso]`). `start` is where the file's first bytes are mapped.
    pub fn from_memory(memory: &impl Memory, start: u64) -> Result<Self, ImageError> {
        // Enough for the headers of anything that a linker makes.
        let mut head = vec![0; 4096];
        memory.read(start, &mut head)?;
        let header = Header::parse(head.as_slice())?;
        if header.e_machine(LE) != elf::EM_X86_64 || !header.is_little_endian() {
            return Err(ImageError::NotElf);
        }
        let segments = header.program_headers(LE, head.as_slice())?;
        let mut image = Self::default();
        for segment in segments.iter().filter(|segment| segment.p_type(LE) == elf::PT_LOAD) {
            image.loads.push(Load {
                offset: segment.p_offset(LE),
                file_size: segment.p_filesz(LE),
                address: segment.p_vaddr(LE),
                executable: segment.p_flags(LE).contains(elf::PF_X),
            });
        }
        let first = image.loads.iter().find(|load| load.offset == 0).ok_or(ImageError::NotElf)?;
        let bias = start.wrapping_sub(first.address);
        let read = |address: u64, size: u64| -> Result<Section, ImageError> {
            let size = usize::try_from(size.min(MAX_SECTION)).map_err(|_| ImageError::NotElf)?;
            let mut data = vec![0; size];
            memory.read(bias.wrapping_add(address), &mut data)?;
            Ok(Section { address, data })
        };
        for segment in segments {
            match segment.p_type(LE) {
                elf::PT_NOTE if segment.p_filesz(LE) <= PAGE => {
                    let notes = read(segment.p_vaddr(LE), segment.p_filesz(LE))?;
                    let align = segment.p_align(LE);
                    if let Ok(notes) = object::read::elf::NoteIterator::new(LE, align, &notes.data) {
                        image.take_notes(notes);
                    }
                }
                elf::PT_GNU_EH_FRAME => {
                    let address = segment.p_vaddr(LE);
                    let header = read(address, segment.p_filesz(LE).min(64))?;
                    let bases = gimli::BaseAddresses::default().set_eh_frame_hdr(address);
                    let parsed = gimli::EhFrameHdr::new(&header.data, gimli::LittleEndian).parse(&bases, 8);
                    let Ok(gimli::Pointer::Direct(eh_frame)) = parsed.map(|header| header.eh_frame_ptr()) else {
                        continue;
                    };
                    // Its length is written nowhere in memory; it ends with its part of the file at the latest.
                    let part = image
                        .loads
                        .iter()
                        .find(|load| (load.address..load.address.saturating_add(load.file_size)).contains(&eh_frame));
                    if let Some(part) = part {
                        image.eh_frame = Some(read(eh_frame, part.address + part.file_size - eh_frame)?);
                    }
                }
                _ => {}
            }
        }
        Ok(image)
    }
}
