//! Notices when the editor's process is gone, for editors that leave pipes open behind them.

use std::time::Duration;

use tokio::sync::mpsc;

const EVERY: Duration = Duration::from_secs(1);

/// Speaks up once the process is gone. A process that can't be seen from here to begin with
/// (it may be in another container) is not watched.
pub(super) fn watch(process: u64, gone: mpsc::Sender<()>) {
    if !is_alive(process) {
        return;
    }
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(EVERY).await;
            if !is_alive(process) {
                let _ = gone.send(()).await;
                return;
            }
        }
    });
}

/// Where there is `/proc`. A process that has ended but was not waited for counts as gone.
#[cfg(target_os = "linux")]
fn is_alive(process: u64) -> bool {
    std::fs::read_to_string(format!("/proc/{process}/stat"))
        .is_ok_and(|stat| stat.rsplit(')').next().is_some_and(|rest| !rest.trim_start().starts_with(['Z', 'X'])))
}

/// Elsewhere the end of input tells.
#[cfg(not(target_os = "linux"))]
fn is_alive(_: u64) -> bool {
    false
}
