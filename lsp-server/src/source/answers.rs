//! The last answer of a server to each workspace, on disk, for users who want to see it when they come
//! back, without a request.
//!
//! ```text
//! <state>/perflens/answers/HASH-OF-FOLDER.answer     a line of JSON, then the profiles as they came
//! ```
//!
//! It holds costs and names as any profile does, so it is there only where a setting asks for it: for
//! the user alone, replaced as a whole, one per workspace folder or service, bounded in size, number and
//! age. There is no secret in it. An answer is shown only where the settings would ask the same of the same server.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use prost::bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::time::Instant;
use super::{Fetched, Request};
use crate::config::trust::{create_private, others_can_write};
use crate::current::digest;

/// Goes up when older programs would misread a file.
const SCHEMA: u32 = 1;
/// A larger answer is not kept.
const MAX_BYTES: u64 = 128 << 20;
/// A longer first line is none of ours.
const MAX_HEAD: u64 = 1 << 20;
/// Answers that are kept, of all workspaces.
const MAX_ANSWERS: usize = 20;
/// An older answer is of no use to anybody.
const MAX_AGE: Duration = Duration::from_hours(30 * 24);

const EXTENSION: &str = "answer";

/// The folder of answers.
#[derive(Clone, Debug)]
pub struct Answers {
    folder: Option<PathBuf>,
    /// The serial of what was last written for each scope. Held while writing, so that what came later stays.
    written: Arc<Mutex<HashMap<PathBuf, u64>>>,
}

/// What is known of the profiles that follow.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Head {
    schema: u32,
    /// See [`key`].
    request: String,
    name: String,
    /// Lengths in bytes.
    parts: Vec<u64>,
    /// Nanoseconds since 1970.
    times: Option<(i64, i64)>,
    notes: Vec<String>,
    when_empty: Option<String>,
    looks_up_lines: bool,
    /// Nanoseconds since 1970.
    fetched_at: i64,
}

/// An answer is not kept. Displays as one sentence.
#[derive(Debug, thiserror::Error)]
pub enum NotKept {
    /// More bytes than one may have.
    #[error("the answer has {} MiB, more than the {} MiB that are kept on disk", .0 >> 20, MAX_BYTES >> 20)]
    TooLarge(u64),
    /// The disk.
    #[error("the answer can't be kept on disk: {0}")]
    Io(#[from] io::Error),
}

impl Answers {
    /// In this folder, which need not exist; `None` keeps nothing.
    pub fn new(folder: Option<PathBuf>) -> Self {
        Self { folder, written: Arc::default() }
    }

    /// Whether there is an answer to this request.
    pub fn has(&self, scope: &Path, request: &Request) -> bool {
        self.open(scope, request).is_some()
    }

    /// The answer to a request; `None` where there is none, or it can't be read or trusted.
    pub fn read(&self, scope: &Path, request: &Request) -> Option<Fetched> {
        let (head, mut file, rest) = self.open(scope, request)?;
        let mut content = Vec::with_capacity(usize::try_from(rest).ok()?);
        file.by_ref().take(rest).read_to_end(&mut content).ok()?;
        let mut content = Bytes::from(content);
        let mut parts = Vec::new();
        for length in head.parts {
            let length = usize::try_from(length).ok().filter(|length| *length <= content.len())?;
            parts.push(content.split_to(length));
        }
        if !content.is_empty() {
            return None;
        }
        let fetched_at = Instant(head.fetched_at);
        let mut notes = head.notes;
        notes.push(format!("fetched at {fetched_at}, and kept on disk since; perflens.refresh asks again"));
        Some(Fetched {
            times: head.times.map(|(start, end)| (Instant(start), Instant(end))),
            notes,
            when_empty: head.when_empty,
            looks_up_lines: head.looks_up_lines,
            fetched_at,
            is_from_disk: true,
            ..Fetched::new(head.name, parts)
        })
    }

