//! From bytes to a [`Profile`].
//!
//! ```text
//! reader ──thread: inflate──▶ Input (chunks) ──sniff──▶ one Format's decoder ──▶ Profile
//! ```
//!
//! Compression is peeled off by `container`, whatever the file is called. A [`Format`] is
//! one file of this module and one line of [`FORMATS`]; it is recognised by content alone.
//!
//! Input is hostile: every buffer grows only with bytes that have arrived, [`Limits`] bound
//! what may arrive, and any bytes give a profile or an error, never a panic.
//!
//! What is not here: naming addresses from debug info, and anything about files on this
//! machine beyond the bytes that were handed in.

mod austin;
mod callgrind;
mod container;
mod dhat;
mod error;
mod firefox;
mod folded;
mod fraction;
mod input;
mod jfr;
mod json;
mod legacy;
mod otlp;
mod perf_data;
mod perf_script;
pub(crate) mod pprof;
mod pstats;
mod scalene;
mod sink;
mod speedscope;
mod stackprof;
mod text;
mod v8;

use std::io::Read;

pub use error::{DecodeError, DecodeErrorKind};
pub use input::Input;
pub use otlp::{OtlpEncoding, decode_otlp_request};

use crate::cancel::CancelFlag;
use crate::profile::Profile;

/// Bounds on what a file may make us hold.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Most bytes after decompression.
    pub max_bytes: u64,
    /// Most bytes after decompression per compressed byte, once 64 MiB have come out.
    pub max_ratio: u64,
    /// Most frames in all samples together.
    pub max_frames: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_bytes: 2 << 30, max_ratio: 300, max_frames: 1 << 29 }
    }
}

/// How sure a format is that bytes are its own, judging by their beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Confidence {
    /// They are not.
    No,
    /// Nothing contradicts it.
    Possible,
    /// It looks like it.
    Likely,
    /// A signature says so.
    Certain,
}

/// One file format.
pub struct Format {
    /// The name in JSON and messages.
    pub name: &'static str,
    /// Judges the first bytes of a file, decompressed: at most [`Input::SNIFF_LENGTH`] of
    /// them, all there are when the file is shorter.
    pub sniff: fn(&[u8]) -> Confidence,
    /// Reads the file. The format has the input to itself from its first byte.
    pub decode: fn(&mut Input<'_>, &Context<'_>) -> Result<Profile, DecodeError>,
}

/// What every decoder is given besides the bytes.
pub struct Context<'a> {
    /// Bounds to keep.
    pub limits: &'a Limits,
    /// To be looked at every few thousand items.
    pub cancel: &'a CancelFlag,
}

/// Every format, in the order of preference when two are equally sure.
pub const FORMATS: &[Format] = &[
    pprof::FORMAT,
    legacy::CPU,
    legacy::HEAP,
    legacy::CONTENTION,
    legacy::THREADS,
    legacy::GO_COUNT,
    otlp::FORMAT,
    v8::HEAP,
    v8::CPU,
    v8::TRACE,
    firefox::FORMAT,
    stackprof::FORMAT,
    dhat::FORMAT,
    scalene::FORMAT,
    pstats::FORMAT,
    austin::FORMAT,
    austin::MOJO,
    callgrind::FORMAT,
    perf_script::FORMAT,
    perf_data::FORMAT,
    jfr::FORMAT,
    speedscope::FORMAT,
    folded::FORMAT,
];

/// Reads a profile of any format, compressed or not.
///
/// Bytes are read and decompressed on a thread of their own, so the file is never held in
/// memory as a whole unless its format needs that.
pub fn decode(reader: impl Read + Send, limits: &Limits, cancel: &CancelFlag) -> Result<Profile, DecodeError> {
    input::with_input(reader, limits, cancel, |input| {
        let context = Context { limits, cancel };
        let format = sniff(input)?;
        let mut profile = (format.decode)(input, &context).map_err(|error| error.of_format(format.name))?;
        profile.notes.extend(input.notes());
        Ok(profile)
    })
}

fn sniff(input: &mut Input<'_>) -> Result<&'static Format, DecodeError> {
    let prefix = input.peek()?;
    if prefix.is_empty() {
        return Err(DecodeError::new(DecodeErrorKind::Empty, "it holds no bytes; whatever was to write it has not"));
    }
    // `max_by_key` would take the last of equals; the table's order says the first.
    let mut best = (Confidence::No, None);
    for format in FORMATS {
        let confidence = (format.sniff)(prefix);
        if confidence > best.0 {
            best = (confidence, Some(format));
        }
    }
    best.1.ok_or_else(|| DecodeError::unknown_format(prefix))
}
