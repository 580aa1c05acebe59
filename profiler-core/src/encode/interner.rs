//! The table of texts of a file that is being written.

use rustc_hash::FxHashMap;

use crate::profile::{Profile, StrId};

/// Texts get their number when they are first used, so the table is written last.
#[derive(Default)]
pub(super) struct Interner {
    known: FxHashMap<Box<str>, i64>,
    pub(super) in_order: Vec<Box<str>>,
    /// By row of the profile's table; 0 = not yet.
    rows: Vec<i64>,
}

impl Interner {
    pub(super) fn of(&mut self, text: &str) -> i64 {
        if let Some(&index) = self.known.get(text) {
            return index;
        }
        let index = i64::try_from(self.in_order.len()).unwrap_or(i64::MAX);
        self.in_order.push(text.into());
        self.known.insert(text.into(), index);
        index
    }

    /// Rows are looked up far more often than there are texts.
    pub(super) fn row(&mut self, profile: &Profile, id: StrId) -> i64 {
        if id.is_none() {
            return 0;
        }
        if let Some(&index) = self.rows.get(id.index())
            && index != 0
        {
            return index;
        }
        let index = self.of(profile.text(id));
        if self.rows.len() <= id.index() {
            self.rows.resize(id.index() + 1, 0);
        }
        self.rows[id.index()] = index;
        index
    }
}
