//! Bytes of a file, mapped into memory. The only unsafe code of the crate is here.
//!
//! Debug info is large and mostly unread; mapping it costs what is read of it.
//!
//! What a map can't promise: a file that somebody cuts shorter while it is mapped ends the
//! process when the missing part is read. Linkers and package managers write new files and
//! rename them, which is harmless; and maps are dropped as soon as their batch is done with,
//! unless the owner of the [`Symbolizer`](super::Symbolizer) keeps it.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;

/// The bytes of a file.
#[derive(Debug)]
pub(super) struct Mapped(Bytes);

#[derive(Debug)]
enum Bytes {
    Map(memmap2::Mmap),
    Owned(Vec<u8>),
}

impl Default for Mapped {
    fn default() -> Self {
        Self::owned(Vec::new())
    }
}

impl Mapped {
    /// Maps a regular file.
    pub(super) fn of(file: &File) -> io::Result<Self> {
        if file.metadata()?.len() == 0 {
            return Ok(Self(Bytes::Owned(Vec::new())));
        }
        // SAFETY: the map is private and never written through. Other programs may change the
        // file; all readers treat the bytes as hostile and keep no reference that relies on two
        // reads being equal: slices are bounds-checked against the length at the time of mapping.
        let map = unsafe { memmap2::MmapOptions::new().map_copy_read_only(file) }?;
        Ok(Self(Bytes::Map(map)))
    }

    /// Takes bytes that are in memory.
    pub(super) fn owned(bytes: Vec<u8>) -> Self {
        Self(Bytes::Owned(bytes))
    }

    /// The bytes.
    pub(super) fn bytes(&self) -> &[u8] {
        match &self.0 {
            Bytes::Map(map) => map,
            Bytes::Owned(bytes) => bytes,
        }
    }
}
