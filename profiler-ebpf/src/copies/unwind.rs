//! From registers and a copied stack to return addresses, by framehop.
//!
//! This is the one file that knows the processor: which registers are asked for and what they are.

use std::ops::Range;
use std::sync::Arc;

use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{Error, ExplicitModuleSectionInfo, FrameAddress, Module, Unwinder as _};

use super::image::Image;
use super::records::Sample;
use crate::protocol::StackEnd;

/// The registers that unwinding needs, as the kernel numbers them: bp, sp, ip.
pub(super) const REGISTERS: u64 = 1 << 6 | 1 << 7 | 1 << 8;

/// As many frames as are taken of a stack.
const MAX_FRAMES: usize = 512;

/// The unwinder of one process. Cloning shares what it knows about files.
#[derive(Clone, Default)]
pub(super) struct Unwinder(UnwinderX86_64<Arc<[u8]>>);

/// What has been found out about addresses, for all processes.
#[derive(Default)]
pub(super) struct Cache(CacheX86_64);

/// The user's part of a stack.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unwound {
    /// Leaf first.
    pub(super) frames: Vec<u64>,
    /// Why they end.
    pub(super) end: StackEnd,
}

impl Unwinder {
    /// Adds the code of a mapping.
    pub(super) fn add(&mut self, range: Range<u64>, bias: u64, image: &Image) {
        let sections = ExplicitModuleSectionInfo {
            eh_frame_svma: image.eh_frame.as_ref().map(|section| section.range.clone()),
            eh_frame: image.eh_frame.as_ref().map(|section| Arc::clone(&section.data)),
            eh_frame_hdr_svma: image.eh_frame_hdr.as_ref().map(|section| section.range.clone()),
            eh_frame_hdr: image.eh_frame_hdr.as_ref().map(|section| Arc::clone(&section.data)),
            debug_frame: image.debug_frame.as_ref().map(|section| Arc::clone(&section.data)),
            text_svma: image.text.clone(),
            got_svma: image.got.clone(),
            ..ExplicitModuleSectionInfo::default()
        };
        self.0.add_module(Module::new(String::new(), range, bias, sections));
    }

    /// Forgets the code of a mapping.
    pub(super) fn remove(&mut self, start: u64) {
        self.0.remove_module(start);
    }

    /// Walks the stack of a sample.
    pub(super) fn unwind(&self, sample: &Sample, cache: &mut Cache) -> Unwound {
        let &[bp, sp, ip] = sample.registers.as_slice() else {
            return Unwound { frames: Vec::new(), end: StackEnd::NoUserPart };
        };
        let mut read = |address: u64| -> Result<u64, ()> {
            let at = usize::try_from(address.checked_sub(sp).ok_or(())?).map_err(|_| ())?;
            let bytes = sample.stack.get(at..at.checked_add(8).ok_or(())?).ok_or(())?;
            Ok(u64::from_ne_bytes(bytes.try_into().map_err(|_| ())?))
        };
        let mut frames = Vec::new();
        let mut walk = self.0.iter_frames(ip, UnwindRegsX86_64::new(ip, sp, bp), &mut cache.0, &mut read);
        let end = loop {
            if frames.len() >= MAX_FRAMES {
                break StackEnd::TooDeep;
            }
            match walk.next() {
                Ok(Some(FrameAddress::InstructionPointer(address))) => frames.push(address),
                Ok(Some(FrameAddress::ReturnAddress(address))) => frames.push(address.get()),
                // A thread's first frame has no caller, and null is how that looks on the stack.
                Ok(None) | Err(Error::ReturnAddressIsNull) => break StackEnd::Complete,
                Err(Error::CouldNotReadStack(address)) => {
                    let is_beyond = address >= sp.saturating_add(sample.stack.len() as u64);
                    let was_cut = sample.stack.len() == sample.stack_asked;
                    break if is_beyond && was_cut { StackEnd::CopyTooShort } else { StackEnd::Unreadable };
                }
                Err(Error::FramepointerUnwindingMovedBackwards | Error::DidNotAdvance | Error::IntegerOverflow) => {
                    break StackEnd::NoRule;
                }
            }
        };
        Unwound { frames, end }
    }
}
