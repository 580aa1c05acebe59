//! The memory map behind the samples: which binary an address belongs to.
//!
//! Lines are those of `/proc/PID/maps`, or `start-end [perm] file (@offset) build-id`. A line
//! `name=value` defines `$name` for the lines after it. Only the map of the file itself is
//! used, never that of this process: the same file means the same everywhere.

use std::sync::LazyLock;

use regex::Regex;

use super::lines::{Lines, is_blank_or_comment};

/// Values may hold other values, so without bounds a short file could ask for endless text.
const MAX_VARIABLES: usize = 64;
const MAX_LINE: usize = 16 << 10;

/// Where programs that are not relocated are linked to start.
const LINKED_START: u64 = 0x40_0000;

const HEADERS: [&str; 2] = ["--- Memory map: ---", "MAPPED_LIBRARIES:"];

/// Whether a line says that the memory map follows.
pub(super) fn is_header(line: &str) -> bool {
    HEADERS.iter().any(|header| line.contains(header))
}

/// One executable region.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Region {
    pub(super) start: u64,
    /// Address after the last.
    pub(super) limit: u64,
    pub(super) offset: u64,
    pub(super) file: String,
    pub(super) build_id: String,
}

/// The executable regions, the main program's first where it can be told.
#[derive(Default)]
pub(super) struct Maps {
    regions: Vec<Region>,
    /// Indexes of `regions` by start.
    by_start: Vec<usize>,
    unreadable: usize,
    is_cut: bool,
}

impl Maps {
    /// Reads the map that starts somewhere in `lines`; there may be none.
    pub(super) fn find(mut lines: Lines<'_>) -> Self {
        if lines.any(|line| is_header(line.text)) { Self::read(lines) } else { Self::default() }
    }

    /// Reads lines that are a map.
    pub(super) fn read(lines: Lines<'_>) -> Self {
        let mut maps = Self::default();
        let mut variables: Vec<(String, String)> = Vec::new();
        for line in lines {
            if !line.is_whole {
                // Half an address or half a path would be a wrong answer.
                maps.is_cut = true;
                break;
            }
            if is_blank_or_comment(line.text) {
                continue;
            }
            let text = substitute(without_log_prefix(line.text), &variables);
            match parse(&text) {
                Entry::Executable(region) => maps.regions.push(region),
                Entry::Data => {}
                Entry::Other => match text.split_once('=') {
                    Some((name, value)) if variables.len() < MAX_VARIABLES => {
                        variables.push((format!("${}", name.trim()), value.trim().to_owned()));
                    }
                    _ => maps.unreadable += 1,
                },
            }
        }
        maps.tidy();
        maps
    }

    pub(super) fn regions(&self) -> &[Region] {
        &self.regions
    }

    /// Index of the region of an address. Regions grow downwards here: some writers leave out
    /// the first part of a binary that is mapped in several.
    pub(super) fn region_of(&mut self, address: u64) -> Option<usize> {
        let after = self.by_start.partition_point(|&i| self.regions[i].start <= address);
        let mut free_from = 0;
        if let Some(&before) = after.checked_sub(1).and_then(|i| self.by_start.get(i)) {
            free_from = self.regions[before].limit;
            if address < free_from {
                return Some(before);
            }
        }
        let &next = self.by_start.get(after)?;
        let region = &mut self.regions[next];
        let missing = region.offset.min(region.start - free_from);
        if address < region.start - missing {
            return None;
        }
        region.start -= missing;
        region.offset -= missing;
        Some(next)
    }

    /// What was odd about the map, for the user.
    pub(super) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.is_cut {
            notes.push(
                "the memory map ends inside a line, which was left out; addresses of binaries behind it stay unresolved"
                    .to_owned(),
            );
        }
        if self.unreadable > 0 {
            notes.push(format!("lines of the memory map that can't be read: {}", self.unreadable));
        }
        notes
    }

    fn tidy(&mut self) {
        self.regions = join_adjacent(std::mem::take(&mut self.regions));
        if let Some(main) = self.regions.iter().position(is_program) {
            self.regions.swap(0, main);
        }
        let huge_page = self.regions.first().is_some_and(|first| first.file.starts_with("/anon_hugepage"));
        if huge_page && self.regions.len() > 1 && self.regions[0].limit == self.regions[1].start {
            self.regions.remove(0);
        }
        // Code moved to huge pages leaves odd pieces of the program's first mapping.
        if let Some(main) = self.regions.first_mut()
            && main.start.wrapping_sub(main.offset) == LINKED_START
        {
            main.start = LINKED_START;
            main.offset = 0;
        }
        self.by_start = (0..self.regions.len()).collect();
        self.by_start.sort_by_key(|&i| self.regions[i].start);
    }
}

