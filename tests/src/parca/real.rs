//! The real server, as a process of its own, where `tests/peers/build` has made it.

use std::fmt::Write as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::cli::{Guard, free_port, peer};
use crate::fetch::fetch;

/// A Parca that keeps everything in memory; ends with the value.
#[derive(Debug)]
pub struct RealParca {
    port: u16,
    _process: Guard,
    _folder: TempDir,
}

impl RealParca {
    /// Starts it, and waits until it answers; `None`, said aloud, where it is not built. It scrapes
    /// these ports of the loopback each second, as the job `demo`.
    pub fn start(targets: &[u16]) -> Option<Self> {
        let program = peer("parca")?;
        let folder = tempfile::tempdir().expect("a temporary folder");
        let port = free_port();
        let store = folder.path().join("store");
        std::fs::create_dir(&store).expect("creating a folder");
        let mut config = format!(
            "object_storage:\n  bucket:\n    type: FILESYSTEM\n    config:\n      directory: {}\n",
            store.display()
        );
        if !targets.is_empty() {
            let targets: Vec<String> = targets.iter().map(|port| format!("\"127.0.0.1:{port}\"")).collect();
            let targets = targets.join(", ");
            let _ = write!(
                config,
                "scrape_configs:\n  - job_name: demo\n    scrape_interval: 1s\n    scrape_timeout: 5s\n    \
                 static_configs:\n      - targets: [{targets}]\n"
            );
        }
        let path = folder.path().join("parca.yaml");
        std::fs::write(&path, config).expect("writing a file");
        let process = Command::new(program)
            .arg(format!("--config-path={}", path.display()))
            .arg(format!("--http-address=127.0.0.1:{port}"))
            .args(["--debuginfod-upstream-servers=", "--profile-share-server=127.0.0.1:1", "--log-level=error"])
            .arg(format!("--debuginfo-cache-dir={}", folder.path().join("cache").display()))
            .current_dir(folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("starting the server");
        let parca = Self { port, _process: Guard(process), _folder: folder };
        wait_for("the server answers", &|| fetch(&parca.url(), &["--list"]).code == Some(0));
        Some(parca)
    }

    /// Its address.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }
}

/// Waits until something holds: servers take their time on a machine that does much else.
///
/// # Panics
/// With what was waited for, when it takes too long.
pub fn wait_for(what: &str, has: &dyn Fn() -> bool) {
    let begun = Instant::now();
    while !has() {
        assert!(begun.elapsed() < Duration::from_secs(90), "{what}");
        std::thread::sleep(Duration::from_millis(500));
    }
}