    /// Keeps an answer in place of the one before. Does nothing when it is kept already, or a later one is.
    pub fn write(&self, scope: &Path, request: &Request, fetched: &Fetched) -> Result<(), NotKept> {
        let Some(folder) = &self.folder else { return Ok(()) };
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        if written.get(scope).is_some_and(|serial| *serial >= fetched.serial) {
            return Ok(());
        }
        written.insert(scope.to_owned(), fetched.serial);
        let parts: Vec<u64> = fetched.parts.iter().map(|part| part.len() as u64).collect();
        let bytes: u64 = parts.iter().sum();
        if bytes > MAX_BYTES {
            // What is there is of before, and not what was shown last.
            remove(&file(folder, scope));
            return Err(NotKept::TooLarge(bytes));
        }
        let head = Head {
            schema: SCHEMA,
            request: key(request),
            name: fetched.name.clone(),
            parts,
            times: fetched.times.map(|(start, end)| (start.0, end.0)),
            notes: fetched.notes.clone(),
            when_empty: fetched.when_empty.clone(),
            looks_up_lines: fetched.looks_up_lines,
            fetched_at: fetched.fetched_at.0,
        };
        create_private(folder)?;
        // Made for the user alone on every system.
        let mut temporary = tempfile::NamedTempFile::new_in(folder)?;
        serde_json::to_writer(&mut temporary, &head).map_err(io::Error::from)?;
        temporary.write_all(b"\n")?;
        for part in &fetched.parts {
            temporary.write_all(part)?;
        }
        temporary.persist(file(folder, scope)).map_err(|error| error.error)?;
        tidy(folder)?;
        Ok(())
    }

    /// Removes what is kept for a folder or service.
    pub fn remove(&self, scope: &Path) {
        let Some(folder) = &self.folder else { return };
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        // What was written may be wanted again.
        written.remove(scope);
        remove(&file(folder, scope));
    }

    /// Removes all that is kept.
    pub fn remove_all(&self) {
        let Some(folder) = &self.folder else { return };
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        written.clear();
        for (_, path) in answers(folder) {
            remove(&path);
        }
    }

    /// The head of the answer to a request, its file behind that, and how many bytes are left in it.
    fn open(&self, scope: &Path, request: &Request) -> Option<(Head, BufReader<File>, u64)> {
        let path = file(self.folder.as_ref()?, scope);
        let opened = File::open(&path).ok()?;
        let length = opened.metadata().ok()?.len();
        if length > MAX_BYTES + MAX_HEAD || others_can_write(&path).ok()? {
            return None;
        }
        let mut reader = BufReader::new(opened);
        let mut line = Vec::new();
        reader.by_ref().take(MAX_HEAD).read_until(b'\n', &mut line).ok()?;
        let head: Head = serde_json::from_slice(&line).ok()?;
        let is_young = Instant::now().since(Instant(head.fetched_at)) <= MAX_AGE;
        let is_it = head.schema == SCHEMA && head.request == key(request) && is_young;
        is_it.then(|| (head, reader, length.saturating_sub(line.len() as u64)))
    }
}

fn file(folder: &Path, scope: &Path) -> PathBuf {
    let name = digest(scope.as_os_str().as_encoded_bytes());
    folder.join(&name[..32]).with_extension(EXTENSION)
}

/// What was asked, and of whom, as a hash. Headers are left out: they may be secrets.
fn key(request: &Request) -> String {
    let Request { connection, query } = request;
    let query = query.as_ref().map(|query| (query.selector.to_string(), query.range.to_string()));
    let whole =
        format!("{:?}", (connection.kind, connection.address.as_str(), &connection.project, &connection.tenant, query));
    digest(whole.as_bytes())
}

fn remove(path: &Path) {
    if let Err(error) = fs::remove_file(path)
        && error.kind() != io::ErrorKind::NotFound
    {
        tracing::warn!("{}: can't be removed: {error}", path.display());
    }
}

/// All answers, with when they were written.
fn answers(folder: &Path) -> Vec<(SystemTime, PathBuf)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let is_answer = |path: &PathBuf| path.extension().is_some_and(|extension| extension == EXTENSION);
    entries
        .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
        .filter(|(_, path)| is_answer(path))
        .collect()
}

