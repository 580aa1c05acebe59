//! `perf_event_open` and the ring buffers behind it.
//!
//! The only module here with `unsafe`: one system call that nobody wraps, and memory that the
//! kernel writes while we read. What comes out are whole records as bytes, copied.
#![expect(unsafe_code, reason = "a system call without a wrapper, and memory shared with the kernel")]

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering};

/// `struct perf_event_attr`, as of its fifth version (112 bytes), which every kernel since 4.1 takes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Attributes {
    pub(super) kind: u32,
    pub(super) size: u32,
    pub(super) config: u64,
    /// Samples per second with [`flag::FREQUENCY`], else events per sample.
    pub(super) period_or_frequency: u64,
    pub(super) sample_type: u64,
    pub(super) read_format: u64,
    pub(super) flags: u64,
    /// In bytes with [`flag::WATERMARK`].
    pub(super) wakeup: u32,
    pub(super) breakpoint_type: u32,
    pub(super) config1: u64,
    pub(super) config2: u64,
    pub(super) branch_sample_type: u64,
    pub(super) user_registers: u64,
    /// Bytes of a copy.
    pub(super) user_stack: u32,
    pub(super) clock: i32,
    pub(super) interrupt_registers: u64,
    pub(super) aux_watermark: u32,
    pub(super) max_stack: u16,
    pub(super) reserved: u16,
}

/// `PERF_TYPE_SOFTWARE`.
pub(super) const SOFTWARE: u32 = 1;
/// `PERF_COUNT_SW_CPU_CLOCK`.
pub(super) const CPU_CLOCK: u64 = 0;
/// `PERF_COUNT_SW_PAGE_FAULTS`.
pub(super) const PAGE_FAULTS: u64 = 2;

/// Bits of [`Attributes::flags`].
pub(super) mod flag {
    pub(in super::super) const INHERIT: u64 = 1 << 1;
    pub(in super::super) const EXCLUDE_KERNEL: u64 = 1 << 5;
    pub(in super::super) const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
    pub(in super::super) const MMAP: u64 = 1 << 8;
    pub(in super::super) const COMM: u64 = 1 << 9;
    pub(in super::super) const FREQUENCY: u64 = 1 << 10;
    pub(in super::super) const TASK: u64 = 1 << 13;
    pub(in super::super) const WATERMARK: u64 = 1 << 14;
    pub(in super::super) const SAMPLE_ID_ALL: u64 = 1 << 18;
    pub(in super::super) const EXCLUDE_CALLCHAIN_USER: u64 = 1 << 22;
    pub(in super::super) const MMAP2: u64 = 1 << 23;
    pub(in super::super) const COMM_EXEC: u64 = 1 << 24;
    pub(in super::super) const USE_CLOCK: u64 = 1 << 25;
}

/// Bits of [`Attributes::sample_type`].
pub(super) mod sample {
    pub(in super::super) const IP: u64 = 1;
    pub(in super::super) const TID: u64 = 1 << 1;
    pub(in super::super) const TIME: u64 = 1 << 2;
    pub(in super::super) const CALLCHAIN: u64 = 1 << 5;
    pub(in super::super) const PERIOD: u64 = 1 << 8;
    pub(in super::super) const REGS_USER: u64 = 1 << 12;
    pub(in super::super) const STACK_USER: u64 = 1 << 13;
}

/// `PERF_EVENT_IOC_SET_OUTPUT`.
const SET_OUTPUT: libc::c_ulong = 0x2405;
/// `PERF_FLAG_FD_CLOEXEC`.
const CLOSE_ON_EXEC: libc::c_ulong = 8;

