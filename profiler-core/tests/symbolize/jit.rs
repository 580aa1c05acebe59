//! Code that is in no file: perf maps and jitdumps.

use profiler_core::symbolize::{Avma, FrameAddress, JitDump, JitDumpError, PerfMap};

/// Writes a dump as the format's description has it.
struct Dump(Vec<u8>);

impl Dump {
    fn new() -> Self {
        let mut header = Vec::new();
        for number in [0x4a69_5444_u32, 1, 40, 62, 0, 4711] {
            header.extend(number.to_le_bytes());
        }
        header.extend([0; 16]);
        Self(header)
    }

    fn record(mut self, kind: u32, body: &[u8]) -> Self {
        self.0.extend(kind.to_le_bytes());
        self.0.extend((16 + u32::try_from(body.len()).unwrap()).to_le_bytes());
        self.0.extend([0; 8]);
        self.0.extend(body);
        self
    }

    fn load(self, begin: u64, size: u64, index: u64, name: &str) -> Self {
        let mut body = vec![0; 8];
        for number in [begin, begin, size, index] {
            body.extend(number.to_le_bytes());
        }
        body.extend(name.as_bytes());
        body.push(0);
        body.resize(body.len() + usize::try_from(size).unwrap(), 0x90);
        self.record(0, &body)
    }

    fn lines(self, begin: u64, rows: &[(u64, u32, u32, &[u8])]) -> Self {
        let mut body = begin.to_le_bytes().to_vec();
        body.extend((rows.len() as u64).to_le_bytes());
        for (address, line, column, file) in rows {
            body.extend(address.to_le_bytes());
            body.extend(line.to_le_bytes());
            body.extend(column.to_le_bytes());
            body.extend(*file);
            body.push(0);
        }
        self.record(2, &body)
    }

    fn moved(self, old: u64, new: u64, size: u64, index: u64) -> Self {
        let mut body = vec![0; 16];
        for number in [old, new, size, index] {
            body.extend(number.to_le_bytes());
        }
        self.record(1, &body)
    }

    fn find(&self, address: u64) -> String {
        let dump = JitDump::parse(&self.0).unwrap();
        match dump.find(FrameAddress::Instruction(Avma(address))) {
            Some(frame) => format!("{} {}:{}:{}", frame.name, frame.file, frame.line.0, frame.column),
            None => "-".to_owned(),
        }
    }
}

#[test]
fn lines_of_generated_code() {
    let dump = Dump::new()
        .lines(0x1000, &[(0x1000, 3, 0, b"/p/a.lua"), (0x1010, 4, 0, b"\xff"), (0x1018, 1, 0, b"/p/b.lua")])
        .load(0x1000, 0x20, 1, "f")
        .load(0x2000, 0x20, 2, "g");
    assert_eq!(dump.find(0xfff), "-");
    assert_eq!(dump.find(0x1000), "f /p/a.lua:3:0");
    assert_eq!(dump.find(0x1017), "f /p/a.lua:4:0");
    assert_eq!(dump.find(0x1018), "f /p/b.lua:1:0");
    assert_eq!(dump.find(0x1020), "-");
    assert_eq!(dump.find(0x2000), "g :0:0");
}

#[test]
fn code_that_moved_keeps_its_lines() {
    let dump = Dump::new()
        .lines(0x1000, &[(0x1000, 3, 0, b"/p/a.lua"), (0x1010, 4, 0, b"\xff")])
        .load(0x1000, 0x20, 7, "f")
        .moved(0x1000, 0x5000, 0x20, 7)
        .load(0x1000, 0x20, 8, "later");
    assert_eq!(dump.find(0x5011), "f /p/a.lua:4:0");
    assert_eq!(dump.find(0x1011), "later :0:0");
}

/// As V8 writes them.
#[test]
fn lines_that_count_from_an_elf_header() {
    let dump = Dump::new()
        .lines(0x1000, &[(0x1040, 3, 7, b"file:///p/a.js"), (0x1058, 4, 9, b"\xff"), (0x1064, 5, 1, b"\xff")])
        .load(0x1000, 0x20, 1, "JS:*f file:///p/a.js:2:10");
    assert_eq!(dump.find(0x1000), "f /p/a.js:3:7");
    assert_eq!(dump.find(0x1017), "f /p/a.js:3:7");
    assert_eq!(dump.find(0x1018), "f /p/a.js:4:9");
}

#[test]
fn a_dump_that_is_still_written() {
    let dump = Dump::new().load(0x1000, 0x20, 1, "f").load(0x2000, 0x20, 2, "g");
    for cut in 0..dump.0.len() {
        match JitDump::parse(&dump.0[..cut]) {
            Ok(dump) => assert!(dump.len() < 2),
            Err(error) => assert!(cut < 4 && error == JitDumpError::NotJitDump),
        }
    }
    assert_eq!(JitDump::parse(b"\x4a\x69\x54\x44\0\0\0\0").unwrap_err(), JitDumpError::BigEndian);
}

#[test]
fn addresses_of_a_perf_map_are_those_of_memory() {
    let map = PerfMap::parse("7f0000001000 40 int Busy.fib(int)\n");
    // A caller's address is behind the call, here at the very end of the function.
    assert!(map.find(FrameAddress::Instruction(Avma(0x7f00_0000_1040))).is_none());
    let caller = map.find(FrameAddress::Return(Avma(0x7f00_0000_1040))).unwrap();
    assert_eq!(&*caller.name, "int Busy.fib(int)");
    assert!(map.find(FrameAddress::Instruction(Avma(0x1000))).is_none(), "no file offset, no bias");
}