/// Removes the oldest of too many.
fn tidy(folder: &Path) -> io::Result<()> {
    let mut all = answers(folder);
    all.sort();
    let too_many = all.len().saturating_sub(MAX_ANSWERS);
    let is_old = |time: &SystemTime| time.elapsed().is_ok_and(|age| age > MAX_AGE);
    for (at, (time, path)) in all.iter().enumerate() {
        if at < too_many || is_old(time) {
            fs::remove_file(path)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::{Connection, Kind, settings};

    const CPU: &str = "process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta";

    fn request(server: &str, range: &str) -> Request {
        let mut connection = Connection::new(Kind::Parca, server.parse().unwrap());
        connection.headers.push(("x-key".to_owned(), "hunter2".to_owned()));
        Request { connection, query: Some(settings::query(CPU, range).unwrap()) }
    }

    fn fetched(parts: &[&'static [u8]]) -> Fetched {
        let parts = parts.iter().map(|part| Bytes::from_static(part)).collect();
        Fetched {
            times: Some((Instant(1), Instant(2))),
            notes: vec!["a note".to_owned()],
            when_empty: Some("nothing".to_owned()),
            looks_up_lines: true,
            ..Fetched::new("cpu 15m".to_owned(), parts)
        }
    }

    #[test]
    fn an_answer_comes_back_to_who_asks_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let answers = Answers::new(Some(folder.path().join("answers")));
        let (asked, scope) = (request("http://localhost:7070", "15m"), Path::new("/work"));
        assert!(!answers.has(scope, &asked));
        let first = fetched(&[b"abc", b"", b"de"]);
        answers.write(scope, &asked, &first).unwrap();
        let read = answers.read(scope, &asked).unwrap();
        assert_eq!((&read.parts, read.times, read.fetched_at), (&first.parts, first.times, first.fetched_at));
        assert_eq!((&read.when_empty, read.looks_up_lines), (&first.when_empty, true));
        assert_eq!(read.notes[0], "a note");
        assert!(read.notes[1].contains("kept on disk since"), "{:?}", read.notes);
        assert!(read.is_from_disk && read.serial != first.serial);
        for (scope, other) in [
            ("/work", request("http://localhost:7071", "15m")),
            ("/work", request("http://localhost:7070", "1h")),
            ("/other", request("http://localhost:7070", "15m")),
        ] {
            assert!(!answers.has(Path::new(scope), &other), "{scope} {}", other.name());
        }
        // An older one that comes late is not written, a newer one is.
        let (older, newer) = (fetched(&[b"old"]), fetched(&[b"new"]));
        answers.write(scope, &asked, &newer).unwrap();
        answers.write(scope, &asked, &older).unwrap();
        assert_eq!(answers.read(scope, &asked).unwrap().parts, newer.parts);
        answers.remove(scope);
        assert!(!answers.has(scope, &asked));
    }

    #[cfg(unix)]
    #[test]
    fn it_is_for_the_user_alone_and_has_no_secret() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("answers");
        let answers = Answers::new(Some(folder.clone()));
        let (asked, scope) = (request("http://localhost:7070", "15m"), Path::new("/work"));
        answers.write(scope, &asked, &fetched(&[b"abc"])).unwrap();
        let path = file(&folder, scope);
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&folder), mode(&path)), (0o700, 0o600));
        let content = String::from_utf8(fs::read(&path).unwrap()).unwrap();
        assert!(!content.contains("hunter2") && !content.contains("localhost"), "{content}");
        // What others could have written is not believed.
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
        assert!(!answers.has(scope, &asked));
    }

    #[test]
    fn what_is_damaged_or_old_is_not_there() {
        let folder = tempfile::tempdir().unwrap();
        let answers = Answers::new(Some(folder.path().to_owned()));
        let (asked, scope) = (request("http://localhost:7070", "15m"), Path::new("/work"));
        answers.write(scope, &asked, &fetched(&[b"abc", b"de"])).unwrap();
        let path = file(folder.path(), scope);
        let whole = fs::read(&path).unwrap();
        for end in 0..whole.len() {
            fs::write(&path, &whole[..end]).unwrap();
            assert!(answers.read(scope, &asked).is_none(), "{end}");
        }
        let text = String::from_utf8(whole.clone()).unwrap();
        let month = 31 * 24 * 3_600_000_000_000i64;
        let now = Instant::now().0;
        for (name, content) in [
            ("more behind it", text.clone() + "x"),
            ("a part that is too long", text.replace("[3,2]", "[3,18446744073709551615]")),
            ("a later schema", text.replace("\"schema\":1", "\"schema\":2")),
            ("too old", text.replace("\"fetchedAt\":", &format!("\"fetchedAt\":{},\"was\":", now - month))),
        ] {
            assert_ne!(content, text, "{name}");
            fs::write(&path, content).unwrap();
            assert!(answers.read(scope, &asked).is_none(), "{name}");
        }
        fs::write(&path, whole).unwrap();
        assert!(answers.read(scope, &asked).is_some());
    }

    #[test]
    fn there_are_not_many_of_them() {
        let folder = tempfile::tempdir().unwrap();
        let answers = Answers::new(Some(folder.path().to_owned()));
        let asked = request("http://localhost:7070", "15m");
        for at in 0..MAX_ANSWERS + 3 {
            answers.write(&PathBuf::from(format!("/home/dev/{at}")), &asked, &fetched(&[b"abc"])).unwrap();
        }
        assert_eq!(super::answers(folder.path()).len(), MAX_ANSWERS);
        assert!(answers.has(&PathBuf::from(format!("/home/dev/{}", MAX_ANSWERS + 2)), &asked));
        answers.remove_all();
        assert_eq!(super::answers(folder.path()).len(), 0);
    }
}
