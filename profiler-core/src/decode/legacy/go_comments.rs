//! The comment lines below a row of Go's text profiles, which name its frames:
//!
//! ```text
//! 1: 4096 [1: 4096] @ 0x47cd7a 0x4ebc05 0x4846e1
//! #  0x4ebc04  main.write+0xa4  /home/dev/src/demo/main.go:114
//! ```
//!
//! Fields are separated by tabs. The address of a comment is that of its frame less one, like our own. The writer leaves
//! out functions of the runtime at the leaf and `runtime.goexit` at the root, so a nameless
//! frame there is known to be one of those.

use rustc_hash::FxHashMap;

use super::lines::address;
use super::samples::{Name, Names};
use crate::profile::LineNo;

/// The leaves that the writer hides. They get a name so that the profile's `drop_frames` can
/// take them away, as Go's binary profiles do.
const HIDDEN: &str = "runtime.<hidden>";
const GOEXIT: &str = "runtime.goexit";

/// Comments of the current row, and names from all rows.
#[derive(Default)]
pub(super) struct Comments {
    row: Vec<(u64, Option<Name>)>,
    names: Names,
    /// Addresses that have a name only if no other row has a better one.
    presumed: FxHashMap<u64, &'static str>,
}

impl Comments {
    /// Takes a comment line of the current row, if it is one that names a frame.
    pub(super) fn add(&mut self, line: &str) {
        let Some(rest) = line.strip_prefix('#') else { return };
        let mut fields = rest.split('\t').filter(|field| !field.is_empty());
        let Some(frame) = fields.next().and_then(|field| address(field.trim())) else { return };
        let name = fields.next().zip(fields.next()).and_then(|(function, position)| {
            let (file, line) = position.rsplit_once(':')?;
            let line = line.trim().parse().map_or(LineNo::UNKNOWN, |line| LineNo::from_pprof(line, 0).0);
            let function = function.rsplit_once("+0x").map_or(function, |(name, _)| name);
            Some(Name { function: function.to_owned(), file: file.to_owned(), line })
        });
        self.row.push((frame, name));
    }

    /// Ends the row: gives the names of its comments to its frames, both leaf first. After
    /// the hidden leaves a comment is for the frame behind that of the comment before it, or
    /// for the same one where the writer unfolded inlined calls.
    pub(super) fn end_row(&mut self, stack: &[u64]) {
        let mut comments = self.row.drain(..).peekable();
        let Some(&(leaf, _)) = comments.peek() else { return };
        // The leaf of a signal was no return address and is left as it is.
        let is_at = |frame: usize, address: u64| {
            stack.get(frame).is_some_and(|&own| own == address || own.wrapping_add(1) == address)
        };
        let first = stack.iter().position(|&own| own == leaf).or_else(|| (0..stack.len()).find(|&i| is_at(i, leaf)));
        let Some(first) = first else { return };
        let mut named: Vec<Vec<Name>> = Vec::new();
        for (address, name) in comments {
            if is_at(first + named.len(), address) {
                named.push(name.into_iter().collect());
            } else if let Some(before) = named.len().checked_sub(1)
                && is_at(first + before, address)
            {
                named[before].extend(name);
            }
        }
        let end = first + named.len();
        for (&address, names) in stack[first..end].iter().zip(named) {
            if !names.is_empty() {
                self.names.of.entry(address).or_insert(names);
            }
        }
        for &address in &stack[..first] {
            self.presumed.entry(address).or_insert(HIDDEN);
        }
        if let [root] = stack[end..] {
            self.presumed.entry(root).or_insert(GOEXIT);
        }
    }

    pub(super) fn into_names(self) -> Names {
        let mut names = self.names;
        for (address, function) in self.presumed {
            let name = Name { function: function.to_owned(), file: String::new(), line: LineNo::UNKNOWN };
            names.of.entry(address).or_insert_with(|| vec![name]);
        }
        names
    }
}
