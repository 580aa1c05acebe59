//! speedscope's JSON as it is written, and the walk over the samples of one profile.
//!
//! Faults seen in the field, each of which condemns the profile it is in: more weights than
//! samples, frames that aren't there, frames closed that aren't open, time running backwards.

use std::borrow::Cow;

use serde::de::{Deserialize, Deserializer, SeqAccess, Visitor};
use serde_json::Number;
use serde_json::value::RawValue;

use crate::profile::LineNo;

/// The file. Profiles are left as text, so that a broken one spoils only itself.
#[derive(serde::Deserialize)]
pub(super) struct File<'a> {
    #[serde(borrow)]
    pub(super) shared: Shared<'a>,
    #[serde(borrow)]
    pub(super) profiles: Vec<&'a RawValue>,
    /// The profile that the user looked at last.
    #[serde(rename = "activeProfileIndex")]
    pub(super) active: Option<Number>,
}

#[derive(serde::Deserialize)]
pub(super) struct Shared<'a> {
    #[serde(borrow)]
    pub(super) frames: Vec<Frame<'a>>,
}

#[derive(serde::Deserialize)]
pub(super) struct Frame<'a> {
    #[serde(borrow)]
    pub(super) name: Cow<'a, str>,
    #[serde(borrow)]
    file: Option<Cow<'a, str>>,
    line: Option<f64>,
    col: Option<f64>,
}

impl Frame<'_> {
    pub(super) fn file(&self) -> &str {
        self.file.as_deref().unwrap_or("")
    }

    /// Line and column, both 1-based; the column is 0 when unknown.
    #[expect(clippy::cast_possible_truncation, reason = "casts of floats saturate, and that is no valid line")]
    pub(super) fn position(&self) -> (LineNo, u32) {
        LineNo::from_pprof(self.line.unwrap_or(0.0) as i64, self.col.unwrap_or(0.0) as i64)
    }
}

/// The name of a profile that may be damaged.
pub(super) fn name(raw: &str) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Named {
        name: String,
    }
    serde_json::from_str::<Named>(raw).ok().map(|named| named.name)
}

/// One profile of the file.
#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Part<'a> {
    #[serde(borrow, default)]
    pub(super) name: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(super) unit: Cow<'a, str>,
    #[serde(rename = "type")]
    kind: Kind,
    start_value: Option<f64>,
    end_value: Option<f64>,
    #[serde(default)]
    samples: Stacks,
    #[serde(default)]
    weights: Vec<f64>,
    #[serde(default)]
    events: Vec<Event>,
}

#[derive(Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Sampled,
    Evented,
}

#[derive(serde::Deserialize)]
struct Event {
    #[serde(rename = "type")]
    kind: EventKind,
    at: f64,
    frame: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, serde::Deserialize)]
enum EventKind {
    #[serde(rename = "O")]
    Open,
    #[serde(rename = "C")]
    Close,
}

/// Why a profile can't be used.
pub(super) struct Flaw(pub(super) String);

impl From<Flaw> for super::DecodeError {
    fn from(Flaw(reason): Flaw) -> Self {
        Self::invalid(reason)
    }
}

impl Part<'_> {
    /// Start and end, in the unit of the profile.
    pub(super) fn span(&self) -> Option<(f64, f64)> {
        self.start_value.zip(self.end_value)
    }

    /// Calls `each` with the stack (root first) and the weight of every sample.
    pub(super) fn for_each_sample<E: From<Flaw>>(
        &self,
        frame_count: usize,
        mut each: impl FnMut(&[u32], f64) -> Result<(), E>,
    ) -> Result<(), E> {
        match self.kind {
            Kind::Sampled => {
                let (stacks, weights) = (self.samples.ends.len(), self.weights.len());
                if stacks != weights {
                    return Err(Flaw(format!("it has {stacks} samples and {weights} weights")).into());
                }
                check_frames(&self.samples.frames, frame_count)?;
                let mut start = 0;
                for (&end, &weight) in self.samples.ends.iter().zip(&self.weights) {
                    each(&self.samples.frames[start..end], weight)?;
                    start = end;
                }
                Ok(())
            }
            Kind::Evented => self.for_each_span(frame_count, each),
        }
    }

    /// The time between two events belongs to the frames that are open. When none is, it is
    /// nobody's.
    fn for_each_span<E: From<Flaw>>(
        &self,
        frame_count: usize,
        mut each: impl FnMut(&[u32], f64) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut open: Vec<u32> = Vec::new();
        let mut last = self.events.first().map_or(0.0, |event| event.at);
        for (number, event) in self.events.iter().enumerate() {
            let number = number + 1;
            if event.at < last {
                return Err(
                    Flaw(format!("its time runs backwards at event {number}, from {last} to {}", event.at)).into()
                );
            }
            if event.at > last && !open.is_empty() {
                each(&open, event.at - last)?;
            }
            last = event.at;
            check_frames(&[event.frame], frame_count)?;
            match event.kind {
                EventKind::Open => open.push(event.frame),
                EventKind::Close if open.last() == Some(&event.frame) => {
                    open.pop();
                }
                EventKind::Close => {
                    let reason =
                        format!("its event {number} closes frame {}, which is not the last opened", event.frame);
                    return Err(Flaw(reason).into());
                }
            }
        }
        match self.end_value {
            Some(end) if end > last && !open.is_empty() => each(&open, end - last),
            _ => Ok(()),
        }
    }

    /// What was odd but could be read.
    pub(super) fn note(&self) -> Option<String> {
        let opened = self.events.iter().filter(|event| event.kind == EventKind::Open).count();
        let left = opened - self.events.iter().filter(|event| event.kind == EventKind::Close).count().min(opened);
        (left > 0)
            .then(|| format!("the profile \"{}\" ends with {left} frames open, which last until its end", self.name))
    }
}

fn check_frames(frames: &[u32], frame_count: usize) -> Result<(), Flaw> {
    match frames.iter().find(|&&frame| frame as usize >= frame_count) {
        Some(frame) => Err(Flaw(format!("it refers to frame {frame}, but there are only {frame_count}"))),
        None => Ok(()),
    }
}

/// The stacks of a sampled profile in one list: an allocation for each would cost several
/// times the memory of the numbers in it.
#[derive(Default)]
struct Stacks {
    frames: Vec<u32>,
    ends: Vec<usize>,
}

impl<'de> Deserialize<'de> for Stacks {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct All;
        impl<'de> Visitor<'de> for All {
            type Value = Stacks;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a list of stacks")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Stacks, A::Error> {
                let mut stacks = Stacks::default();
                while list.next_element_seed(One(&mut stacks.frames))?.is_some() {
                    stacks.ends.push(stacks.frames.len());
                }
                Ok(stacks)
            }
        }
        deserializer.deserialize_seq(All)
    }
}

/// Appends one stack.
struct One<'a>(&'a mut Vec<u32>);

impl<'de> serde::de::DeserializeSeed<'de> for One<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for One<'_> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a list of frames")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while let Some(frame) = list.next_element()? {
            self.0.push(frame);
        }
        Ok(())
    }
}
