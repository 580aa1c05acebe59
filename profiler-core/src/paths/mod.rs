//! Which workspace file a path of a profile means.
//!
//! A profile spells paths as some build machine did: in a container, with prefixes trimmed or
//! replaced, on another system. Costs are shown on a line only when there is evidence that the
//! file is the right one; otherwise the answer is a refusal with its reason. A wrong file is
//! worse than none, so doubt is never resolved by picking one.
//!
//! ```text
//! text ──clean──▶ path ──exact, rule──▶ ecosystem ──▶ learned prefix ──▶ suffix ──▶ name
//!                                  (in this order; the functions in the file confirm or veto)
//! ```
//!
//! [`Workspace`] holds what is known of the roots; [`Workspace::resolve`] answers for all
//! files of a profile at once, as they teach each other where the build took place.
//!
//! Before that, generated JavaScript is replaced by what it was made of (`source_map`).
//!
//! What is not here: debug information, the revision a profile was made from.

pub mod clean;
mod ecosystem;
mod evidence;
pub mod generated;
mod index;
mod learned;
mod resolution;
mod resolver;
mod rivals;
mod rules;
mod source_map;
mod source_path;
mod workspace;

pub(crate) use evidence::simple_name;
pub use resolution::{FunctionEvidence, How, NoMatchReason, OutsideKind, PathQuery, Resolution, Score, WorkspaceFile};
pub use rules::Rule;
pub use source_path::Case;
pub use workspace::{Note, Workspace, WorkspaceOptions};
