//! Arrays of the kernel program, mapped into our memory.
//!
//! One system call instead of one per element: a table has a million rows.
#![expect(unsafe_code, reason = "memory is mapped here, and nowhere else")]

use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// An array map of the kernel program, as bytes that can be written.
///
/// The kernel program may read what is written at any moment: write first what is not yet referred to.
pub(super) struct MappedArray {
    start: NonNull<u8>,
    length: usize,
}

impl MappedArray {
    /// Maps `length` bytes of the map that `fd` stands for.
    pub(super) fn new(fd: BorrowedFd<'_>, length: usize) -> io::Result<Self> {
        let length = length.next_multiple_of(4096);
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: the kernel chooses a free place, so that nothing existing is replaced.
        let start = unsafe { mmap(std::ptr::null_mut(), length, protection, flags, fd, 0) }?;
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, length })
    }

    /// Writes `bytes` at `at`; `false` when they don't fit.
    #[must_use]
    pub(super) fn write(&mut self, at: usize, bytes: &[u8]) -> bool {
        if at.checked_add(bytes.len()).is_none_or(|end| end > self.length) {
            return false;
        }
        // SAFETY: the range was just checked to be inside of what is mapped; `bytes` can't overlap it, since
        // no reference to it is ever given out.
        unsafe { self.start.as_ptr().add(at).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        true
    }
}

impl Drop for MappedArray {
    fn drop(&mut self) {
        // SAFETY: it was mapped by `new` with this length, and nobody has a reference into it.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.length) };
    }
}
