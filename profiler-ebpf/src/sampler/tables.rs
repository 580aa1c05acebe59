//! Where things lie in the kernel program's arrays.
//!
//! Tables of files are only ever added. Slices of mappings come and go with processes; one that was given back
//! is used again only after a while, because a program on another CPU may still be looking through it,
//! and because a child that was just forked may have copied it.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use super::layout::NO_TABLE;
use super::memory::MappedArray;
use crate::unwind_table::{RULE_SIZE, Rules, Table};

/// How long a slice rests before it is used again.
const REST: Duration = Duration::from_secs(2);

/// Bytes of an element of `mappings`.
const MAPPING_SIZE: usize = 32;

/// An array has no room left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the kernel program's tables are full")]
pub struct Full;

/// Where a file's table lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    /// Its first page.
    pub first_page: u32,
    /// How many pages.
    pub pages: u32,
    /// Address, in the file's own terms, where they begin.
    pub base: u64,
}

/// A process's mappings in the array.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Slice {
    /// Index of the first.
    pub first: u32,
    /// How many.
    pub count: u32,
}

/// How many elements the arrays have.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    pub(super) rows: u32,
    pub(super) pages: u32,
    pub(super) rules: u32,
    pub(super) mappings: u32,
}

impl Sizes {
    /// What they take.
    pub(super) fn bytes(self) -> u64 {
        let Self { rows, pages, rules, mappings } = self;
        u64::from(rows) * 4 + u64::from(pages) * 8 + u64::from(rules) * 16 + u64::from(mappings) * 32
    }
}

/// The arrays.
pub struct Tables {
    pub(super) rows: MappedArray,
    pub(super) pages: MappedArray,
    pub(super) rules: MappedArray,
    pub(super) mappings: MappedArray,
    pub(super) sizes: Sizes,
    used_rows: u32,
    used_pages: u32,
    used_rules: usize,
    free: BTreeMap<u32, u32>,
    resting: VecDeque<(Instant, Slice)>,
}

impl Tables {
    pub(super) fn new(
        rows: MappedArray,
        pages: MappedArray,
        rules: MappedArray,
        mappings: MappedArray,
        sizes: Sizes,
    ) -> Self {
        Self {
            rows,
            pages,
            rules,
            mappings,
            sizes,
            used_rows: 0,
            used_pages: 0,
            used_rules: 0,
            free: BTreeMap::from([(0, sizes.mappings)]),
            resting: VecDeque::new(),
        }
    }

    /// Puts a table of a file in place. `rules` are those that the table was built with.
    pub fn add(&mut self, table: &Table, rules: &Rules) -> Result<Placed, Full> {
        let rows = u32::try_from(table.rows.len()).map_err(|_| Full)?;
        let pages = u32::try_from(table.pages.len()).map_err(|_| Full)?;
        let fits = |used: u32, more: u32, size: u32| used.checked_add(more).is_some_and(|all| all <= size);
        if !fits(self.used_rows, rows, self.sizes.rows) || !fits(self.used_pages, pages, self.sizes.pages) {
            return Err(Full);
        }
        self.add_rules(rules)?;

        let bytes: Vec<u8> = table.rows.iter().flat_map(|row| row.to_le_bytes()).collect();
        let mut done = self.rows.write(self.used_rows as usize * 4, &bytes);
        let bytes: Vec<u8> = table
            .pages
            .iter()
            .flat_map(|page| [page.start, page.end].map(|row| row + self.used_rows))
            .flat_map(u32::to_le_bytes)
            .collect();
        done &= self.pages.write(self.used_pages as usize * 8, &bytes);
        if !done {
            return Err(Full);
        }
        let placed = Placed { first_page: self.used_pages, pages, base: table.base };
        self.used_rows += rows;
        self.used_pages += pages;
        Ok(placed)
    }

    fn add_rules(&mut self, rules: &Rules) -> Result<(), Full> {
        let all = rules.all();
        if all.len() > self.sizes.rules as usize {
            return Err(Full);
        }
        let new = all.get(self.used_rules..).unwrap_or_default();
        let bytes: Vec<u8> = new.iter().flat_map(|rule| rule.to_bytes()).collect();
        if !self.rules.write(self.used_rules * RULE_SIZE, &bytes) {
            return Err(Full);
        }
        self.used_rules = all.len();
        Ok(())
    }

    /// Puts mappings of a process in place: range of addresses, bias and, for a file with rules, its table. They
    /// must be sorted and must not overlap.
    pub fn add_slice(&mut self, mappings: &[(std::ops::Range<u64>, u64, Option<Placed>)]) -> Result<Slice, Full> {
        let count = u32::try_from(mappings.len()).map_err(|_| Full)?;
        if count == 0 {
            return Ok(Slice::default());
        }
        self.wake();
        let (&start, &length) = self.free.iter().find(|(_, length)| **length >= count).ok_or(Full)?;
        let mut bytes = Vec::with_capacity(mappings.len() * MAPPING_SIZE);
        for (range, bias, placed) in mappings {
            let (first_page, pages, base) =
                placed.map_or((NO_TABLE, 0, 0), |placed| (placed.first_page, placed.pages, placed.base));
            bytes.extend(range.start.to_le_bytes());
            bytes.extend(range.end.to_le_bytes());
            // Pages are counted from the table's base on, so that the base becomes part of the bias.
            bytes.extend(bias.wrapping_add(base).to_le_bytes());
            bytes.extend(first_page.to_le_bytes());
            bytes.extend(pages.to_le_bytes());
        }
        if !self.mappings.write(start as usize * MAPPING_SIZE, &bytes) {
            return Err(Full);
        }
        self.free.remove(&start);
        if length > count {
            self.free.insert(start + count, length - count);
        }
        Ok(Slice { first: start, count })
    }

    /// Gives a slice back.
    pub fn free_slice(&mut self, slice: Slice) {
        if slice.count > 0 {
            self.resting.push_back((Instant::now(), slice));
        }
    }

    /// Makes slices that rested for long enough free again, joining neighbours.
    fn wake(&mut self) {
        while let Some(&(since, slice)) = self.resting.front()
            && since.elapsed() >= REST
        {
            self.resting.pop_front();
            let (mut start, mut length) = (slice.first, slice.count);
            if let Some(after) = self.free.remove(&(start + length)) {
                length += after;
            }
            if let Some((&before, &before_length)) = self.free.range(..start).next_back()
                && before + before_length == start
            {
                (start, length) = (before, length + before_length);
            }
            self.free.insert(start, length);
        }
    }
}
