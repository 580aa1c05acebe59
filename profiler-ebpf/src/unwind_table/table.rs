//! From `.eh_frame` to rows and pages.

use std::ops::Range;

use gimli::{BaseAddresses, CieOrFde, DebugFrame, EhFrame, EndianSlice, LittleEndian, UnwindContext, UnwindSection};
use rustc_hash::FxHashMap;

use super::{Cfa, Image, NO_RULE, Rule, Rules, Section, go, x86_64};

type Slice<'a> = EndianSlice<'a, LittleEndian>;

/// Most rows of one file; some 24 MiB, four times what LLVM's library needs.
const MAX_ROWS: usize = 6 << 20;
/// Most pages of one file: 4 GiB of addresses.
const MAX_PAGES: u64 = 1 << 16;

/// The rules of one file.
#[derive(Debug, Default)]
pub struct Table {
    /// Address, in the file's own terms, where the first page begins; a multiple of 64 KiB.
    pub base: u64,
    /// For every 64 KiB from `base` on, its rows.
    pub pages: Vec<Range<u32>>,
    /// Low 16 bits of an address << 16 | number of the rule in force from there on.
    pub rows: Vec<u32>,
    /// Functions with rules.
    pub functions: usize,
}

/// Why a file has no table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    /// It has no unwind rules.
    #[error("it has no unwind rules")]
    NoRules,
    /// It has more than are taken.
    #[error("it has more unwind rules than are taken")]
    TooLarge,
}

/// The rows of one function, before they are in order.
struct Function {
    range: Range<u64>,
    rows: Range<usize>,
}

#[derive(Default)]
struct Collected {
    functions: Vec<Function>,
    /// Address and rule.
    rows: Vec<(u64, u16)>,
}

/// The table of a file. Functions whose rules are broken are left out, and have no rule.
pub fn build(image: &Image, rules: &mut Rules) -> Result<Table, TableError> {
    let mut bases = BaseAddresses::default().set_text(image.text).set_got(image.got);
    let mut collected = Collected::default();
    if let Some(section) = &image.eh_frame {
        bases = bases.set_eh_frame(section.address);
        let eh_frame = EhFrame::new(&section.data, LittleEndian);
        collect(&eh_frame, &bases, rules, &mut collected)?;
    }
    // Where two describe a function, the first wins: the sort below is stable.
    if let Some(section) = &image.gopclntab {
        collect_go(section, image.go_text, rules, &mut collected)?;
    }
    // Go's says nothing about frame pointers, and would take them for unchanged.
    if let Some(section) = image.debug_frame.as_ref().filter(|_| !image.is_go) {
        let mut debug_frame = DebugFrame::new(&section.data, LittleEndian);
        debug_frame.set_address_size(8);
        collect(&debug_frame, &bases, rules, &mut collected)?;
    }
    if collected.functions.is_empty() {
        return Err(TableError::NoRules);
    }
    collected.functions.sort_by_key(|function| function.range.start);
    flatten(&collected)
}

fn collect<'a, S>(section: &S, bases: &BaseAddresses, rules: &mut Rules, to: &mut Collected) -> Result<(), TableError>
where
    S: UnwindSection<Slice<'a>>,
    S::Offset: std::hash::Hash + Eq,
{
    let mut context = UnwindContext::new();
    let mut cies = FxHashMap::default();
    let mut entries = section.entries(bases);
    // An entry that can't be read ends the section: where the next one begins isn't known either.
    while let Ok(Some(entry)) = entries.next() {
        let CieOrFde::Fde(partial) = entry else { continue };
        let fde = partial.parse(|section, bases, offset| match cies.get(&offset) {
            Some(cie) => Ok(Clone::clone(cie)),
            None => section.cie_from_offset(bases, offset).inspect(|cie| {
                cies.insert(offset, cie.clone());
            }),
        });
        let Ok(fde) = fde else { continue };
        let (start, Some(end)) = (fde.initial_address(), fde.initial_address().checked_add(fde.len())) else {
            continue;
        };
        // Linkers leave functions that they dropped at 0.
        if start == 0 || start >= end {
            continue;
        }
        let first = to.rows.len();
        if fde.is_signal_trampoline() {
            to.rows.push((start, rules.number(Rule::plain(Cfa::Signal))));
        } else {
            let encoding = fde.cie().encoding();
            let Ok(mut table) = fde.rows(section, bases, &mut context) else { continue };
            loop {
                match table.next_row() {
                    Ok(Some(row)) => {
                        let rule = x86_64::rule::<Slice<'_>, S>(row, section, encoding);
                        to.rows.push((row.start_address(), rules.number(rule)));
                    }
                    Ok(None) => break,
                    Err(_) => {
                        to.rows.truncate(first);
                        break;
                    }
                }
                if to.rows.len() > MAX_ROWS {
                    return Err(TableError::TooLarge);
                }
            }
        }
        if to.rows.len() > first {
            to.functions.push(Function { range: start..end, rows: first..to.rows.len() });
        }
    }
    Ok(())
}

