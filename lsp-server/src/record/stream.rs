//! A recorder's stream that was kept in a file, as `perflens-record -p PID > x.plp` makes it.

use std::io::{BufReader, Read};

use profiler_core::cancel::CancelFlag;
use profiler_core::profile::Profile;
use profiler_ebpf::protocol::{self, FrameError, Reader};

use super::build::{self, Head};
use super::helper;
use super::names::Names;
use super::stacks::Stacks;

/// Whether bytes begin like one.
pub(crate) fn is_stream(head: &[u8]) -> bool {
    head.starts_with(&protocol::MAGIC)
}

/// Makes a profile of it, with the names that this machine's files have.
pub(crate) fn profile(from: impl Read) -> Result<Profile, String> {
    let mut stacks = Stacks::default();
    let mut events = Reader::with_magic(BufReader::new(from)).map_err(|error| error.to_string())?;
    loop {
        match helper::next(&mut events) {
            Ok(Some(kind)) => stacks.take(kind),
            Ok(None) => break,
            // What came before is as good as ever.
            Err(error @ FrameError::Truncated { .. }) if stacks.samples > 0 => {
                stacks.notes.push(format!("the recording is incomplete: {error}"));
                break;
            }
            Err(error) => return Err(error.to_string()),
        }
    }
    if let Some(failure) = &stacks.failure {
        return Err(format!("it is no recording, but says why there is none: {}", helper::in_words(failure)));
    }
    let mut names = Names::new(super::debug_files());
    names.look_up(&stacks, &CancelFlag::new());
    let head = Head {
        events: stacks.kinds(),
        program: stacks.program.clone(),
        how: format!("with {}", helper::method_in_words(stacks.hello.clone().unwrap_or_default().method())),
        work: None,
    };
    build::profile(&stacks, &names, &head).map_err(|error| error.to_string())
}