/// Opens an event of one thread on one CPU.
pub(super) fn open(attributes: &Attributes, thread: u32, cpu: u32) -> io::Result<OwnedFd> {
    let attributes = Attributes { size: size_of::<Attributes>().try_into().unwrap_or(u32::MAX), ..*attributes };
    let thread = libc::pid_t::try_from(thread).map_err(io::Error::other)?;
    let cpu = libc::c_int::try_from(cpu).map_err(io::Error::other)?;
    // SAFETY: the kernel reads `size` bytes of `attributes`, which is that long and outlives the call.
    let result = unsafe {
        libc::syscall(libc::SYS_perf_event_open, &raw const attributes, thread, cpu, -1 as libc::c_int, CLOSE_ON_EXEC)
    };
    let descriptor = libc::c_int::try_from(result).map_err(io::Error::other)?;
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call has just made this descriptor, and nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// Sends the records of an event to the ring of another one of the same CPU.
pub(super) fn send_to(event: &OwnedFd, ring: &Ring) -> io::Result<()> {
    // SAFETY: both descriptors are open, and the request takes nothing but a descriptor.
    let result = unsafe { libc::ioctl(event.as_raw_fd(), SET_OUTPUT, ring.event.as_raw_fd()) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// The ring buffer of an event, mapped.
#[derive(Debug)]
pub(super) struct Ring {
    event: OwnedFd,
    /// One page of control words, then the data.
    memory: NonNull<u8>,
    page: usize,
    /// Bytes of data, a power of two.
    capacity: usize,
}

impl Ring {
    /// Maps the ring of an event, with this many pages of data (a power of two).
    pub(super) fn map(event: OwnedFd, pages: usize) -> Result<Self, (OwnedFd, io::Error)> {
        let page = rustix::param::page_size();
        let length = (pages + 1) * page;
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory of ours.
        let memory = unsafe {
            libc::mmap(
                ptr::null_mut(),
                length,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                event.as_raw_fd(),
                0,
            )
        };
        match NonNull::new(memory.cast::<u8>()) {
            Some(start) if memory != libc::MAP_FAILED => {
                Ok(Self { event, memory: start, page, capacity: pages * page })
            }
            _ => Err((event, io::Error::last_os_error())),
        }
    }

    /// A control word that kernel and reader share.
    fn word(&self, offset: usize) -> &AtomicU64 {
        debug_assert!(offset + 8 <= self.page && offset.is_multiple_of(8));
        // SAFETY: the first page is mapped as long as `self` lives, the offset is inside it and aligned, and
        // both sides treat the word as atomic.
        unsafe { AtomicU64::from_ptr(self.memory.as_ptr().add(offset).cast()) }
    }

    /// Hands every whole record that is there to `take`, then frees their space.
    ///
    /// The bytes begin with the record's header. A length that makes no sense ends the round.
    pub(super) fn drain(&self, buffer: &mut Vec<u8>, mut take: impl FnMut(&[u8])) {
        const HEAD: usize = 1024;
        const TAIL: usize = 1032;
        const HEADER: usize = 8;
        // The kernel publishes data before the head.
        let head = self.word(HEAD).load(Ordering::Acquire);
        let mut tail = self.word(TAIL).load(Ordering::Relaxed);
        while tail < head {
            self.copy(tail, HEADER, buffer);
            let length = usize::from(u16::from_ne_bytes([buffer[6], buffer[7]]));
            if length < HEADER || tail + length as u64 > head {
                tail = head;
                break;
            }
            self.copy(tail, length, buffer);
            take(buffer);
            tail += length as u64;
        }
        // And may reuse the space only after our copies.
        self.word(TAIL).store(tail, Ordering::Release);
    }

    /// Copies bytes at a position of the stream, which wraps around in the ring.
    fn copy(&self, at: u64, length: usize, into: &mut Vec<u8>) {
        let length = length.min(self.capacity);
        let mask = self.capacity as u64 - 1;
        let start = usize::try_from(at & mask).unwrap_or(0);
        let first = length.min(self.capacity - start);
        into.clear();
        // SAFETY: both pieces lie within the mapped data behind the first page. The kernel does not write
        // between tail and head, which is where they are.
        unsafe {
            let data = self.memory.as_ptr().add(self.page);
            into.extend_from_slice(std::slice::from_raw_parts(data.add(start), first));
            into.extend_from_slice(std::slice::from_raw_parts(data, length - first));
        }
    }
}

impl AsFd for Ring {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: this is the mapping of `map`, and no reference into it outlives `self`.
        let _ = unsafe { libc::munmap(self.memory.as_ptr().cast(), self.capacity + self.page) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_as_long_as_their_version_says() {
        assert_eq!(size_of::<Attributes>(), 112);
    }
}
