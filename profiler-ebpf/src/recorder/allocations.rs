//! Sampled memory that was not given back yet.

use rustc_hash::FxHashMap;

use crate::protocol::Sample;

/// Most allocations that are followed: half a terabyte in use, at the usual distance between samples.
const MAX: usize = 1 << 20;

/// What is in use, by process and pointer.
#[derive(Debug, Default)]
pub(super) struct Allocations {
    live: FxHashMap<(u32, u64), Live>,
    last: u64,
}

#[derive(Clone, Copy, Debug)]
struct Live {
    id: u64,
    bytes: u64,
    objects: u64,
}

impl Allocations {
    /// Memory was allocated: the size that was sampled becomes what it stands for, the pointer a number that no other
    /// allocation has.
    pub(super) fn allocated(&mut self, sample: &mut Sample, interval: u64) {
        let pointer = sample.allocation;
        let (bytes, objects) = stands_for(sample.value, interval);
        self.last += 1;
        (sample.value, sample.count, sample.allocation) = (bytes, objects, self.last);
        // The library's own function comes first; what called the allocator is what matters.
        if sample.user.len() > 1 {
            sample.user.remove(0);
            sample.exact.retain_mut(|at| {
                *at = at.saturating_sub(1);
                *at > 0
            });
        }
        if self.live.len() < MAX {
            self.live.insert((sample.pid, pointer), Live { id: self.last, bytes, objects });
        }
    }

    /// Memory was given back: the sample becomes the same as that of its allocation; `false` when nobody saw that.
    pub(super) fn freed(&mut self, sample: &mut Sample) -> bool {
        let Some(live) = self.live.remove(&(sample.pid, sample.allocation)) else { return false };
        (sample.value, sample.count, sample.allocation) = (live.bytes, live.objects, live.id);
        true
    }

    /// A process's memory is gone, all of it.
    pub(super) fn forget(&mut self, pid: u32) {
        if !self.live.is_empty() {
            self.live.retain(|(of, _), _| *of != pid);
        }
    }
}

/// Bytes and objects that one sampled allocation stands for, so that sums come out right on average: an allocation of
/// some size is seen with probability 1 - exp(-size / interval).
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "both are positive, and far from the end")]
fn stands_for(size: u64, interval: u64) -> (u64, u64) {
    let size = size.max(1) as f64;
    let seen = -(-size / interval.max(1) as f64).exp_m1();
    ((size / seen).round() as u64, (1.0 / seen).round().max(1.0) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_allocations_stand_for_many_and_large_ones_for_themselves() {
        let interval = 512 << 10;
        for (size, expected) in [
            (0, (interval + 1, interval + 1)),
            (16, (interval + 8, 32_769)),
            (interval, (829_411, 2)),
            (1 << 30, (1 << 30, 1)),
            (u64::MAX, (u64::MAX, 1)),
        ] {
            assert_eq!(stands_for(size, interval), expected, "{size}");
        }
        assert_eq!(stands_for(7, 0), (7, 1));
    }

    #[test]
    fn what_is_given_back_is_what_was_allocated() {
        let mut all = Allocations::default();
        let at = |pid, allocation, value| Sample { pid, allocation, value, user: vec![1, 2], ..Sample::default() };
        let (mut first, mut second) = (at(1, 0x10, 64), at(2, 0x10, 4 << 20));
        all.allocated(&mut first, 512 << 10);
        all.allocated(&mut second, 512 << 10);
        assert_ne!(first.allocation, second.allocation);
        assert_eq!(first.user, [2], "the library's own function is left out");

        let mut free = at(1, 0x10, 0);
        assert!(all.freed(&mut free));
        assert_eq!((free.value, free.count, free.allocation), (first.value, first.count, first.allocation));
        assert!(!all.freed(&mut at(1, 0x10, 0)));
        all.forget(2);
        assert!(!all.freed(&mut at(2, 0x10, 0)));
    }
}
