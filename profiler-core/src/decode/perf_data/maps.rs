//! What is mapped where in each process, as time passes.

use std::collections::BTreeMap;
use std::rc::Rc;

use rustc_hash::FxHashMap;

/// The process that the kernel's own mappings are recorded for.
pub(super) const KERNEL: i32 = -1;

/// Most mappings in all processes together; beyond that forks start empty.
const MAX_COPIES: usize = 4 << 20;

/// A part of a file in memory.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Map {
    pub(super) start: u64,
    /// Address after the last.
    pub(super) end: u64,
    pub(super) offset: u64,
    pub(super) path: Rc<str>,
    /// In hex, where the record itself says it.
    pub(super) build_id: Option<Rc<str>>,
}

#[derive(Default)]
pub(super) struct Processes {
    by_pid: FxHashMap<i32, BTreeMap<u64, Map>>,
    copies: usize,
}

impl Processes {
    /// Adds a mapping; what it covers is gone.
    pub(super) fn add(&mut self, pid: i32, map: Map) {
        let maps = self.by_pid.entry(pid).or_default();
        // Before it ends no other that starts later can have begun.
        let covered: Vec<u64> = maps.range(map.start..map.end).map(|(start, _)| *start).collect();
        for start in covered {
            if let Some(old) = maps.remove(&start)
                && old.end > map.end
            {
                maps.insert(map.end, Map { start: old.start, ..old });
            }
        }
        if let Some((_, before)) = maps.range_mut(..map.start).next_back()
            && before.end > map.end
        {
            let behind = before.clone();
            maps.insert(map.end, behind);
        }
        maps.insert(map.start, map);
    }

    /// A program was started in the process.
    pub(super) fn forget(&mut self, pid: i32) {
        self.by_pid.remove(&pid);
    }

    /// A process begins with what its parent had.
    pub(super) fn fork(&mut self, pid: i32, parent: i32) {
        if pid == parent {
            return;
        }
        if let Some(maps) = self.by_pid.get(&parent)
            && self.copies + maps.len() < MAX_COPIES
        {
            self.copies += maps.len();
            let maps = maps.clone();
            self.by_pid.insert(pid, maps);
        }
    }

    /// The mapping an address is in. Its rows may have been cut by others; what it says of
    /// itself is the whole.
    pub(super) fn find(&self, pid: i32, address: u64) -> Option<Map> {
        let (_, map) = self.by_pid.get(&pid)?.range(..=address).next_back()?;
        (address < map.end).then(|| map.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(start: u64, end: u64, path: &str) -> Map {
        Map { start, end, offset: 0, path: path.into(), build_id: None }
    }

    #[test]
    fn later_mappings_cover_earlier_ones() {
        let mut processes = Processes::default();
        processes.add(1, map(0x1000, 0x9000, "a"));
        processes.add(1, map(0x3000, 0x5000, "b"));
        processes.fork(2, 1);
        processes.add(1, map(0x2000, 0x8000, "c"));
        let at = |pid, address| processes.find(pid, address).map(|map| map.path.to_string());
        let name = |text: &str| Some(text.to_owned());
        assert_eq!([at(1, 0x1000), at(1, 0x4000), at(1, 0x8000)], [name("a"), name("c"), name("a")]);
        assert_eq!([at(2, 0x2000), at(2, 0x4000), at(2, 0x6000)], [name("a"), name("b"), name("a")]);
        assert_eq!([at(1, 0xfff), at(1, 0x9000), at(3, 0x1000)], [None, None, None]);
    }
}
