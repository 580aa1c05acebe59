//! A file's map with what people are told about it.

use rustc_hash::FxHashMap;

use super::diff::{Doubt, Fate, LineMap, Mapped};

/// What the measured text of a file was taken from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Basis {
    /// The file's text is what the recording says it was.
    SameText,
    /// The copy that was kept with the recording.
    Copy,
    /// A commit; and what says that it is the one.
    Commit {
        /// Its first digits.
        commit: String,
        /// `label service_git_ref`, `the newest before the profile`.
        reason: String,
    },
    /// The text when the profile was first opened here.
    Opened,
    /// No text: functions were found by name.
    Functions,
}

impl Basis {
    /// Its name in JSON.
    pub fn name(&self) -> &'static str {
        match self {
            Self::SameText => "same_text",
            Self::Copy => "copy",
            Self::Commit { .. } => "commit",
            Self::Opened => "opened",
            Self::Functions => "functions",
        }
    }
}

/// Displays as the end of a sentence: `by the copy kept with the recording`.
impl std::fmt::Display for Basis {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::SameText => f.write_str("by its text, which is the same"),
            Self::Copy => f.write_str("by the copy kept with the recording"),
            Self::Commit { commit, reason } => write!(f, "by commit {commit}, {reason}"),
            Self::Opened => f.write_str("by the text when the profile was opened"),
            Self::Functions => f.write_str("by where its functions start"),
        }
    }
}

/// What is known of a line of today's text that was another one, or may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineState {
    /// Its number in the measured text; the first of several.
    pub from: u32,
    /// Why it may be another line; `None` when it has only moved.
    pub doubt: Option<Doubt>,
}

/// Where the lines of one file of a profile are in today's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileAnchor {
    basis: Basis,
    /// `None` when lines are taken as they are.
    map: Option<LineMap>,
    /// By line of today's text; lines that stand where they stood are not in it.
    states: FxHashMap<u32, LineState>,
    renamed_from: Option<String>,
}

impl FileAnchor {
    /// With a map from the measured text to today's.
    pub fn new(basis: Basis, map: LineMap) -> Self {
        let mut states: FxHashMap<u32, LineState> = FxHashMap::default();
        for (from, Mapped { line, fate }) in map.iter() {
            let doubt = match fate {
                Fate::Exact | Fate::Gone => continue,
                Fate::Shifted => None,
                Fate::Uncertain(doubt) => Some(doubt),
            };
            let state = states.entry(line).or_insert(LineState { from, doubt });
            state.doubt = state.doubt.or(doubt);
        }
        Self { basis, map: Some(map), states, renamed_from: None }
    }

    /// For a text that has not changed: lines are taken as they are.
    pub fn same(basis: Basis) -> Self {
        Self { basis, map: None, states: FxHashMap::default(), renamed_from: None }
    }

    /// The same for a file that had another name.
    #[must_use]
    pub fn renamed_from(self, path: String) -> Self {
        Self { renamed_from: Some(path), ..self }
    }

    /// The file's name in the measured tree, where it was another.
    pub fn old_name(&self) -> Option<&str> {
        self.renamed_from.as_deref()
    }

    /// Where a line of the measured text is now, from 1; `None` when it is gone.
    pub fn line(&self, line: u32) -> Option<u32> {
        match &self.map {
            Some(map) => Some(map.get(line).line).filter(|&line| line != 0),
            None => Some(line),
        }
    }

    /// What is known of a line of today's text; `None` when it stands where it stood.
    pub fn state(&self, line: u32) -> Option<LineState> {
        self.states.get(&line).copied()
    }

    /// Whether a line of today's text may be another than the measured one.
    pub fn is_uncertain(&self, line: u32) -> bool {
        self.state(line).is_some_and(|state| state.doubt.is_some())
    }

    /// What the measured text was taken from.
    pub fn basis(&self) -> &Basis {
        &self.basis
    }

    /// Whether the text is known to be another by now.
    pub fn is_changed(&self) -> bool {
        self.map.as_ref().is_some_and(|map| !map.is_same())
    }

    /// The word for a line in JSON: `exact`, `shifted`, `uncertain`.
    pub fn word(&self, line: u32) -> &'static str {
        match self.state(line) {
            None => "exact",
            Some(LineState { doubt: None, .. }) => "shifted",
            Some(_) => "uncertain",
        }
    }

    /// How a line of today's text was found, as sentences; `None` when nothing has changed.
    pub fn sentence(&self, line: u32) -> Option<String> {
        if !self.is_changed() {
            return self.renamed_from.as_ref().map(|old| format!("The file was {old} when it was measured."));
        }
        let renamed = self.renamed_from.as_ref().map_or(String::new(), |old| format!(" in {old}"));
        Some(match self.state(line) {
            None => format!("Measured before your edit; the line is the same{renamed}, found {}.", self.basis),
            Some(LineState { from, doubt: None }) => {
                format!("Measured before your edit, as line {from}{renamed}; found {}.", self.basis)
            }
            Some(LineState { from, doubt: Some(doubt) }) => {
                format!("Measured before your edit, as line {from}{renamed}; may be another line: {doubt}.")
            }
        })
    }
}
