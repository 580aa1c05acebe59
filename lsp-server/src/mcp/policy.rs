//! What the machine's administrator forbids: a file that only they can write.
//!
//! ```toml
//! [assistants]
//! local = false        # no recordings and profile files
//! serverData = false   # no data of profiling servers, whatever users consent to
//! ```
//!
//! `PERFLENS_POLICY` may name one more file. Each can only forbid. A file that can't be read, or says
//! something that is not known, forbids everything: somebody meant to.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::Refusal;

/// Whose data it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Data {
    /// A recording, or a file.
    Local,
    /// What a profiling server gave.
    Server,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct File {
    assistants: Assistants,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct Assistants {
    local: bool,
    server_data: bool,
}

impl Default for Assistants {
    fn default() -> Self {
        Self { local: true, server_data: true }
    }
}

/// Where the policy of this system is.
fn of_this_system() -> PathBuf {
    match std::env::consts::OS {
        "macos" => "/Library/Application Support/perflens/policy.toml".into(),
        "windows" => {
            let folder =
                std::env::var_os("ProgramData").map_or_else(|| PathBuf::from("C:\\ProgramData"), PathBuf::from);
            folder.join("perflens").join("policy.toml")
        }
        _ => "/etc/perflens/policy.toml".into(),
    }
}

/// Whether assistants may have such data, as far as the machine's policy goes.
pub(super) fn check(data: Data) -> Result<(), Refusal> {
    let more = std::env::var_os("PERFLENS_POLICY").filter(|path| !path.is_empty()).map(PathBuf::from);
    check_file(&of_this_system(), true, data)?;
    more.map_or(Ok(()), |path| check_file(&path, false, data))
}

fn check_file(path: &Path, may_be_absent: bool, data: Data) -> Result<(), Refusal> {
    let forbidden = |what: String| Err(Refusal::Forbidden(what));
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound && may_be_absent => return Ok(()),
        Err(error) => {
            return forbidden(format!(
                "the policy of this machine, {}, can't be read ({error}), so assistants get nothing",
                path.display()
            ));
        }
    };
    let assistants = match toml::from_str::<File>(&text) {
        Ok(file) => file.assistants,
        Err(error) => {
            let why = error.message();
            return forbidden(format!(
                "the policy of this machine, {}, is not understood ({why}), so assistants get nothing",
                path.display()
            ));
        }
    };
    let (is_allowed, what) = match data {
        Data::Local => (assistants.local, "local profiles"),
        Data::Server => (assistants.server_data, "data of profiling servers"),
    };
    if is_allowed {
        return Ok(());
    }
    forbidden(format!("the policy of this machine, {}, forbids giving {what} to assistants", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdicts(text: &str) -> [bool; 2] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("policy.toml");
        fs::write(&path, text).unwrap();
        [Data::Local, Data::Server].map(|data| check_file(&path, true, data).is_ok())
    }

    #[test]
    fn a_policy_only_forbids_and_what_is_in_doubt_is_forbidden() {
        for (text, local, server) in [
            ("", true, true),
            ("[assistants]\nserverData = false", true, false),
            ("[assistants]\nlocal = false", false, true),
            ("[assistants]\nlocal = true\nserverData = true", true, true),
            ("[assistants]\nserver_data = false", false, false),
            ("[assistant]\nlocal = true", false, false),
            ("[assistants]\nlocal = 'no'", false, false),
            ("[", false, false),
        ] {
            assert_eq!(verdicts(text), [local, server], "{text}");
        }
    }

    #[test]
    fn only_the_usual_file_may_be_absent() {
        let nowhere = Path::new("/nowhere/policy.toml");
        assert!(check_file(nowhere, true, Data::Local).is_ok());
        assert!(check_file(nowhere, false, Data::Local).is_err());
    }
}
