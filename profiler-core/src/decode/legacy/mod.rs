//! The profiles from before pprof's protocol buffer: gperftools' and tcmalloc's files, and
//! the text that Go's `/debug/pprof/…?debug=1` still writes.
//!
//! | format | file | recognised by |
//! | --- | --- | --- |
//! | `legacy-cpu` | [`cpu`] | five binary words; the Java variant lists its names behind the samples |
//! | `legacy-heap` | [`heap`] | `heap profile: … @ KIND/RATE` (C++ and Go), `growth`, `fragmentation`; `--- heapz 1 ---` (Java); `heap_v2/RATE` ([`jemalloc`]) |
//! | `legacy-contention` | [`contention`] | `--- contentionz`, `--- mutex:`, `--- contention:` (C++, Go, Java) |
//! | `legacy-threads` | [`threads`] | `--- threadz N ---`, `--- Thread HEX (name: …` |
//! | `go-text` | [`go_count`] | `NAME profile: total N` |
//!
//! All of them are stacks of addresses with numbers ([`samples`]), followed by the memory map
//! of the process ([`maps`]). Names are known only where the file has them: in Go's comments
//! ([`go_comments`]) and in Java's list ([`java`]). Values and addresses are made equal to
//! what `go tool pprof -raw` shows for the same file, which is also where the facts about
//! these formats were checked.
//!
//! What is not here: naming addresses from binaries, and goroutine dumps (`debug=2`), which
//! are refused with a reason. A file that is cut off keeps what is complete, with a note.

mod contention;
mod cpu;
mod go_comments;
mod go_count;
mod heap;
mod java;
mod jemalloc;
mod lines;
mod maps;
mod rows;
mod samples;
mod threads;

use super::{Confidence, DecodeError, Format, Input};

pub(super) use cpu::FORMAT as CPU;

pub(super) const HEAP: Format = Format {
    name: "legacy-heap",
    sniff: |prefix| certain(heap::is_header(first_line(prefix)) || jemalloc::is_header(first_line(prefix))),
    decode: |input, context| heap::decode(&Text::read(input)?, context),
};

pub(super) const CONTENTION: Format = Format {
    name: "legacy-contention",
    sniff: |prefix| certain(contention::is_header(first_line(prefix))),
    decode: |input, context| contention::decode(&Text::read(input)?, context),
};

pub(super) const THREADS: Format = Format {
    name: "legacy-threads",
    sniff: |prefix| certain(threads::is_header(first_line(prefix))),
    decode: |input, context| threads::decode(&Text::read(input)?, context),
};

pub(super) const GO_COUNT: Format = Format {
    name: "go-text",
    sniff: |prefix| certain(go_count::kind_in_header(first_line(prefix)).is_some()),
    decode: |input, context| go_count::decode(&Text::read(input)?, context),
};

fn certain(is_own: bool) -> Confidence {
    if is_own { Confidence::Certain } else { Confidence::No }
}

/// The first line that is neither empty nor a comment; headers are ASCII, so anything that is
/// not text has none.
fn first_line(prefix: &[u8]) -> &str {
    prefix
        .split(|&byte| byte == b'\n')
        .map(|line| std::str::from_utf8(line).unwrap_or("").trim())
        .find(|line| !lines::is_blank_or_comment(line))
        .unwrap_or("")
}

/// The whole of a text file.
struct Text {
    content: String,
    /// Where its bytes ended although the file did not.
    cut: Option<DecodeError>,
}

impl Text {
    fn read(input: &mut Input<'_>) -> Result<Self, DecodeError> {
        let (bytes, cut) = input.read_available()?;
        let content =
            String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
        Ok(Self { content, cut })
    }

    /// The lines behind the first one that is neither empty nor a comment, and that one.
    fn header(&self) -> (&str, lines::Lines<'_>) {
        let mut lines = lines::Lines::new(&self.content);
        let header = lines.find(|line| !lines::is_blank_or_comment(line.text)).map_or("", |line| line.text);
        (header.trim(), lines)
    }

    /// What the user should know about the end of the file.
    fn note(&self) -> Option<String> {
        let cut = self.cut.as_ref()?;
        Some(format!("the file is incomplete: {cut}; what came before was kept"))
    }
}