fn collect_go(section: &Section, text: Option<u64>, rules: &mut Rules, to: &mut Collected) -> Result<(), TableError> {
    let mut too_many = false;
    go::stretches(section, text, |stretch| {
        let first = to.rows.len();
        to.rows.push((stretch.start, rules.number(stretch.rule)));
        to.functions.push(Function { range: stretch.start..stretch.end, rows: first..first + 1 });
        too_many = to.rows.len() > MAX_ROWS;
        !too_many
    });
    if too_many { Err(TableError::TooLarge) } else { Ok(()) }
}

/// Puts functions in order, fills the gaps between them and cuts the whole into pages.
fn flatten(collected: &Collected) -> Result<Table, TableError> {
    let base = collected.functions[0].range.start & !0xffff;
    let mut writer = Writer { table: Table { base, ..Table::default() }, rule: NO_RULE };
    let mut end = base;
    for function in &collected.functions {
        // Of two that overlap, the one that begins first keeps what it has.
        let start = function.range.start.max(end);
        if start >= function.range.end || (function.range.end - base) >> 16 >= MAX_PAGES {
            continue;
        }
        if start > end {
            writer.row(end, NO_RULE)?;
        }
        let rows = &collected.rows[function.rows.clone()];
        // The row in force where the function begins to count, then those after it.
        let skipped = rows.partition_point(|row| row.0 <= start).saturating_sub(1);
        for &(address, rule) in &rows[skipped..] {
            if address < function.range.end {
                writer.row(address.max(start), rule)?;
            }
        }
        end = function.range.end;
        writer.table.functions += 1;
    }
    writer.row(end, NO_RULE)?;
    Ok(writer.table)
}

struct Writer {
    table: Table,
    /// The rule in force at the end of what is written.
    rule: u16,
}

impl Writer {
    /// `rule` is in force from `address` on. Addresses never fall.
    fn row(&mut self, address: u64, rule: u16) -> Result<(), TableError> {
        let Table { base, pages, rows, .. } = &mut self.table;
        let page = usize::try_from((address - *base) >> 16).map_err(|_| TableError::TooLarge)?;
        while pages.len() <= page {
            let start = u32::try_from(rows.len()).map_err(|_| TableError::TooLarge)?;
            rows.push(u32::from(self.rule));
            pages.push(start..start + 1);
        }
        let low = u32::try_from(address & 0xffff).unwrap_or_default() << 16;
        let row = low | u32::from(rule);
        let range = &mut pages[page];
        match rows.last_mut() {
            // Two rows at one address: the later one says what holds.
            Some(last) if *last & 0xffff_0000 == low => *last = row,
            _ if rule == self.rule => {}
            _ => {
                if rows.len() >= MAX_ROWS {
                    return Err(TableError::TooLarge);
                }
                rows.push(row);
            }
        }
        range.end = u32::try_from(rows.len()).map_err(|_| TableError::TooLarge)?;
        self.rule = rule;
        Ok(())
    }
}

impl Table {
    /// The number of the rule for an address in the file's own terms, as the kernel program finds it.
    pub fn rule_at(&self, address: u64) -> u16 {
        let Some(offset) = address.checked_sub(self.base) else { return NO_RULE };
        let page = usize::try_from(offset >> 16).ok().and_then(|page| self.pages.get(page));
        let Some(range) = page else { return NO_RULE };
        let rows = &self.rows[range.start as usize..range.end as usize];
        let wanted = u32::try_from(offset & 0xffff).unwrap_or_default() << 16 | 0xffff;
        let after = rows.partition_point(|&row| row <= wanted);
        after.checked_sub(1).map_or(NO_RULE, |at| u16::try_from(rows[at] & 0xffff).unwrap_or(NO_RULE))
    }
}
