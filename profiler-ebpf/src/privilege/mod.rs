//! For whom the recorder works, and what that person may see.
//!
//! The recorder may hold more rights than the person who started it. Everything it reads on behalf of them
//! is therefore read *as* them: once the kernel program is loaded it becomes the caller, user and group,
//! and keeps two capabilities, `CAP_BPF` and `CAP_PERFMON`, neither of which opens anybody's files or
//! memory. From then on the kernel's own checks decide. Only root keeps what root has, and looks at other
//! users' processes only when asked to (`--any-user`).
//!
//! What is not here: how the recorder came to its rights.

mod caller;
mod target;

pub use caller::{Caller, CallerError, Identity, become_caller, forget_environment, with_probe_rights};
pub use target::{Restriction, Target, TargetError, open_mapped};
