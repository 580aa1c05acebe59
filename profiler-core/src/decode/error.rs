//! Why a file could not be read, in words that end up before a user.

use crate::cancel::Cancelled;
use crate::profile::BuildError;

/// What kind of trouble a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecodeErrorKind {
    /// There are no bytes, or no profile in them.
    Empty,
    /// No known format, or a known kind of file that is not a profile.
    NotAProfile,
    /// It ends in the middle.
    Truncated,
    /// Beyond a bound of [`Limits`](super::Limits).
    Limit,
    /// It contradicts its own format.
    Invalid,
    /// A profile, but of a kind that can't be read.
    Unsupported,
    /// The bytes could not be read from where they are.
    Io,
    /// Someone stopped it.
    Cancelled,
}

/// A file could not be decoded. Displays as one clause that fits after "cpu.pb.gz: ".
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodeError {
    kind: DecodeErrorKind,
    format: Option<&'static str>,
    message: String,
}

impl DecodeError {
    /// An error whose message is a clause about the file: "ends inside a sample, at byte 123".
    pub fn new(kind: DecodeErrorKind, message: impl Into<String>) -> Self {
        Self { kind, format: None, message: message.into() }
    }

    /// The file contradicts its format.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(DecodeErrorKind::Invalid, message)
    }

    /// The file ends in the middle.
    pub fn truncated(message: impl Into<String>) -> Self {
        Self::new(DecodeErrorKind::Truncated, message)
    }

    /// What kind of trouble it is.
    pub fn kind(&self) -> DecodeErrorKind {
        self.kind
    }

    /// The format the file was taken for, once that is known.
    pub fn format(&self) -> Option<&'static str> {
        self.format
    }

    pub(super) fn of_format(mut self, format: &'static str) -> Self {
        self.format = Some(format);
        self
    }

    /// No format wants the bytes: says what they look like, where that helps.
    pub(super) fn unknown_format(prefix: &[u8]) -> Self {
        let looks_like = match prefix {
            [0x7f, b'E', b'L', b'F', ..] => "it is a program, not a profile of one",
            [0x1f, 0x8b, ..] | [0x28, 0xb5, 0x2f, 0xfd, ..] => "it is compressed twice; decompress it once",
            [b'P', b'K', 3, 4, ..] => "it is a zip archive; extract the profile first",
            _ if prefix.iter().take(64).all(|&b| b == 0) => "it holds only zero bytes",
            _ if prefix.trim_ascii_start().starts_with(b"<") => "it is a web page or XML, not a profile",
            _ if prefix.starts_with(b"goroutine ") => {
                "it is a goroutine dump (debug=2), not a profile; fetch it with debug=0 or debug=1"
            }
            _ if prefix.starts_with(b"--- symbol") => {
                "it is a profile with names put in by the old pprof script, which can't be read; \
                 take the file the script was given, or its output with --collapsed"
            }
            _ if prefix.trim_ascii_start().starts_with(b"{") => {
                "it is JSON, but no profile format that is known; `perflens report --help` lists those that are"
            }
            _ => "no known profile format; `perflens report --help` lists those that are",
        };
        Self::new(DecodeErrorKind::NotAProfile, looks_like)
    }
}

impl std::fmt::Display for DecodeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.format {
            Some(format) if self.kind != DecodeErrorKind::Cancelled => {
                write!(f, "{} (read as {format})", self.message)
            }
            _ => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for DecodeError {}

impl From<Cancelled> for DecodeError {
    fn from(_: Cancelled) -> Self {
        Self::new(DecodeErrorKind::Cancelled, "cancelled")
    }
}

impl From<BuildError> for DecodeError {
    fn from(error: BuildError) -> Self {
        let kind = match error {
            BuildError::TooMany(_) => DecodeErrorKind::Limit,
            BuildError::TotalOverflow(_) => DecodeErrorKind::Invalid,
        };
        Self::new(kind, error.to_string())
    }
}
