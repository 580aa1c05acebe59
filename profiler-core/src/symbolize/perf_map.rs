//! Perf maps: `/tmp/perf-PID.map`, a line per function that a runtime generated.
//!
//! Who may write such a file, and whether it is the process's own, is for the caller to check.

use std::collections::BTreeMap;

use super::jit_names;
use super::{Avma, Frame, FrameAddress};

/// Most lines that are read.
const MAX_LINES: usize = 4 << 20;

/// The functions of a perf map.
///
/// ```
/// use profiler_core::symbolize::{Avma, FrameAddress, PerfMap};
/// let map = PerfMap::parse("3ef414c0 398 JS:*fib /p/busy.js:1:13\n3ef414c0 100 JS:*newer /p/busy.js:9:1\n");
/// let frame = map.find(FrameAddress::Instruction(Avma(0x3ef4_1500))).unwrap();
/// assert_eq!((&*frame.name, &*frame.file, frame.start_line.0), ("newer", "/p/busy.js", 9));
/// ```
#[derive(Clone, Debug, Default)]
pub struct PerfMap {
    text: String,
    /// Disjoint, sorted.
    ranges: Vec<Range>,
}

#[derive(Clone, Copy, Debug)]
struct Range {
    begin: u64,
    end: u64,
    name: (u32, u32),
}

impl PerfMap {
    /// Reads a map. Lines that are none are skipped; of lines about one address the later counts,
    /// since code is replaced while the program runs.
    pub fn parse(text: &str) -> Self {
        let mut lines = Vec::new();
        // Places in the text are 32 bits wide.
        let text = text.get(..text.len().min(u32::MAX as usize)).unwrap_or_default();
        for line in text.lines().take(MAX_LINES) {
            lines.extend(range(text, line));
        }
        Self { text: text.to_owned(), ranges: disjoint(&lines) }
    }

    /// How many ranges of code have a name.
    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    /// Whether nothing has a name.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The name at an address, as the map has it.
    pub fn name(&self, address: Avma) -> Option<&str> {
        let index = self.ranges.partition_point(|range| range.begin <= address.0).checked_sub(1)?;
        let range = self.ranges[index];
        (address.0 < range.end).then(|| &self.text[range.name.0 as usize..range.name.1 as usize])
    }

    /// The function at an address.
    pub fn find(&self, address: FrameAddress) -> Option<Frame> {
        self.name(address.lookup()).map(jit_names::frame)
    }
}

/// `address size name`, both in hexadecimal digits, some with `0x` in front.
fn range(text: &str, line: &str) -> Option<Range> {
    let hex = |word: &str| u64::from_str_radix(word.strip_prefix("0x").unwrap_or(word), 16).ok();
    let (address, rest) = line.split_once(' ')?;
    let (size, name) = rest.split_once(' ')?;
    let begin = hex(address)?;
    let end = begin.checked_add(hex(size)?)?;
    let name = name.trim_end();
    let start = u32::try_from(name.as_ptr() as usize - text.as_ptr() as usize).ok()?;
    let range = Range { begin, end, name: (start, start + u32::try_from(name.len()).ok()?) };
    (begin < end && !name.is_empty()).then_some(range)
}

/// Lets later ranges cover earlier ones.
fn disjoint(ranges: &[Range]) -> Vec<Range> {
    let mut by_begin: BTreeMap<u64, Range> = BTreeMap::new();
    for &new in ranges {
        // What reaches into the new range keeps its ends.
        if let Some((_, &before)) = by_begin.range(..new.begin).next_back()
            && before.end > new.begin
        {
            by_begin.insert(before.begin, Range { end: new.begin, ..before });
            if before.end > new.end {
                by_begin.insert(new.end, Range { begin: new.end, ..before });
            }
        }
        while let Some((&begin, &covered)) = by_begin.range(new.begin..new.end).next() {
            by_begin.remove(&begin);
            if covered.end > new.end {
                by_begin.insert(new.end, Range { begin: new.end, ..covered });
            }
        }
        by_begin.insert(new.begin, new);
    }
    by_begin.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str, addresses: &[u64]) -> Vec<String> {
        let map = PerfMap::parse(text);
        addresses.iter().map(|&address| map.name(Avma(address)).unwrap_or("-").to_owned()).collect()
    }

    #[test]
    fn later_lines_cover_earlier_ones() {
        let text = "10 30 old\n20 8 new\n18 4 inner\n100 10 x y\n100 10 z\n";
        assert_eq!(
            names(text, &[0xf, 0x10, 0x18, 0x1b, 0x1c, 0x20, 0x27, 0x28, 0x3f, 0x40, 0x100]),
            ["-", "old", "inner", "inner", "old", "new", "new", "old", "old", "-", "z"]
        );
    }

    #[test]
    fn what_is_no_line_is_skipped() {
        let text = "\nnonsense\n10 zz name\n10 0 empty\nffffffffffffffff 10 wraps\n20 4\n30 4 \n40 4 kept\n50 4 cut";
        assert_eq!(names(text, &[0x10, 0x20, 0x30, 0x40, 0x50, u64::MAX]), ["-", "-", "-", "kept", "cut", "-"]);
    }

    #[test]
    fn names_say_where_the_function_is() {
        let shown = |name: &str| {
            let frame = jit_names::frame(name);
            format!("{} {}:{}", frame.name, frame.file, frame.start_line.0)
        };
        for (name, wanted) in [
            ("JS:*fib /p/busy.js:1:13", "fib /p/busy.js:1"),
            ("LazyCompile:~get size file:///my dir/a.mjs:20:5", "get size /my dir/a.mjs:20"),
            ("JS:^ /p/anonymous.js:3:4", "(anonymous) /p/anonymous.js:3"),
            ("Script:~ /p/busy.js:1:1", "(anonymous) /p/busy.js:1"),
            ("JS:~realpath node:fs:2600:20", "realpath node:fs:2600"),
            ("JS:*old /p/old.js:7", "old /p/old.js:7"),
            ("Builtin:ArrayMap", "Builtin:ArrayMap :0"),
            ("int Busy.fib(int)", "int Busy.fib(int) :0"),
            ("py::Shape.area:/app/my shapes.py", "Shape.area /app/my shapes.py:0"),
            ("py::<lambda>:<string>", "<lambda> <string>:0"),
        ] {
            assert_eq!(shown(name), wanted, "{name}");
        }
    }
}
