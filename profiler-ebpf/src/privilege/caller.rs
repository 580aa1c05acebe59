//! Who asked, and becoming them.
#![expect(unsafe_code, reason = "the C library's environment is cleared here, and nowhere else")]

use std::io;

use rustix::process::{Gid, Uid, geteuid, getgid, getuid};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, set_capabilities, set_keep_capabilities, set_no_new_privs,
    set_thread_groups, set_thread_res_gid, set_thread_res_uid,
};

/// The person for whom the recorder works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller {
    /// Their number.
    pub uid: u32,
    /// Their group.
    pub gid: u32,
    /// Whether we have root's rights, and could look at anybody's processes.
    pub root: bool,
}

/// Why it is not clear who asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallerError {
    /// The elevating program left something that is no number.
    #[error("{0} is no user's number")]
    NotANumber(&'static str),
    /// Two elevating programs name different people.
    #[error("SUDO_UID and PKEXEC_UID name different users")]
    Contradiction,
    /// Elevated by the file itself (set-uid), which is never meant to be.
    #[error("the recorder must not be a set-uid program")]
    SetUid,
}

/// What a process knows about who started it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Identity<'a> {
    /// Real user and group.
    pub real: (u32, u32),
    /// Effective user.
    pub effective: u32,
    /// `SUDO_UID` and `SUDO_GID`.
    pub sudo: (Option<&'a str>, Option<&'a str>),
    /// `PKEXEC_UID`.
    pub pkexec: Option<&'a str>,
}

impl Caller {
    /// From this process and its environment. Call it before [`forget_environment`].
    pub fn of_this_process() -> Result<Self, CallerError> {
        let text = |name| std::env::var_os(name).map(|value| value.to_string_lossy().into_owned());
        let (sudo_uid, sudo_gid, pkexec) = (text("SUDO_UID"), text("SUDO_GID"), text("PKEXEC_UID"));
        Self::from_identity(&Identity {
            real: (getuid().as_raw(), getgid().as_raw()),
            effective: geteuid().as_raw(),
            sudo: (sudo_uid.as_deref(), sudo_gid.as_deref()),
            pkexec: pkexec.as_deref(),
        })
    }

    /// From what a process knows. The environment counts only where nobody but root could have set it.
    pub fn from_identity(identity: &Identity<'_>) -> Result<Self, CallerError> {
        let (uid, gid) = identity.real;
        if identity.effective != 0 {
            return Ok(Self { uid, gid, root: false });
        }
        if uid != 0 {
            return Err(CallerError::SetUid);
        }
        let number = |name, text: Option<&str>| -> Result<Option<u32>, CallerError> {
            // The largest number means "no change" to the system calls that take one.
            let parsed = text.map(|text| text.parse().ok().filter(|&uid| uid != u32::MAX));
            parsed.map(|uid| uid.ok_or(CallerError::NotANumber(name))).transpose()
        };
        let sudo = number("SUDO_UID", identity.sudo.0)?;
        let pkexec = number("PKEXEC_UID", identity.pkexec)?;
        let uid = match (sudo, pkexec) {
            (Some(one), Some(other)) if one != other => return Err(CallerError::Contradiction),
            (one, other) => one.or(other).unwrap_or(0),
        };
        let gid = match number("SUDO_GID", identity.sudo.1)? {
            Some(gid) if sudo.is_some() => gid,
            // Nobody said which; a user's own group usually has the user's number, and a wrong one gives no rights.
            _ => uid,
        };
        Ok(Self { uid, gid, root: true })
    }
}

/// Empties the environment: nothing in it is meant for us, and libraries listen to some of it.
///
/// Call it while there is one thread.
pub fn forget_environment() {
    // SAFETY: the caller sees to it that no other thread reads the environment.
    let failed = unsafe { libc::clearenv() };
    debug_assert_eq!(failed, 0, "clearing does not allocate");
}

