//! Which of many ranges of addresses hold an address. Ranges may overlap, since debug info
//! does: of functions that were folded into one, or nested.

/// Ranges, each with a row of something.
#[derive(Clone, Debug, Default)]
pub(super) struct RangeMap {
    ranges: Vec<Range>,
}

#[derive(Clone, Copy, Debug)]
struct Range {
    begin: u64,
    end: u64,
    /// The largest end of this one and all before it.
    reach: u64,
    row: u32,
}

/// More overlapping ranges than this are not looked at.
const MAX_OVERLAPS: usize = 64;

impl RangeMap {
    /// From (begin, end, row); empty and reversed ranges are left out. Of equal ranges the later
    /// one comes first in answers.
    pub(super) fn new(ranges: impl IntoIterator<Item = (u64, u64, u32)>) -> Self {
        let mut ranges: Vec<Range> = ranges
            .into_iter()
            .filter(|(begin, end, _)| begin < end)
            .map(|(begin, end, row)| Range { begin, end, reach: 0, row })
            .collect();
        ranges.sort_by_key(|range| range.begin);
        let mut reach = 0;
        for range in &mut ranges {
            reach = reach.max(range.end);
            range.reach = reach;
        }
        ranges.shrink_to_fit();
        Self { ranges }
    }

    pub(super) fn len(&self) -> usize {
        self.ranges.len()
    }

    /// Rows of the ranges that hold the address, those that begin last first.
    #[inline]
    pub(super) fn find(&self, address: u64) -> impl Iterator<Item = u32> + '_ {
        let end = self.ranges.partition_point(|range| range.begin <= address);
        self.ranges[..end]
            .iter()
            .rev()
            .take(MAX_OVERLAPS)
            .take_while(move |range| range.reach > address)
            .filter(move |range| range.end > address)
            .map(|range| range.row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(ranges: &[(u64, u64, u32)], address: u64) -> Vec<u32> {
        RangeMap::new(ranges.iter().copied()).find(address).collect()
    }

    #[test]
    fn ends_are_outside_and_bad_ranges_are_nothing() {
        let ranges = [(10, 20, 1), (20, 30, 2), (40, 40, 3), (60, 50, 4), (u64::MAX, 5, 5)];
        assert_eq!(find(&ranges, 9), [0; 0]);
        assert_eq!(find(&ranges, 10), [1]);
        assert_eq!(find(&ranges, 20), [2]);
        assert_eq!(find(&ranges, 30), [0; 0]);
        assert_eq!(find(&ranges, 40), [0; 0]);
        assert_eq!(find(&ranges, 55), [0; 0]);
    }

    #[test]
    fn of_overlapping_ranges_the_innermost_comes_first() {
        let ranges = [(0, 100, 1), (10, 20, 2), (10, 20, 3), (12, 14, 4)];
        assert_eq!(find(&ranges, 13), [4, 3, 2, 1]);
        assert_eq!(find(&ranges, 15), [3, 2, 1]);
        assert_eq!(find(&ranges, 50), [1]);
    }
}
