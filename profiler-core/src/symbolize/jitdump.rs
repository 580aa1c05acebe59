//! Jitdumps: `jit-PID.dump`, what a runtime generated, with lines.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::jit_names;
use super::ranges::RangeMap;
use super::{Frame, FrameAddress, line_and_column};
use crate::profile::LineNo;

const MAGIC: u32 = 0x4a69_5444;
const HEADER: usize = 40;
/// Every record starts with its kind, its size and a time.
const RECORD: usize = 16;
/// V8 counts addresses of lines from the header of an ELF file that perf would make of the code.
const ELF_HEADER: u64 = 0x40;
/// So many functions without a line before that offset are no coincidence.
const ENOUGH: usize = 4;

/// The functions of a jitdump.
#[derive(Debug, Default)]
pub struct JitDump {
    ranges: RangeMap,
    functions: Vec<Function>,
    files: Vec<Arc<str>>,
    /// How far lines are behind the code they belong to.
    shift: u64,
    has_columns: bool,
    /// Bytes at the end that are no whole record, as while the program still writes.
    rest: usize,
}

#[derive(Debug)]
struct Function {
    frame: Frame,
    begin: u64,
    /// Address as at the time of loading, line, column, file.
    lines: Arc<[Row]>,
    /// Where the code was when its lines were written.
    loaded_at: u64,
}

#[derive(Clone, Copy, Debug)]
struct Row {
    address: u64,
    line: u32,
    column: u32,
    file: u32,
}

/// A jitdump could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JitDumpError {
    /// It doesn't start like one.
    #[error("not a jitdump")]
    NotJitDump,
    /// It is from a machine with the other order of bytes.
    #[error("a jitdump of a big-endian machine")]
    BigEndian,
}

/// Reads numbers and texts off the front of bytes.
struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn number32(&mut self) -> Option<u32> {
        let (bytes, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u32::from_le_bytes(*bytes))
    }

    fn number64(&mut self) -> Option<u64> {
        let (bytes, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*bytes))
    }

    fn text(&mut self) -> Option<&'a [u8]> {
        let end = self.0.iter().position(|&byte| byte == 0)?;
        let text = &self.0[..end];
        self.0 = &self.0[end + 1..];
        Some(text)
    }
}

impl JitDump {
    /// Reads a dump; what is cut off at its end is left out, and counted in [`rest`](Self::rest).
    pub fn parse(bytes: &[u8]) -> Result<Self, JitDumpError> {
        let mut header = Cursor(bytes);
        match header.number32() {
            Some(MAGIC) => {}
            Some(magic) if magic == MAGIC.swap_bytes() => return Err(JitDumpError::BigEndian),
            _ => return Err(JitDumpError::NotJitDump),
        }
        header.number32();
        let start = header.number32().map_or(HEADER, |size| size as usize).max(HEADER);
        let mut dump = Reading::default();
        let mut rest = bytes.get(start..).unwrap_or_default();
        while rest.len() >= RECORD {
            let mut record = Cursor(rest);
            let (kind, size) = (record.number32(), record.number32().unwrap_or(0) as usize);
            if size < RECORD || size > rest.len() {
                break;
            }
            let body = Cursor(&rest[RECORD..size]);
            rest = &rest[size..];
            match kind {
                Some(0) => dump.load(body),
                Some(1) => dump.moved(body),
                Some(2) => dump.lines(body),
                Some(3) => {
                    rest = &[];
                    break;
                }
                _ => None,
            };
        }
        Ok(dump.finish(rest.len()))
    }

    /// Bytes at the end that are no whole record yet.
    pub fn rest(&self) -> usize {
        self.rest
    }

    /// How many functions were generated.
    pub fn len(&self) -> usize {
        self.functions.len()
    }

    /// Whether nothing was generated.
    pub fn is_empty(&self) -> bool {
        self.functions.is_empty()
    }

    /// The function and line at an address. Of functions that were there one after the other, the
    /// last.
    pub fn find(&self, address: FrameAddress) -> Option<Frame> {
        let address = address.lookup().0;
        let function = self.ranges.find(address).max()?;
        let function = self.functions.get(function as usize)?;
        let mut frame = function.frame.clone();
        let then = address.wrapping_sub(function.begin).wrapping_add(function.loaded_at).checked_add(self.shift)?;
        let row = function.lines.partition_point(|row| row.address <= then).checked_sub(1);
        if let Some(row) = row.and_then(|row| function.lines.get(row))
            && row.line != 0
        {
            let file = self.files.get(row.file as usize)?;
            if frame.file != *file {
                frame.start_line = LineNo::UNKNOWN;
            }
            frame.file = Arc::clone(file);
            frame.line = LineNo(row.line);
            frame.column = if self.has_columns { row.column } else { 0 };
        }
        Some(frame)
    }
}

