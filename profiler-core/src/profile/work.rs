//! How much was done while a profile was recorded, where whoever recorded it knows.
//!
//! Two recordings of the same work compare by value, however long they took: that is what a change
//! of the code is judged by. It is kept as a comment of the profile, the one place that every format
//! and tool leaves alone:
//!
//! ```text
//! work: 3000 × src/lib.rs tests::sums
//! ```

use std::fmt;

/// An amount of something that is always the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Work {
    /// How many times it was done; at least 1.
    pub amount: u64,
    /// What: equal for the same test or benchmark only.
    pub name: String,
}

const PREFIX: &str = "work: ";
const TIMES: &str = " × ";

impl Work {
    /// Reads a comment; `None` when it is about something else.
    ///
    /// ```
    /// use profiler_core::profile::Work;
    /// let work = Work { amount: 3000, name: "src/lib.rs tests::sums".to_owned() };
    /// assert_eq!(Work::of_comment(&work.to_string()), Some(work));
    /// assert_eq!(Work::of_comment("work: hard"), None);
    /// ```
    pub fn of_comment(comment: &str) -> Option<Self> {
        let (amount, name) = comment.strip_prefix(PREFIX)?.split_once(TIMES)?;
        let amount = amount.parse().ok().filter(|&amount| amount > 0)?;
        Some(Self { amount, name: name.to_owned() })
    }

    /// What several did together; `None` where one of them doesn't tell it, or did something else.
    pub(super) fn sum(all: impl IntoIterator<Item = Option<Self>>) -> Option<Self> {
        let mut all = all.into_iter();
        let first = all.next()??;
        all.try_fold(first, |sum, work| {
            let work = work.filter(|work| work.name == sum.name)?;
            Some(Self { amount: sum.amount.checked_add(work.amount)?, ..sum })
        })
    }
}

/// As a comment.
impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}{TIMES}{}", self.amount, self.name)
    }
}
