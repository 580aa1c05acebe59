//! What came lately: profiles of the last minutes, within a number of bytes.
//!
//! Time is cut into slots. What comes in a slot is put together while that is little, so that
//! many small requests become few profiles; a slot goes as a whole when it is too old, or when
//! memory runs out. Age is that of arrival: clocks of senders prove nothing.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use profiler_core::cancel::CancelFlag;
use profiler_core::profile::combine::combine;
use profiler_core::profile::{BuildError, LabelValue, Profile, ValueType};
use profiler_core::symbolize::ProfileError;
use profiler_core::view::data;
use tokio::sync::Notify;

use crate::symbols::Places;

/// The format that views of the window are of.
const FORMAT: &str = "otlp";
/// A window has so many slots.
const SLOTS: u32 = 60;
/// Profiles below this size are put together with their neighbours.
const SMALL: usize = 1 << 20;
/// Most value types at a time: each is a column of every sample in the view.
const MAX_TYPES: usize = 32;
/// Most names that are counted apart.
const MAX_NAMES: usize = 64;
/// Most characters of one.
const MAX_NAME: usize = 100;
/// Beyond this, the sum of a value type could not be shown.
const MAX_TOTAL: i128 = i64::MAX as i128 / 2;

/// What came in and what became of it, since the start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Requests that were taken.
    pub requests: u64,
    /// Samples in them.
    pub samples: u64,
    /// Profiles of them that were left out.
    pub rejected: u64,
    /// Samples that had to go before their time, since memory ran out.
    pub dropped: u64,
    /// Requests that were refused, by reason.
    pub refused: BTreeMap<&'static str, u64>,
    /// Samples by who they are from, as many as are counted apart.
    pub from: BTreeMap<String, u64>,
    /// Samples of all others.
    pub from_others: u64,
}

/// What is in the window now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// Samples.
    pub samples: u64,
    /// Bytes.
    pub bytes: usize,
    /// How far it reaches back; shorter than it should when memory ran out.
    pub age: Duration,
}

/// What became of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Added {
    /// Profiles that were left out.
    pub rejected: u64,
    /// Why the last of them was.
    pub why: Option<&'static str>,
}

/// Profiles of the last minutes.
#[derive(Debug)]
pub struct Window {
    length: Duration,
    max_bytes: usize,
    start: Instant,
    held: Mutex<Held>,
    /// Tells that something came.
    pub changed: Notify,
}

#[derive(Debug, Default)]
struct Held {
    segments: VecDeque<Segment>,
    bytes: usize,
    /// In the order in which they first came, so that views don't change theirs.
    kinds: Vec<Kind>,
    totals: Vec<(ValueType, i128)>,
    counts: Counts,
    /// Counts changes.
    serial: u64,
}

/// What must be equal for profiles to be put together without loss.
type Kind = (Vec<ValueType>, Option<ValueType>, i64);

/// Some of what came in one slot.
#[derive(Clone, Debug)]
struct Segment {
    slot: u64,
    kind: Kind,
    bytes: usize,
    profile: Arc<Profile>,
    /// The profile with what was found out about its addresses, and where that was looked for.
    symbolised: Arc<Symbolised>,
}

/// Snapshots find out about addresses; what they found is the window's memory all the same.
#[derive(Debug, Default)]
struct Symbolised {
    known: Mutex<Option<(Places, Arc<Profile>)>>,
    bytes: AtomicUsize,
}

impl Segment {
    fn new(slot: u64, kind: Kind, profile: Profile) -> Self {
        Self { slot, kind, bytes: profile.heap_size(), profile: Arc::new(profile), symbolised: Arc::default() }
    }

    fn samples(&self) -> u64 {
        self.profile.samples().len() as u64
    }

    /// Bytes of the copy with names, where there is one.
    fn copied(&self) -> usize {
        self.symbolised.bytes.load(Ordering::Relaxed)
    }
}

/// The window as it was at a moment.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// Differs for different contents.
    pub serial: u64,
    segments: Vec<Segment>,
}

impl Window {
    /// An empty window of a length, for so many bytes.
    pub fn new(length: Duration, max_bytes: usize) -> Self {
        Self { length, max_bytes, start: Instant::now(), held: Mutex::default(), changed: Notify::new() }
    }

