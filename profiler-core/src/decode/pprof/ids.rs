//! pprof's ids are arbitrary non-zero 64-bit numbers: usually 1, 2, 3, …, sometimes sparse,
//! sometimes addresses. Ours are row numbers.

use rustc_hash::FxHashMap;

/// Ids that are referred to before they are defined, squeezed into 32 bits.
///
/// Small ids stand for themselves. Larger ones get numbers of their own, with the highest
/// bit set, in order of appearance.
#[derive(Default)]
pub(super) struct RawIds {
    large: FxHashMap<u64, u32>,
}

const LARGE: u32 = 1 << 31;

impl RawIds {
    #[inline]
    pub(super) fn number(&mut self, id: u64) -> u32 {
        match u32::try_from(id) {
            Ok(small) if small < LARGE => small,
            _ => self.number_large(id),
        }
    }

    #[cold]
    fn number_large(&mut self, id: u64) -> u32 {
        // Frames are limited to far fewer than 2³¹, so this can't run over.
        let next = LARGE | u32::try_from(self.large.len()).unwrap_or(LARGE - 1);
        *self.large.entry(id).or_insert(next)
    }

    /// Replaces every number by the row of its id; 0 where there is none.
    ///
    /// Returns how many numbers had no row.
    pub(super) fn resolve(&self, numbers: &mut [u32], rows: &Rows) -> u64 {
        let mut large = vec![0; self.large.len()];
        for (&id, &number) in &self.large {
            large[(number & !LARGE) as usize] = rows.row(id);
        }
        let mut missing = 0;
        for number in numbers {
            let row = if *number < LARGE { rows.row(u64::from(*number)) } else { large[(*number & !LARGE) as usize] };
            missing += u64::from(row == 0);
            *number = row;
        }
        missing
    }
}

/// From the ids a table defines to its rows, counted from 1.
pub(super) enum Rows {
    /// The id is the row.
    Sequential {
        count: u64,
    },
    /// `rows[id]`.
    Dense(Vec<u32>),
    Sparse(FxHashMap<u64, u32>),
}

impl Rows {
    /// The row of an id; 0 when nothing defines it.
    #[inline]
    pub(super) fn row(&self, id: u64) -> u32 {
        match self {
            #[expect(clippy::cast_possible_truncation, reason = "count is a number of rows")]
            Self::Sequential { count } => {
                if id <= *count {
                    id as u32
                } else {
                    0
                }
            }
            Self::Dense(rows) => usize::try_from(id).ok().and_then(|id| rows.get(id)).copied().unwrap_or(0),
            Self::Sparse(rows) => rows.get(&id).copied().unwrap_or(0),
        }
    }

    /// Builds the look-up from ids in table order. Id 0 defines nothing, and of several rows
    /// with one id the first counts; both are returned as the number of rows nobody can mean.
    pub(super) fn new(ids: impl ExactSizeIterator<Item = u64> + Clone) -> (Self, u64) {
        if ids.clone().zip(1..).all(|(id, row)| id == row) {
            return (Self::Sequential { count: ids.len() as u64 }, 0);
        }
        let max = ids.clone().max().unwrap_or(0);
        let mut unusable = 0;
        if let Ok(max) = usize::try_from(max)
            && max <= 16 * ids.len()
        {
            let mut rows = vec![0; max + 1];
            for (id, row) in ids.zip(1..) {
                let slot = &mut rows[usize::try_from(id).unwrap_or(0)];
                if id == 0 || *slot != 0 {
                    unusable += 1;
                } else {
                    *slot = row;
                }
            }
            return (Self::Dense(rows), unusable);
        }
        let mut rows = FxHashMap::default();
        for (id, row) in ids.zip(1..) {
            if id == 0 {
                unusable += 1;
            } else {
                match rows.entry(id) {
                    std::collections::hash_map::Entry::Vacant(slot) => {
                        slot.insert(row);
                    }
                    std::collections::hash_map::Entry::Occupied(_) => unusable += 1,
                }
            }
        }
        (Self::Sparse(rows), unusable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_sequential_dense_and_sparse_ids() {
        for (ids, unusable) in [
            (vec![1u64, 2, 3], 0),
            (vec![3, 1, 2], 0),
            (vec![7, 9, 7, 0], 2),
            (vec![u64::MAX, 1 << 40, u64::MAX], 1),
            (vec![], 0),
        ] {
            let (rows, bad) = Rows::new(ids.iter().copied());
            assert_eq!(bad, unusable, "{ids:?}");
            for id in ids.iter().copied().chain([0, 5, 1 << 33]) {
                let first = ids.iter().position(|&other| other == id && id != 0);
                assert_eq!(rows.row(id) as usize, first.map_or(0, |at| at + 1), "{id} in {ids:?}");
            }
        }
    }
}
