//! Where the user's own files are, per system.
//!
//! | system | `config.toml` in | `trust.json` and `recordings` in |
//! |---|---|---|
//! | Linux and others | `$XDG_CONFIG_HOME/perflens`, `~/.config/perflens` | `$XDG_STATE_HOME/perflens`, `~/.local/state/perflens` |
//! | macOS | `~/Library/Application Support/perflens` | the same |
//! | Windows | `%APPDATA%\perflens` | `%LOCALAPPDATA%\perflens` |
//!
//! `PERFLENS_CONFIG` names another configuration file. Variables that are empty or hold a
//! relative path don't count: the folder that an editor happens to be started in, which may be
//! an untrusted one, must not choose the user's files.

use std::ffi::OsString;
use std::path::PathBuf;

/// The user's files. Each is absent when the environment does not tell where it would be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places {
    /// The user's settings.
    pub config: Option<PathBuf>,
    /// The workspaces that the user trusts.
    pub trust: Option<PathBuf>,
    /// The folder of all recordings.
    pub recordings: Option<PathBuf>,
}

impl Places {
    /// As the environment of this process has them.
    pub fn of_this_process() -> Self {
        Self::new(std::env::consts::OS, |name| std::env::var_os(name))
    }

    /// On a system of this name (as in [`std::env::consts::OS`]), with these variables.
    pub fn new(system: &str, variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let folder = |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let home = |below: &str| folder("HOME").map(|home| home.join(below));
        let (config, state) = match system {
            "macos" => (home("Library/Application Support"), home("Library/Application Support")),
            "windows" => (folder("APPDATA"), folder("LOCALAPPDATA")),
            _ => (
                folder("XDG_CONFIG_HOME").or_else(|| home(".config")),
                folder("XDG_STATE_HOME").or_else(|| home(".local/state")),
            ),
        };
        let own = |folder: Option<PathBuf>, file: &str| folder.map(|folder| folder.join("perflens").join(file));
        Self {
            config: folder("PERFLENS_CONFIG").or_else(|| own(config, "config.toml")),
            trust: own(state.clone(), "trust.json"),
            recordings: own(state, "recordings"),
        }
    }
}

impl Places {
    /// The user's secrets.
    pub fn secrets(&self) -> Option<PathBuf> {
        self.state("secrets.json")
    }

    /// What was last fetched in each workspace.
    pub fn queries(&self) -> Option<PathBuf> {
        self.state("queries.json")
    }

    /// The last answers of servers, where users want them kept.
    pub fn answers(&self) -> Option<PathBuf> {
        self.state("answers")
    }

    /// What editors show, a folder per workspace.
    pub fn shown(&self) -> Option<PathBuf> {
        self.state("ws")
    }

    /// The workspaces whose server data assistants may have.
    pub fn consents(&self) -> Option<PathBuf> {
        self.state("assistants.json")
    }

    /// Which tools assistants have called.
    pub fn calls(&self) -> Option<PathBuf> {
        self.state("assistant-calls.log")
    }

    /// What was last copied for an assistant, in an editor that shows no answers itself.
    pub fn copied(&self) -> Option<PathBuf> {
        self.state("for-assistant.md")
    }

    /// The login of psctl, the command line of Polar Signals Cloud.
    pub fn psctl(&self) -> Option<PathBuf> {
        // It uses the same configuration folders; `PERFLENS_CONFIG` may lead elsewhere.
        let usual =
            Self::new(
                std::env::consts::OS,
                |name| {
                    if name == "PERFLENS_CONFIG" { None } else { std::env::var_os(name) }
                },
            );
        let folder = usual.config?.parent()?.parent()?.to_owned();
        Some(folder.join("polarsignals").join("default_cred"))
    }

    fn state(&self, file: &str) -> Option<PathBuf> {
        Some(self.trust.as_ref()?.with_file_name(file))
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;

    fn places(system: &str, variables: &[(&str, &str)]) -> [Option<String>; 2] {
        let Places { config, trust, .. } = Places::new(system, |name| {
            variables.iter().find(|(variable, _)| *variable == name).map(|(_, value)| value.into())
        });
        [config, trust].map(|path| path.map(|path| path.to_str().unwrap().to_owned()))
    }

    #[test]
    fn every_system_has_its_folders() {
        let some = |config: &str, trust: &str| [Some(config.to_owned()), Some(trust.to_owned())];
        let home = ("HOME", "/h");
        assert_eq!(
            places("linux", &[home]),
            some("/h/.config/perflens/config.toml", "/h/.local/state/perflens/trust.json")
        );
        assert_eq!(
            places("linux", &[home, ("XDG_CONFIG_HOME", "/c"), ("XDG_STATE_HOME", "/s")]),
            some("/c/perflens/config.toml", "/s/perflens/trust.json")
        );
        let library = "/h/Library/Application Support/perflens";
        assert_eq!(
            places("macos", &[home, ("XDG_CONFIG_HOME", "/c")]),
            some(&format!("{library}/config.toml"), &format!("{library}/trust.json"))
        );
        assert_eq!(
            places("windows", &[home, ("APPDATA", "/roaming"), ("LOCALAPPDATA", "/local")]),
            some("/roaming/perflens/config.toml", "/local/perflens/trust.json")
        );
        assert_eq!(places("linux", &[]), [None, None]);
    }

    #[test]
    fn another_file_can_be_named() {
        let [config, trust] = places("linux", &[("HOME", "/h"), ("PERFLENS_CONFIG", "/etc/perflens.toml")]);
        assert_eq!(config.as_deref(), Some("/etc/perflens.toml"));
        assert_eq!(trust.as_deref(), Some("/h/.local/state/perflens/trust.json"));
    }

    #[test]
    fn relative_folders_do_not_count() {
        let variables =
            [("HOME", "/h"), ("XDG_CONFIG_HOME", "."), ("XDG_STATE_HOME", ""), ("PERFLENS_CONFIG", "x.toml")];
        assert_eq!(places("linux", &variables), places("linux", &[("HOME", "/h")]));
    }
}
