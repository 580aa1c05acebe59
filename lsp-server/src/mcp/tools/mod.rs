//! The tools, one file each. A new one is a file and a line in [`all`].

mod callers;
mod code;
mod compare;
mod explain;
mod hot_spots;
mod overview;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod record;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod verify;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use super::Refusal;
use super::answer::Page;
use super::arguments::{self, Object};
use super::desk::Desk;
use super::turn::Turn;

/// A tool.
pub(super) trait Tool {
    /// What it takes; its doc comments are what assistants read.
    type Arguments: DeserializeOwned + JsonSchema;
    /// What it is called.
    const NAME: &'static str;
    /// For people, in lists.
    const TITLE: &'static str;
    /// What it is for, an example of arguments, and what comes next.
    const DESCRIPTION: &'static str;
    /// Whether it runs or changes something.
    const ACTS: bool = false;

    /// Answers. Blocks for as long as that takes.
    fn answer(desk: &Desk, arguments: &Self::Arguments, turn: &Turn) -> Result<Page, Refusal>;
}

/// A tool, ready to be listed and called.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) description: &'static str,
    pub(super) acts: bool,
    pub(super) schema: Object,
    call: fn(&Desk, &Object, &Object, &Turn) -> Result<Page, Refusal>,
}

impl Entry {
    fn of<T: Tool>() -> Self {
        Self {
            name: T::NAME,
            title: T::TITLE,
            description: T::DESCRIPTION,
            acts: T::ACTS,
            schema: arguments::schema::<T::Arguments>(),
            call: |desk, schema, given, turn| {
                let arguments: T::Arguments = arguments::read(T::NAME, schema, given)?;
                T::answer(desk, &arguments, turn)
            },
        }
    }

    /// Reads the arguments, and answers.
    pub(super) fn call(&self, desk: &Desk, arguments: &Object, turn: &Turn) -> Result<Page, Refusal> {
        (self.call)(desk, &self.schema, arguments, turn)
    }
}

/// All tools, in the order in which they are listed. There are at most eight: more would not be read. Those that
/// record are there where there is a recorder.
pub(super) fn all() -> Vec<Entry> {
    vec![
        Entry::of::<overview::Overview>(),
        Entry::of::<hot_spots::HotSpots>(),
        Entry::of::<code::Code>(),
        Entry::of::<callers::Callers>(),
        Entry::of::<compare::Compare>(),
        Entry::of::<explain::Explain>(),
        #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
        Entry::of::<record::Record>(),
        #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
        Entry::of::<verify::Verify>(),
    ]
}