/// A dump that is being read.
#[derive(Default)]
struct Reading {
    ranges: Vec<(u64, u64, u32)>,
    functions: Vec<Function>,
    by_index: FxHashMap<u64, u32>,
    /// Lines come before the function they belong to.
    lines: FxHashMap<u64, Vec<Row>>,
    files: Vec<Arc<str>>,
    file_by_name: FxHashMap<Box<[u8]>, u32>,
    /// Functions with lines; those whose lines all come late; whether any is behind the code.
    with_lines: usize,
    late: usize,
    is_beyond: bool,
}

impl Reading {
    fn load(&mut self, mut body: Cursor<'_>) -> Option<()> {
        let (_pid, _tid) = (body.number32()?, body.number32()?);
        let (_address, begin) = (body.number64()?, body.number64()?);
        let (size, index) = (body.number64()?, body.number64()?);
        let name = String::from_utf8_lossy(body.text()?);
        let mut lines = self.lines.remove(&begin).unwrap_or_default();
        lines.sort_by_key(|row| row.address);
        if let (Some(first), Some(last)) = (lines.first(), lines.last()) {
            self.with_lines += 1;
            self.late += usize::from(first.address >= begin.saturating_add(ELF_HEADER));
            self.is_beyond |= last.address > begin.saturating_add(size);
        }
        let row = u32::try_from(self.functions.len()).ok()?;
        self.functions.push(Function { frame: jit_names::frame(&name), begin, lines: lines.into(), loaded_at: begin });
        self.ranges.push((begin, begin.checked_add(size)?, row));
        self.by_index.insert(index, row);
        Some(())
    }

    fn moved(&mut self, mut body: Cursor<'_>) -> Option<()> {
        let (_pid, _tid, _address) = (body.number32()?, body.number32()?, body.number64()?);
        let (_old, begin) = (body.number64()?, body.number64()?);
        let (size, index) = (body.number64()?, body.number64()?);
        let known = self.functions.get(*self.by_index.get(&index)? as usize)?;
        let moved =
            Function { frame: known.frame.clone(), begin, lines: Arc::clone(&known.lines), loaded_at: known.loaded_at };
        let row = u32::try_from(self.functions.len()).ok()?;
        self.functions.push(moved);
        self.ranges.push((begin, begin.checked_add(size)?, row));
        self.by_index.insert(index, row);
        Some(())
    }

    fn lines(&mut self, mut body: Cursor<'_>) -> Option<()> {
        let (begin, count) = (body.number64()?, body.number64()?);
        let mut rows = Vec::new();
        let mut file = None;
        for _ in 0..count {
            let Some(address) = body.number64() else { break };
            let (Some(line), Some(column), Some(name)) = (body.number32(), body.number32(), body.text()) else { break };
            // This stands for the name before.
            if name != b"\xff" || file.is_none() {
                file = Some(self.file(name)?);
            }
            let (line, column) = line_and_column(line.into(), column.into());
            rows.push(Row { address, line, column, file: file? });
        }
        self.lines.insert(begin, rows);
        Some(())
    }

    fn file(&mut self, name: &[u8]) -> Option<u32> {
        if let Some(&known) = self.file_by_name.get(name) {
            return Some(known);
        }
        let row = u32::try_from(self.files.len()).ok()?;
        let text = String::from_utf8_lossy(name);
        self.files.push(text.strip_prefix("file://").unwrap_or(&text).into());
        self.file_by_name.insert(name.into(), row);
        Some(row)
    }

    fn finish(self, rest: usize) -> JitDump {
        // Whoever counts from an ELF header has no line before it, in no function, and some line
        // behind the end of its code; or so many functions that it can be no chance.
        let is_shifted =
            self.with_lines > 0 && self.late == self.with_lines && (self.is_beyond || self.with_lines >= ENOUGH);
        JitDump {
            ranges: RangeMap::new(self.ranges),
            functions: self.functions,
            files: self.files,
            shift: if is_shifted { ELF_HEADER } else { 0 },
            // The field that it uses for columns is something else elsewhere.
            has_columns: is_shifted,
            rest,
        }
    }
}