    /// How long what comes is kept.
    pub fn length(&self) -> Duration {
        self.length
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn slot(&self, at: Instant) -> u64 {
        let slot = (self.length / SLOTS).max(Duration::from_millis(1));
        u64::try_from(at.saturating_duration_since(self.start).as_nanos() / slot.as_nanos()).unwrap_or(u64::MAX)
    }

    /// Takes in the profiles of a request.
    pub fn add(&self, profiles: Vec<Profile>, now: Instant) -> Added {
        let slot = self.slot(now);
        let mut held = self.held();
        held.expire(slot);
        let mut added = Added::default();
        let mut is_new = false;
        for profile in profiles {
            match held.push(slot, profile, self.max_bytes) {
                Ok(()) => is_new = true,
                Err(why) => {
                    added.rejected += 1;
                    added.why = Some(why);
                }
            }
        }
        held.counts.requests += 1;
        held.counts.rejected += added.rejected;
        if is_new {
            held.serial += 1;
            drop(held);
            self.changed.notify_one();
        }
        added
    }

    /// Counts a request that was refused.
    pub fn refused(&self, reason: &'static str) {
        *self.held().counts.refused.entry(reason).or_default() += 1;
    }

    /// What came in so far.
    pub fn counts(&self) -> Counts {
        self.held().counts.clone()
    }

    /// What is in it.
    pub fn extent(&self, now: Instant) -> Extent {
        let slot = self.slot(now);
        let mut held = self.held();
        held.expire(slot);
        held.shrink(self.max_bytes);
        let slots = held.segments.front().map_or(0, |first| slot.saturating_sub(first.slot) + 1);
        let age = (self.length / SLOTS).saturating_mul(u32::try_from(slots).unwrap_or(u32::MAX));
        Extent { samples: held.segments.iter().map(Segment::samples).sum(), bytes: held.bytes_in_all(), age }
    }

    /// The window as it is now; `None` when there is nothing in it.
    pub fn snapshot(&self, now: Instant) -> Option<Snapshot> {
        let slot = self.slot(now);
        let mut held = self.held();
        held.expire(slot);
        held.shrink(self.max_bytes);
        let mut segments: Vec<Segment> = held.segments.iter().cloned().collect();
        segments.sort_by_key(|segment| held.kinds.iter().position(|kind| *kind == segment.kind));
        (!segments.is_empty()).then_some(Snapshot { serial: held.serial, segments })
    }
}

impl Held {
    /// Lets go of what is too old.
    fn expire(&mut self, slot: u64) {
        while self.segments.front().is_some_and(|first| first.slot + u64::from(SLOTS) < slot + 1) {
            self.pop();
            self.serial += 1;
        }
    }

    fn pop(&mut self) -> Option<Segment> {
        let segment = self.segments.pop_front()?;
        self.bytes -= segment.bytes;
        for (column, kind) in segment.profile.value_types().iter().enumerate() {
            if let Some((_, total)) = self.totals.iter_mut().find(|(known, _)| known == kind) {
                *total -= i128::from(segment.profile.sum(column).total);
            }
        }
        let segments = &self.segments;
        self.kinds.retain(|kind| segments.iter().any(|segment| segment.kind == *kind));
        let kinds = &self.kinds;
        self.totals.retain(|(known, _)| kinds.iter().any(|(types, ..)| types.contains(known)));
        Some(segment)
    }

    fn push(&mut self, slot: u64, profile: Profile, max_bytes: usize) -> Result<(), &'static str> {
        if profile.samples().is_empty() {
            return Ok(());
        }
        let types = profile.value_types();
        let new = types.iter().filter(|kind| !self.totals.iter().any(|(known, _)| known == *kind)).count();
        if self.totals.len() + new > MAX_TYPES {
            return Err("more different value types came than can be shown at a time");
        }
        let total =
            |kind: &ValueType| self.totals.iter().find(|(known, _)| known == kind).map_or(0, |(_, total)| *total);
        if types.iter().enumerate().any(|(at, kind)| total(kind) + i128::from(profile.sum(at).total) > MAX_TOTAL) {
            return Err("the values add up to more than can be counted");
        }
        let kind = (types.to_vec(), profile.meta().period_type.clone(), profile.meta().period);
        let segment = Segment::new(slot, kind, profile);
        if segment.bytes > max_bytes {
            return Err("it is larger than all that is kept");
        }
        self.count(&segment);
        for (column, kind) in segment.profile.value_types().iter().enumerate() {
            let sum = i128::from(segment.profile.sum(column).total);
            match self.totals.iter_mut().find(|(known, _)| known == kind) {
                Some((_, total)) => *total += sum,
                None => self.totals.push((kind.clone(), sum)),
            }
        }
        if !self.kinds.contains(&segment.kind) {
            self.kinds.push(segment.kind.clone());
        }
        self.bytes += segment.bytes;
        let kind = segment.kind.clone();
        self.segments.push_back(segment);
        self.put_together(slot, &kind);
        self.shrink(max_bytes);
        Ok(())
    }

