//! What `/proc` says about a process, read once or when it changes.
//!
//! Everything here may be gone or change under our hands; then it is absent, never an error.

use std::fs;
use std::io::{self, BufRead, BufReader, Read};

use super::records::Mapped;

/// Most mappings of one process. Some have more than a hundred thousand, nearly all without code.
pub(super) const MAX_MAPPINGS: usize = 16_384;

/// Most bytes of a `maps` file.
const MAX_MAPS_BYTES: u64 = 64 << 20;

/// The mappings of executable memory.
pub(super) fn executable_mappings(pid: u32) -> Vec<Mapped> {
    let Ok(file) = fs::File::open(format!("/proc/{pid}/maps")) else { return Vec::new() };
    parse_maps(BufReader::new(file.take(MAX_MAPS_BYTES)))
}

fn parse_maps(mut lines: impl BufRead) -> Vec<Mapped> {
    let mut mappings = Vec::new();
    let mut line = Vec::new();
    // Paths need not be text.
    while mappings.len() < MAX_MAPPINGS && matches!(lines.read_until(b'\n', &mut line), Ok(length) if length > 0) {
        let text = String::from_utf8_lossy(&line);
        mappings.extend(parse_mapping(text.trim_end_matches('\n')).filter(|mapped| mapped.is_executable));
        line.clear();
    }
    mappings
}

/// Reads a line like `7f00-7f01 r-xp 00002000 08:01 1234   /usr/lib/x.so`.
fn parse_mapping(line: &str) -> Option<Mapped> {
    let mut fields = line.splitn(6, ' ');
    let (start, end) = fields.next()?.split_once('-')?;
    let protection = fields.next()?;
    let file_offset = fields.next()?;
    let (major, minor) = fields.next()?.split_once(':')?;
    let inode = fields.next()?;
    let hex = |text: &str| u64::from_str_radix(text, 16).ok();
    Some(Mapped {
        start: hex(start)?,
        end: hex(end)?,
        file_offset: hex(file_offset)?,
        device: hex(major)? << 32 | hex(minor)?,
        inode: inode.parse().ok()?,
        is_executable: protection.as_bytes().get(2) == Some(&b'x'),
        // Line ends in names are written as `\012`.
        path: fields.next().unwrap_or("").trim_start().replace("\\012", "\n"),
    })
}

/// The threads of a process that are there now.
pub(super) fn threads(pid: u32) -> io::Result<Vec<u32>> {
    let entries = fs::read_dir(format!("/proc/{pid}/task"))?;
    Ok(entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect())
}

/// The name of a thread.
pub(super) fn thread_name(pid: u32, tid: u32) -> Option<String> {
    let bytes = fs::read(format!("/proc/{pid}/task/{tid}/comm")).ok()?;
    Some(String::from_utf8_lossy(&bytes).trim_end_matches('\n').to_owned())
}

/// The program's path as the process sees it.
pub(super) fn executable(pid: u32) -> String {
    let link = fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
    let path = link.to_string_lossy();
    path.strip_suffix(" (deleted)").unwrap_or(&path).to_owned()
}

/// Numbers of a process that its `status` has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Status {
    /// The process that started it.
    pub(super) parent: u32,
    /// Its number in its innermost pid namespace.
    pub(super) namespace_pid: u32,
    /// Real, effective and saved user.
    pub(super) users: [u32; 3],
}

/// Reads the status of a process.
pub(super) fn status(pid: u32) -> Option<Status> {
    parse_status(&fs::read_to_string(format!("/proc/{pid}/status")).ok()?)
}

fn parse_status(text: &str) -> Option<Status> {
    let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let mut users = field("Uid")?.split_whitespace().map(str::parse);
    let mut user = || users.next()?.ok();
    Some(Status {
        parent: field("PPid")?.trim().parse().ok()?,
        // Kernels without namespaces don't say it.
        namespace_pid: field("NSpid").or(field("Pid"))?.split_whitespace().next_back()?.parse().ok()?,
        users: [user()?, user()?, user()?],
    })
}

/// The CPUs that are running, from a list like `0-11,13-15`.
pub(super) fn online_cpus() -> Vec<u32> {
    let text = fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    let cpus = parse_cpus(&text);
    if cpus.is_empty() { vec![0] } else { cpus }
}

fn parse_cpus(text: &str) -> Vec<u32> {
    const MOST: u32 = 8_192;
    let ranges = text.trim().split(',').filter_map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        (last < MOST).then_some(first..=last)
    });
    ranges.flatten().collect()
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;

    #[test]
    fn cpus_may_have_gaps() {
        for (text, cpus) in [
            ("0-1\n", &[0, 1][..]),
            ("0-2,5,7-8\n", &[0, 1, 2, 5, 7, 8]),
            ("0", &[0]),
            ("", &[]),
            ("0-4294967295", &[]),
            ("x,3", &[3]),
        ] {
            assert_eq!(parse_cpus(text), cpus, "{text:?}");
        }
    }

    #[test]
    fn only_code_counts_among_a_hundred_thousand_mappings() {
        let mut text = String::new();
        for at in 0..128_000_u64 {
            let _ = writeln!(text, "{:x}-{:x} rw-p 00000000 00:00 0 ", at << 12, (at + 1) << 12);
        }
        text += "7f00000-7f01000 r-xp 00002000 08:01 1234                /opt/a b/x.so (deleted)\n";
        text += "no mapping\n";
        let expected = Mapped {
            start: 0x7f0_0000,
            end: 0x7f0_1000,
            file_offset: 0x2000,
            device: 8 << 32 | 1,
            inode: 1234,
            is_executable: true,
            path: "/opt/a b/x.so (deleted)".to_owned(),
        };
        assert_eq!(parse_maps(text.as_bytes()), [expected]);
    }

    #[test]
    fn the_innermost_number_names_a_process_in_a_container() {
        let text = "Name:\tapp\nPid:\t4711\nPPid:\t4700\nUid:\t1000\t1000\t0\t1000\nNSpid:\t4711\t12\n";
        assert_eq!(parse_status(text), Some(Status { parent: 4700, namespace_pid: 12, users: [1000, 1000, 0] }));
        assert_eq!(parse_status("Name:\tapp\n"), None);
    }
}
