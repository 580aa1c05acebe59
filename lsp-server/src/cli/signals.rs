//! The wish to end, as signals tell it.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::Failure;

/// A flag that the first signal sets, for an orderly end; the second one ends the program.
#[cfg(unix)]
pub(super) fn stop() -> Result<Arc<AtomicBool>, Failure> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        let again = Arc::clone(&stop);
        signal_hook::flag::register_conditional_shutdown(signal, 1, again)
            .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&stop)))
            .map_err(|error| Failure::Input(format!("signals can't be waited for: {error}")))?;
    }
    Ok(stop)
}

/// Nothing sets it: the first one ends the program.
#[cfg(not(unix))]
#[expect(clippy::unnecessary_wraps, reason = "the same signature on every system")]
pub(super) fn stop() -> Result<Arc<AtomicBool>, Failure> {
    Ok(Arc::default())
}