/// Becomes the caller, for good, keeping only what sampling needs. Root stays root, without what root doesn't need here.
///
/// `probes` keeps `CAP_SYS_ADMIN` at hand for [`with_probe_rights`], if it was there: the kernel lets nobody else
/// put a probe on a file.
///
/// Call it while there is one thread: it changes this one.
pub fn become_caller(caller: Caller, any_user: bool, probes: bool) -> io::Result<()> {
    let sampling = CapabilitySet::BPF | CapabilitySet::PERFMON;
    let kept = if caller.root && (any_user || caller.uid == 0) {
        // Root's own processes hold capabilities; looking at those needs the right to look at any.
        sampling | CapabilitySet::SYS_PTRACE | CapabilitySet::DAC_READ_SEARCH
    } else if caller.root {
        set_keep_capabilities(true)?;
        set_thread_groups(&[])?;
        let (uid, gid) = (Uid::from_raw(caller.uid), Gid::from_raw(caller.gid));
        set_thread_res_gid(gid, gid, gid)?;
        set_thread_res_uid(uid, uid, uid)?;
        set_keep_capabilities(false)?;
        sampling
    } else {
        sampling
    };
    let had = capabilities(None)?.permitted;
    let kept = kept & had;
    let at_hand = if probes { CapabilitySet::SYS_ADMIN & had } else { CapabilitySet::empty() };
    set_capabilities(
        None,
        CapabilitySets { effective: kept, permitted: kept | at_hand, inheritable: CapabilitySet::empty() },
    )?;
    set_no_new_privs(true)?;
    // What follows relies on it, so look.
    let left = capabilities(None)?;
    if (!any_user && geteuid().as_raw() != caller.uid) || left.permitted != kept | at_hand || left.effective != kept {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    Ok(())
}

/// Does `work` with the right to put probes on files, if that was kept, and without it afterwards.
pub fn with_probe_rights<T>(work: impl FnOnce() -> T) -> io::Result<T> {
    let sets = capabilities(None)?;
    let more = sets.effective | CapabilitySet::SYS_ADMIN & sets.permitted;
    set_capabilities(None, CapabilitySets { effective: more, ..sets })?;
    let result = work();
    set_capabilities(None, sets)?;
    Ok(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(identity: Identity<'_>) -> Result<(u32, u32, bool), CallerError> {
        Caller::from_identity(&identity).map(|caller| (caller.uid, caller.gid, caller.root))
    }

    #[test]
    fn the_caller_is_who_started_it() {
        let user = Identity { real: (1000, 100), effective: 1000, ..Identity::default() };
        let root = Identity::default();
        for (identity, expected) in [
            (user, Ok((1000, 100, false))),
            // An ordinary user's environment says nothing about them.
            (Identity { sudo: (Some("0"), Some("0")), pkexec: Some("0"), ..user }, Ok((1000, 100, false))),
            (root, Ok((0, 0, true))),
            (Identity { sudo: (Some("1000"), Some("100")), ..root }, Ok((1000, 100, true))),
            (Identity { pkexec: Some("1000"), ..root }, Ok((1000, 1000, true))),
            (Identity { sudo: (Some("0"), Some("0")), ..root }, Ok((0, 0, true))),
            (Identity { sudo: (Some("1000"), None), pkexec: Some("1000"), ..root }, Ok((1000, 1000, true))),
            (Identity { sudo: (Some("1"), None), pkexec: Some("2"), ..root }, Err(CallerError::Contradiction)),
            (Identity { sudo: (Some("-1"), None), ..root }, Err(CallerError::NotANumber("SUDO_UID"))),
            (Identity { sudo: (Some("4294967295"), None), ..root }, Err(CallerError::NotANumber("SUDO_UID"))),
            (Identity { pkexec: Some(""), ..root }, Err(CallerError::NotANumber("PKEXEC_UID"))),
            (Identity { real: (1000, 100), ..root }, Err(CallerError::SetUid)),
        ] {
            assert_eq!(caller(identity), expected, "{identity:?}");
        }
    }
}
