//! What the source says of a function: where it is declared, and its plain name. addr2line doesn't
//! tell, but says which entry a function has.

use gimli::{AttributeValue, UnitOffset, UnitRef, constants as dw};

use super::limits::Reader;

/// References are followed this often.
const MAX_HOPS: usize = 16;

/// What is told of a function.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Told<'a> {
    /// Where it is declared.
    pub(super) declared: Option<Declared<'a>>,
    /// Its name as the source has it, without what it is in.
    pub(super) name: Option<&'a [u8]>,
}

/// The line that a function is declared on, and the file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Declared<'a> {
    /// 1-based.
    pub(super) line: u32,
    folder: &'a [u8],
    file: &'a [u8],
}

impl<'a> Told<'a> {
    /// Reads it from the entry of a function and what that refers to in its unit; `lines` is the
    /// unit that has the names of files.
    pub(super) fn read(
        unit: UnitRef<'_, Reader<'a>>,
        lines: UnitRef<'_, Reader<'a>>,
        entry: UnitOffset,
    ) -> Option<Self> {
        let (mut file, mut line, mut name) = (None, None, None);
        let mut next = Some(entry);
        for _ in 0..MAX_HOPS {
            let Some(entry) = next.take().filter(|_| file.is_none() || line.is_none()) else { break };
            let mut entries = unit.entries_raw(Some(entry)).ok()?;
            for &specification in entries.read_abbreviation().ok()??.attributes() {
                let attribute = entries.read_attribute(specification).ok()?;
                match (attribute.name(), attribute.value()) {
                    (dw::DW_AT_abstract_origin | dw::DW_AT_specification, AttributeValue::UnitRef(entry)) => {
                        next = Some(entry);
                    }
                    (dw::DW_AT_decl_file, AttributeValue::FileIndex(index)) => file = file.or(Some(index)),
                    (dw::DW_AT_decl_file, _) => file = file.or(attribute.udata_value()),
                    (dw::DW_AT_decl_line, _) => line = line.or(attribute.udata_value()),
                    (dw::DW_AT_name, value) => {
                        name = name.or_else(|| unit.attr_string(value).ok().map(|name| name.bytes()));
                    }
                    _ => {}
                }
            }
        }
        Some(Self { declared: Declared::of(lines, file, line), name })
    }
}

impl<'a> Declared<'a> {
    fn of(lines: UnitRef<'_, Reader<'a>>, file: Option<u64>, line: Option<u64>) -> Option<Self> {
        let line = u32::try_from(line?).ok().filter(|line| (1..=i32::MAX.unsigned_abs()).contains(line))?;
        let header = lines.line_program.as_ref()?.header();
        let file = header.file(file?)?;
        let folder = match file.directory_index() {
            0 => lines.comp_dir,
            _ => file.directory(header).and_then(|folder| lines.attr_string(folder).ok()),
        };
        Some(Self {
            line,
            folder: folder.map(|folder| folder.bytes()).unwrap_or_default(),
            file: lines.attr_string(file.path_name()).ok()?.bytes(),
        })
    }

    /// Whether it is in the file of this path, which was put together of a folder of the compiler
    /// and what is known here.
    pub(super) fn is_in(&self, path: &str) -> bool {
        let Some(folder) = path.as_bytes().strip_suffix(self.file) else { return false };
        match folder.strip_suffix(b"/").or_else(|| folder.strip_suffix(b"\\")) {
            Some(folder) => folder.ends_with(self.folder.strip_suffix(b"/").unwrap_or(self.folder)),
            None => folder.is_empty() && !self.file.is_empty(),
        }
    }
}