    fn bytes_in_all(&self) -> usize {
        self.bytes + self.segments.iter().map(Segment::copied).sum::<usize>()
    }

    /// Lets go of the oldest while there is too much; the newest stays, even if with its copy it is more.
    fn shrink(&mut self, max_bytes: usize) {
        while self.segments.len() > 1 && self.bytes_in_all() > max_bytes {
            let Some(oldest) = self.pop() else { break };
            self.counts.dropped += oldest.samples();
            self.serial += 1;
        }
    }

    /// Puts the last profiles of a slot and kind together while they are small and of a size:
    /// so every sample is copied a few times only, however many requests come.
    fn put_together(&mut self, slot: u64, kind: &Kind) {
        loop {
            let own = |&at: &usize| self.segments[at].slot == slot && self.segments[at].kind == *kind;
            let mut last = (0..self.segments.len()).rev().take_while(|&at| self.segments[at].slot == slot).filter(own);
            let (Some(second), Some(first)) = (last.next(), last.next()) else { return };
            let (a, b) = (&self.segments[first], &self.segments[second]);
            if b.bytes >= SMALL || a.bytes >= SMALL || a.bytes > 2 * b.bytes {
                return;
            }
            // The sums are within bounds; what is too much to be one stays two.
            let Ok(both) = combine(FORMAT, [&*a.profile, &*b.profile]) else { return };
            let both = Segment::new(slot, kind.clone(), both);
            self.bytes = self.bytes + both.bytes - a.bytes - b.bytes;
            self.segments[first] = both;
            self.segments.remove(second);
        }
    }

    fn count(&mut self, segment: &Segment) {
        self.counts.samples += segment.samples();
        for (name, samples) in names(&segment.profile) {
            let name = &*data::shown_within(name, MAX_NAME);
            let is_counted = self.counts.from.len() < MAX_NAMES || self.counts.from.contains_key(name);
            if is_counted {
                *self.counts.from.entry(name.to_owned()).or_default() += samples;
            } else {
                self.counts.from_others += samples;
            }
        }
    }
}

/// Who samples are from: the service, else the program.
fn names(profile: &Profile) -> BTreeMap<&str, u64> {
    const KEYS: [&str; 3] = ["service.name", "process.executable.name", "process.pid"];
    let samples = profile.samples();
    let mut names: BTreeMap<&str, u64> = BTreeMap::new();
    for sample in 0..samples.len() {
        let name = KEYS.iter().take(2).find_map(|key| {
            samples.labels(sample).iter().find_map(|label| match label.value {
                LabelValue::Text(text) if profile.text(label.key) == *key => Some(profile.text(text)),
                _ => None,
            })
        });
        *names.entry(name.unwrap_or_default()).or_default() += 1;
    }
    names
}

impl Snapshot {
    /// All of it as one profile, with lines where this machine knows them.
    pub fn profile(&self, places: &Places, cancel: &CancelFlag) -> Result<Profile, ProfileError> {
        let mut parts = Vec::with_capacity(self.segments.len());
        for segment in &self.segments {
            cancel.check()?;
            parts.push(segment.symbolised(places, cancel)?);
        }
        combine(FORMAT, parts.iter().map(|part| &**part)).map_err(ProfileError::from)
    }

    /// The same without looking anything up.
    pub fn plain(&self) -> Result<Profile, BuildError> {
        combine(FORMAT, self.segments.iter().map(|segment| &*segment.profile))
    }
}

