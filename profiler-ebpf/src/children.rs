//! The processes that a process has started, as `/proc` has them now.

use std::fs;

/// The children of a process, whichever of its threads started them; none where it is gone or the kernel does not say
/// (it was built without `CONFIG_PROC_CHILDREN`).
pub(crate) fn of(pid: u32) -> Vec<u32> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let mut all = Vec::new();
    for thread in threads {
        let text = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        all.extend(text.split_ascii_whitespace().filter_map(|child| child.parse::<u32>().ok()));
    }
    all
}

/// Whether the kernel says so at all.
pub(crate) fn are_known() -> bool {
    fs::exists("/proc/thread-self/children").unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_of_every_thread_are_found() {
        let mut child = std::thread::spawn(|| {
            let child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
            assert!(of(std::process::id()).contains(&child.id()));
            child
        })
        .join()
        .unwrap();
        assert!(are_known());
        // Its thread has ended, its process not.
        assert!(of(std::process::id()).contains(&child.id()));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!of(std::process::id()).contains(&child.id()));
        assert!(of(u32::MAX).is_empty());
    }
}
