//! Lines for profiles that came with bare addresses: where binaries and debug info are looked
//! for on this machine, for the command line and the server alike.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use profiler_core::cancel::{CancelFlag, Cancelled};
use profiler_core::profile::Profile;
use profiler_core::symbolize::{
    DebugFiles, ProfileError, ProfileOptions, SymbolOptions, Symbolizer, Which, name_by_sidecar, needs_symbols,
    symbolize_profile, wants_sidecar,
};

/// Folders of a workspace where builds leave their binaries, relative to its root.
const BUILD_FOLDERS: &[&str] = &["", "target/release", "target/debug", "build", "bin", "out"];

/// Where to look.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places {
    /// Folders with debug info, as the user names them.
    pub debug_dirs: Vec<PathBuf>,
    /// Folders of the workspace.
    pub roots: Vec<PathBuf>,
}

impl Places {
    fn files(&self) -> DebugFiles {
        let builds = self.roots.iter().flat_map(|root| BUILD_FOLDERS.iter().map(move |folder| root.join(folder)));
        DebugFiles {
            debug_dirs: self.debug_dirs.clone(),
            binary_dirs: builds.collect(),
            debuginfod_caches: debuginfod_caches(),
            fetch: None,
        }
    }

    /// The profile with everything that can be found out. `taken_here` is when it was there for
    /// certain, for profiles of this machine.
    ///
    /// An error means that it was cancelled.
    pub fn symbolised(
        &self,
        profile: Arc<Profile>,
        taken_here: Option<SystemTime>,
        cancel: &CancelFlag,
    ) -> Result<Arc<Profile>, ProfileError> {
        // Whoever gives the starts of functions knows less than a binary does.
        let which = if profile.meta().has_looked_up_lines { Which::All } else { Which::Incomplete };
        if !needs_symbols(&profile, which) {
            return Ok(profile);
        }
        // What is opened is closed at the end: builds must not meet maps of their files.
        let mut symbolizer = Symbolizer::new(SymbolOptions { files: self.files(), ..SymbolOptions::default() });
        let profile = Arc::unwrap_or_clone(profile);
        let symbolized = symbolize_profile(profile, &mut symbolizer, ProfileOptions { which, taken_here }, cancel)?;
        Ok(Arc::new(symbolized.profile))
    }
}

/// The file in which samply keeps names, beside a profile.
pub fn sidecar(profile: &Path) -> PathBuf {
    let written = profile.with_extension("syms.json");
    // `app.json.gz` has them in `app.json.syms.json`, unless somebody packed it later.
    match profile.file_stem().map(Path::new) {
        Some(inner) if !written.exists() && inner.extension().is_some() => {
            let packed_later = profile.with_file_name(inner).with_extension("syms.json");
            if packed_later.exists() { packed_later } else { written }
        }
        _ => written,
    }
}

/// The profile of a file with the names that are kept beside it.
pub fn named(profile: Profile, path: &Path, cancel: &CancelFlag) -> Result<Profile, Cancelled> {
    if !wants_sidecar(&profile) {
        return Ok(profile);
    }
    let beside = sidecar(path);
    let name = beside.file_name().unwrap_or_default().to_string_lossy();
    // Pipes are not waited for.
    let is_file = fs::metadata(&beside).is_ok_and(|metadata| metadata.is_file());
    let mut file = is_file.then(|| File::open(&beside)).and_then(Result::ok);
    name_by_sidecar(profile, &name, file.as_mut().map(|file| file as &mut dyn Read), cancel)
}

/// Where debuginfod's clients keep what they fetched.
pub(crate) fn debuginfod_caches() -> Vec<PathBuf> {
    caches(&|name| std::env::var_os(name).map(PathBuf::from))
}

fn caches(variable: &dyn Fn(&str) -> Option<PathBuf>) -> Vec<PathBuf> {
    let is_set = |path: &PathBuf| !path.as_os_str().is_empty();
    if let Some(path) = variable("DEBUGINFOD_CACHE_PATH").filter(is_set) {
        return vec![path];
    }
    let home = variable("HOME").filter(is_set);
    let cache = variable("XDG_CACHE_HOME").filter(is_set).or_else(|| Some(home.as_deref()?.join(".cache")));
    let new = cache.map(|cache| cache.join("debuginfod_client"));
    let old = home.map(|home| home.join(".debuginfod_client_cache"));
    new.into_iter().chain(old).filter(|path| Path::new(path).is_absolute()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caches_are_where_the_environment_says() {
        let of = |set: &[(&str, &str)]| {
            let set: Vec<_> = set.iter().map(|(name, value)| ((*name).to_owned(), PathBuf::from(value))).collect();
            let find = |name: &str| set.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
            caches(&find)
        };
        let paths = |paths: &[&str]| paths.iter().map(PathBuf::from).collect::<Vec<_>>();
        let home = ("HOME", "/home/dev");
        assert_eq!(of(&[home]), paths(&["/home/dev/.cache/debuginfod_client", "/home/dev/.debuginfod_client_cache"]));
        assert_eq!(
            of(&[home, ("XDG_CACHE_HOME", "/cache")]),
            paths(&["/cache/debuginfod_client", "/home/dev/.debuginfod_client_cache"])
        );
        assert_eq!(of(&[home, ("DEBUGINFOD_CACHE_PATH", "/here")]), paths(&["/here"]));
        assert_eq!(of(&[]), paths(&[]));
        assert_eq!(of(&[("HOME", "")]), paths(&[]));
    }
}
