//! A file of settings on disk: read once, so that what is trusted is what is obeyed.
//!
//! Reading never fails. A file that can't be read, is no TOML, or is too large to be one of
//! settings has a [`problem`](TomlFile::problem) and no settings.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

/// The file in a workspace folder, checked in for a team.
pub const WORKSPACE_FILE: &str = "perflens.toml";

/// A hundred times what anybody wrote; a file that came with a repository must not fill memory.
const MAX_BYTES: u64 = 1 << 20;

/// A file of settings as it was when it was read.
#[derive(Clone, Debug, PartialEq)]
pub struct TomlFile {
    /// Where it is.
    pub path: PathBuf,
    /// What it says.
    pub settings: Map<String, Value>,
    /// Why it says nothing, as part of a sentence.
    pub problem: Option<String>,
    /// SHA-256 of its bytes in lower-case hex; `None` when they could not be read.
    pub fingerprint: Option<String>,
}

/// `perflens.toml` of a workspace folder.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkspaceFile {
    /// The folder, with symbolic links resolved: what trust is bound to.
    pub root: PathBuf,
    /// The file in it.
    pub file: TomlFile,
}

impl TomlFile {
    /// Reads a file; `None` when there is none.
    pub fn read(path: &Path) -> Option<Self> {
        let file = Self { path: path.to_owned(), settings: Map::new(), problem: None, fingerprint: None };
        let bytes = match bytes(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(error) => return Some(Self { problem: Some(error.to_string()), ..file }),
        };
        let fingerprint = Some(fingerprint(&bytes));
        Some(match parse(&bytes) {
            Ok(settings) => Self { settings, fingerprint, ..file },
            Err(problem) => Self { problem: Some(problem), fingerprint, ..file },
        })
    }
}

impl WorkspaceFile {
    /// Reads `perflens.toml` of a folder; `None` when there is none.
    pub fn read(folder: &Path) -> Option<Self> {
        let root = folder.canonicalize().ok()?;
        let file = TomlFile::read(&root.join(WORKSPACE_FILE))?;
        Some(Self { root, file })
    }

    /// What is trusted of a folder: its `perflens.toml`, or that there is none, which is as good as an
    /// empty one. `None` when there is no such folder.
    pub fn or_none(folder: &Path) -> Option<Self> {
        Self::read(folder).or_else(|| {
            let root = folder.canonicalize().ok()?;
            let path = root.join(WORKSPACE_FILE);
            let fingerprint = Some(fingerprint(b""));
            Some(Self { root, file: TomlFile { path, settings: Map::new(), problem: None, fingerprint } })
        })
    }
}

fn bytes(path: &Path) -> io::Result<Vec<u8>> {
    // Opening a pipe would wait for somebody to write into it.
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(io::Error::other("it is larger than 1 MiB"));
    }
    Ok(bytes)
}

fn fingerprint(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    Sha256::digest(bytes).iter().fold(String::new(), |mut hex, byte| {
        // Writing to a string can't fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

fn parse(bytes: &[u8]) -> Result<Map<String, Value>, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let table: toml::Table = toml::from_str(text).map_err(|error| {
        let line = error.span().map(|span| text[..span.start].matches('\n').count() + 1);
        let place = line.map(|line| format!("line {line}: ")).unwrap_or_default();
        format!("{place}{}", error.message().replace('\n', " "))
    })?;
    Ok(table.into_iter().map(|(key, value)| (key, json(value))).collect())
}

/// The same value as JSON. No setting is a date, and none is infinite; as text they are refused
/// by name where they stand.
fn json(value: toml::Value) -> Value {
    match value {
        toml::Value::String(text) => text.into(),
        toml::Value::Integer(number) => number.into(),
        toml::Value::Float(number) => {
            serde_json::Number::from_f64(number).map_or_else(|| number.to_string().into(), Value::Number)
        }
        toml::Value::Boolean(flag) => flag.into(),
        toml::Value::Datetime(time) => time.to_string().into(),
        toml::Value::Array(items) => items.into_iter().map(json).collect(),
        toml::Value::Table(table) => table.into_iter().map(|(key, value)| (key, json(value))).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(bytes: &[u8]) -> String {
        parse(bytes).unwrap_err()
    }

    #[test]
    fn fingerprints_are_sha_256() {
        assert_eq!(fingerprint(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }

    #[test]
    fn files_as_windows_writes_them_are_read() {
        let settings = parse("\u{feff}[hints]\r\nmode = \"hot\"\r\n".as_bytes()).unwrap();
        assert_eq!(Value::from(settings), serde_json::json!({"hints": {"mode": "hot"}}));
    }

    #[test]
    fn a_broken_file_is_told_with_its_line() {
        assert!(problem(b"[hints]\nmode =\n").starts_with("line 2: "), "{}", problem(b"[hints]\nmode =\n"));
        assert_eq!(problem(b"\xff"), "it is not UTF-8");
    }

    #[test]
    fn only_regular_files_of_sane_size_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(WORKSPACE_FILE);
        assert_eq!(TomlFile::read(&file), None);

        fs::create_dir(&file).unwrap();
        let read = TomlFile::read(&file).unwrap();
        assert_eq!((read.problem.as_deref(), read.fingerprint), (Some("it is no regular file"), None));

        fs::remove_dir(&file).unwrap();
        fs::write(&file, "#".repeat(1 + (1 << 20))).unwrap();
        assert_eq!(TomlFile::read(&file).unwrap().problem.as_deref(), Some("it is larger than 1 MiB"));
    }
}
