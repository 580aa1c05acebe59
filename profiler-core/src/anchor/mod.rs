//! Which line of today's text a line of the measured text is.
//!
//! ```text
//! measured text ─┐
//!                ├─▶ LineMap ──▶ FileAnchor ──▶ FileGroups: costs of today's lines
//! today's text ──┘   (diff)      (+ its source)
//! ```
//!
//! One rule stands above all: a cost is never on a wrong line without a mark. A line that only
//! looks like the measured one, since the text has more of its kind nearby, is *uncertain*; a
//! line whose text is nowhere any more is *gone*, and its cost is its function's alone.
//!
//! What is not here: where the measured text comes from (the caller knows: a copy, a commit),
//! and edits as they are typed, which are followed and not guessed.

mod declared;
mod diff;
mod file;
mod rename;
mod similar;
mod text;

pub(crate) use declared::shift;
pub use declared::{Declarations, Functions};
pub use diff::{Doubt, Fate, LineMap, Mapped};
pub use file::{Basis, FileAnchor, LineState};
pub use rename::{MAX_CANDIDATES, Renames};