enum Entry {
    Executable(Region),
    /// Not executable, so no code address is in it.
    Data,
    Other,
}

fn parse(line: &str) -> Entry {
    const RANGE: &str =
        r"^\s*(?:0x)?(?<start>[[:xdigit:]]+)[\s-]\s*(?:0x)?(?<limit>[[:xdigit:]]+):?(?:\s+(?<perm>[-rwxsp]+))?";
    static PROC: LazyLock<Regex> = LazyLock::new(|| {
        let rest = r"(?:\s+(?<offset>[[:xdigit:]]+))?\s+[[:xdigit:]]+:[[:xdigit:]]+\s+[0-9]+(?:\s+(?<file>\S.*))?$";
        Regex::new(&format!("{RANGE}{rest}")).expect("a constant pattern is valid")
    });
    static BRIEF: LazyLock<Regex> = LazyLock::new(|| {
        let rest = r"(?:\s+(?<file>\S+))?(?:\s+\(@(?<offset>[[:xdigit:]]+)\))?(?:\s+(?<id>[[:xdigit:]]+))?";
        Regex::new(&format!("{RANGE}{rest}")).expect("a constant pattern is valid")
    });
    let captures = PROC.captures(line).or_else(|| BRIEF.captures(line));
    let Some(captures) = captures else { return Entry::Other };
    let text = |name| captures.name(name).map_or("", |found| found.as_str());
    let number = |name| match text(name) {
        "" => Some(0),
        digits => u64::from_str_radix(digits, 16).ok(),
    };
    let (Some(start), Some(limit), Some(offset)) = (number("start"), number("limit"), number("offset")) else {
        return Entry::Other;
    };
    if limit <= start {
        return Entry::Other;
    }
    if !text("perm").is_empty() && !text("perm").contains('x') {
        return Entry::Data;
    }
    let file = text("file").trim_end().trim_end_matches("(deleted)").trim_end().to_owned();
    Entry::Executable(Region { start, limit, offset, file, build_id: text("id").to_owned() })
}

/// Without what logging puts before a line: `… file:123] `.
fn without_log_prefix(line: &str) -> &str {
    let Some((prefix, rest)) = line.split_once(']') else { return line };
    let is_log = !prefix.contains('[')
        && prefix.rsplit_once(':').is_some_and(|(file, number)| {
            !file.is_empty() && !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
        });
    if is_log { rest.strip_prefix(char::is_whitespace).unwrap_or(line) } else { line }
}

fn substitute(line: &str, variables: &[(String, String)]) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some(at) = rest.find('$').filter(|_| out.len() < MAX_LINE) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        // The longest name, so that `$src` leaves `$srcdir` alone; the latest of equals.
        let known = variables.iter().rev().filter(|(name, _)| rest.starts_with(name.as_str()));
        match known.max_by_key(|(name, _)| name.len()) {
            Some((name, value)) if value.len() < MAX_LINE => {
                out.push_str(value);
                rest = &rest[name.len()..];
            }
            _ => {
                out.push('$');
                rest = &rest[1..];
            }
        }
    }
    out.push_str(rest);
    out
}

/// Pieces of one binary that follow each other become one region.
fn join_adjacent(regions: Vec<Region>) -> Vec<Region> {
    let compatible = |a: &str, b: &str| a.is_empty() || b.is_empty() || a == b;
    let mut joined: Vec<Region> = Vec::with_capacity(regions.len());
    for region in regions {
        match joined.last_mut() {
            Some(last)
                if last.limit == region.start
                    && compatible(&last.file, &region.file)
                    && compatible(&last.build_id, &region.build_id)
                    && (last.offset == 0
                        || region.offset == 0
                        || last.offset.wrapping_add(last.limit - last.start) == region.offset) =>
            {
                last.limit = region.limit;
                if !region.file.is_empty() {
                    last.file = region.file;
                }
                if !region.build_id.is_empty() {
                    last.build_id = region.build_id;
                }
            }
            _ => joined.push(region),
        }
    }
    joined
}

/// Whether a region is of the program itself, as far as its name says.
fn is_program(region: &Region) -> bool {
    let is_library = region.file.match_indices(".so").any(|(at, _)| {
        let mut after = region.file[at + ".so".len()..].chars();
        match after.next() {
            None => true,
            Some('.' | '_') => after.next().is_some_and(|c| c.is_ascii_digit()),
            Some(_) => false,
        }
    });
    !region.file.is_empty() && !region.file.starts_with('[') && !is_library
}
