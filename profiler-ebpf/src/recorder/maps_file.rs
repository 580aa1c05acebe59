//! `/proc/PID/maps`.

use std::ops::Range;

/// Most executable mappings of a process that are kept; the kernel program has room for twice as many in all.
const MAX_MAPPINGS: usize = 32_768;

/// A mapping of executable memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MapLine {
    /// Where it lies.
    pub(super) range: Range<u64>,
    /// Offset into the file of its first byte.
    pub(super) offset: u64,
    /// Major and minor number of the device; 0 without a file.
    pub(super) device: (u32, u32),
    /// 0 without a file.
    pub(super) inode: u64,
    /// As the process sees it, without `(deleted)`; `[vdso]` and the like; empty for none.
    pub(super) path: Vec<u8>,
    /// Whether the name is gone.
    pub(super) deleted: bool,
    /// Where the file's first byte is mapped, if it is.
    pub(super) image: Option<u64>,
}

impl MapLine {
    /// Whether it shows a file from a disk, not memory that has a name.
    pub(super) fn is_file(&self) -> bool {
        // Files in memory (`memfd`) hold what a compiler at run time wrote.
        self.inode != 0 && self.path.starts_with(b"/") && !self.path.starts_with(b"/memfd:")
    }
}

/// Executable mappings, sorted. Lines that can't be read are skipped.
pub(super) fn parse(text: &[u8]) -> Vec<MapLine> {
    let mut all = Vec::new();
    // Parts of one file follow each other, the first of them first.
    let mut image: Option<((u32, u32), u64, u64)> = None;
    for line in text.split(|&byte| byte == b'\n') {
        let Some((mut line, executable)) = parse_line(line) else { continue };
        if line.offset == 0 {
            image = Some((line.device, line.inode, line.range.start));
        }
        if !executable || all.len() == MAX_MAPPINGS {
            continue;
        }
        line.image =
            image.and_then(|(device, inode, start)| ((device, inode) == (line.device, line.inode)).then_some(start));
        all.push(line);
    }
    all
}

fn parse_line(line: &[u8]) -> Option<(MapLine, bool)> {
    let mut rest = line;
    let mut field = || {
        let start = rest.iter().position(|&byte| byte != b' ')?;
        let end = rest[start..].iter().position(|&byte| byte == b' ').map_or(rest.len(), |end| start + end);
        let field = str::from_utf8(&rest[start..end]).ok()?;
        rest = &rest[end..];
        Some(field)
    };
    let hex = |text: &str| u64::from_str_radix(text, 16).ok();
    let (start, end) = field()?.split_once('-')?;
    let range = hex(start)?..hex(end)?;
    let executable = field()?.as_bytes().get(2) == Some(&b'x');
    let offset = hex(field()?)?;
    let (major, minor) = field()?.split_once(':')?;
    let device = (u32::try_from(hex(major)?).ok()?, u32::try_from(hex(minor)?).ok()?);
    let inode = field()?.parse().ok()?;
    let path = rest.trim_ascii_start();
    let (path, deleted) = match path.strip_suffix(b" (deleted)") {
        Some(path) => (path, true),
        None => (path, false),
    };
    let path = unescape(path);
    (range.start < range.end)
        .then_some((MapLine { range, offset, device, inode, path, deleted, image: None }, executable))
}

/// The kernel writes line breaks in names as `\012`, and nothing else that way.
fn unescape(path: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(path.len());
    let mut rest = path;
    while let Some((&byte, after)) = rest.split_first() {
        if let Some(after) = rest.strip_prefix(b"\\012") {
            out.push(b'\n');
            rest = after;
        } else {
            out.push(byte);
            rest = after;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &[u8] = b"\
55d0a0000000-55d0a0001000 r--p 00000000 fe:00 1234                       /usr/bin/a b
55d0a0001000-55d0a0002000 r-xp 00001000 fe:00 1234                       /usr/bin/a b
7f0000000000-7f0000001000 rwxp 00000000 00:00 0
7f0000001000-7f0000002000 r-xp 00000000 00:1a 77                         /tmp/x\\012y (deleted)
7f0000002000-7f0000003000 r-xp 00000000 00:01 9                          /memfd:jit (deleted)
7ffd00000000-7ffd00002000 r-xp 00000000 00:00 0                          [vdso]
ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]
7f0000009000-7f0000008000 r-xp 00000000 00:00 0
garbage
";

    #[test]
    fn executable_mappings_are_read() {
        let maps = parse(TEXT);
        let seen: Vec<_> = maps
            .iter()
            .map(|map| {
                let path = String::from_utf8_lossy(&map.path).into_owned();
                (path, map.offset, map.deleted, map.is_file(), map.image)
            })
            .collect();
        let anonymous = Some(0x7f00_0000_0000);
        assert_eq!(
            seen,
            [
                ("/usr/bin/a b".into(), 0x1000, false, true, Some(0x55d0_a000_0000)),
                (String::new(), 0, false, false, anonymous),
                ("/tmp/x\ny".into(), 0, true, true, Some(0x7f00_0000_1000)),
                ("/memfd:jit".into(), 0, true, false, Some(0x7f00_0000_2000)),
                ("[vdso]".into(), 0, false, false, Some(0x7ffd_0000_0000)),
                ("[vsyscall]".into(), 0, false, false, Some(0xffff_ffff_ff60_0000)),
            ]
        );
        assert_eq!(maps[0].device, (0xfe, 0));
        assert_eq!(maps[0].inode, 1234);
    }

    /// A host of many small script engines has 128 000 mappings.
    #[test]
    fn a_very_long_file_is_read_once_and_cut() {
        use std::fmt::Write as _;
        let mut text = String::new();
        for i in 0..128_000_u64 {
            let start = 0x7f00_0000_0000 + i * 0x2000;
            writeln!(text, "{start:x}-{:x} r-xp 00000000 00:00 0", start + 0x1000).unwrap();
        }
        let maps = parse(text.as_bytes());
        assert_eq!(maps.len(), MAX_MAPPINGS);
        assert!(maps.is_sorted_by_key(|map| map.range.start));
    }
}