impl Segment {
    fn symbolised(&self, places: &Places, cancel: &CancelFlag) -> Result<Arc<Profile>, ProfileError> {
        let mut symbolised = self.symbolised.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, profile)) = &*symbolised
            && known == places
        {
            return Ok(Arc::clone(profile));
        }
        let profile = match places.symbolised(Arc::clone(&self.profile), None, cancel) {
            Err(ProfileError::TooLarge(_)) => Arc::clone(&self.profile),
            result => result?,
        };
        let is_copy = !Arc::ptr_eq(&profile, &self.profile);
        self.symbolised.bytes.store(if is_copy { profile.heap_size() } else { 0 }, Ordering::Relaxed);
        *symbolised = Some((places.clone(), Arc::clone(&profile)));
        Ok(profile)
    }
}

#[cfg(test)]
mod tests {
    use profiler_core::profile::{MapId, Mapping, ProfileBuilder};

    use super::*;

    const MINUTE: Duration = Duration::from_mins(1);

    /// A profile of one sample at an address that nobody can name.
    fn profile(value: i64) -> Profile {
        let mut builder = ProfileBuilder::new(FORMAT, vec![ValueType::new("samples", "count")]);
        let mapping = Mapping {
            file: builder.string("/nowhere/app").unwrap(),
            build_id: builder.string("0123456789abcdef").unwrap(),
            ..Mapping::default()
        };
        let mapping = builder.push_mapping(mapping).unwrap();
        assert_ne!(mapping, MapId::NONE);
        let location = builder.location(mapping, 0x1234, &[]).unwrap();
        builder.push_sample(&[location], &[value], &[]).unwrap();
        builder.finish().unwrap()
    }

    fn total(window: &Window, now: Instant) -> Option<i64> {
        window.snapshot(now).map(|snapshot| snapshot.plain().unwrap().sum(0).total)
    }

    #[test]
    fn what_is_too_old_falls_out_as_time_goes_on() {
        let window = Window::new(15 * MINUTE, 1 << 30);
        let start = window.start;
        for (minute, value) in [(0, 1), (5, 2), (14, 4)] {
            window.add(vec![profile(value)], start + minute * MINUTE);
        }
        let mut serials = Vec::new();
        for (minute, left) in [(14, Some(7)), (16, Some(6)), (21, Some(4)), (28, Some(4)), (30, None), (900, None)] {
            let now = start + minute * MINUTE;
            assert_eq!(total(&window, now), left, "after {minute} minutes");
            serials.extend(window.snapshot(now).map(|snapshot| snapshot.serial));
            assert!(window.extent(now).age <= 15 * MINUTE, "after {minute} minutes");
        }
        serials.dedup();
        assert_eq!(serials.len(), 3, "what differs has another number");
        assert_eq!(window.extent(start + 30 * MINUTE).bytes, 0);
        // Nothing was dropped before its time, and what comes later is kept as before.
        assert_eq!(window.counts().dropped, 0);
        window.add(vec![profile(8)], start + 901 * MINUTE);
        assert_eq!(total(&window, start + 901 * MINUTE), Some(8));
    }

    #[test]
    fn clocks_that_go_back_lose_nothing() {
        let window = Window::new(15 * MINUTE, 1 << 30);
        window.add(vec![profile(1)], window.start + 5 * MINUTE);
        window.add(vec![profile(2)], window.start);
        assert_eq!(total(&window, window.start + 5 * MINUTE), Some(3));
    }

    #[test]
    fn copies_with_names_count_as_memory_of_the_window() {
        let one = profile(1).heap_size();
        // Ten of them fit, but not with their copies.
        let window = Window::new(15 * MINUTE, 10 * one + one / 2);
        let at = |minute: u32| window.start + minute * MINUTE;
        for minute in 0..10 {
            window.add(vec![profile(1)], at(minute));
        }
        assert_eq!(total(&window, at(10)), Some(10));
        let before = window.extent(at(10)).bytes;
        let snapshot = window.snapshot(at(10)).unwrap();
        // Looked for in vain, which a copy of the profile says.
        let named = snapshot.profile(&Places::default(), &CancelFlag::new()).unwrap();
        assert_eq!(named.sum(0).total, 10);
        let copied: usize = snapshot.segments.iter().map(Segment::copied).sum();
        assert!(copied >= before, "{copied} of {before}");
        let extent = window.extent(at(10));
        assert!(extent.bytes <= 10 * one + one / 2, "{} bytes", extent.bytes);
        assert_eq!(window.counts().dropped + extent.samples, 10);
        assert!(window.counts().dropped >= 4);
    }
}
