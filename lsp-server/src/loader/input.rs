//! What a profile is read from: a file, what a source gave, or what came by itself.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use profiler_core::attribute::Filter;
use profiler_core::cancel::CancelFlag;
use profiler_core::decode::{DecodeErrorKind, Limits, decode};
use profiler_core::profile::Profile;

use super::Failure;
use crate::config::Config;
use crate::otlp::Snapshot;
use crate::source::query::Matcher;
use crate::source::{Fetched, Request, SourceError, address, settings};

/// Where a profile comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// A file.
    File(PathBuf),
    /// A source.
    Remote(Box<Request>),
    /// What the receiver has.
    Received,
}

/// What the user writes for [`Input::Received`].
pub const RECEIVED: &str = "otlp:";

impl Input {
    /// What a user means: an address, or a file in a folder.
    pub fn of_user(text: &Path, folder: &Path, config: &Config) -> Result<Self, SourceError> {
        if text == Path::new(RECEIVED) {
            return Ok(Self::Received);
        }
        let Some(text) = text.to_str().filter(|text| address::is_address(text)) else {
            return Ok(Self::File(folder.join(text)));
        };
        // A mistake in the settings of the server is nothing to an address.
        let configured = settings::connection(&config.source, folder).ok().flatten();
        Ok(Self::Remote(Box::new(address::link(text, configured.as_ref())?.request)))
    }

    /// For people: the file's name, or the query.
    pub fn name(&self) -> String {
        match self {
            Self::File(path) => super::file_name(path),
            Self::Remote(request) => request.name(),
            Self::Received => "OTLP".to_owned(),
        }
    }

    /// For people, in full.
    pub fn place(&self) -> String {
        match self {
            Self::File(path) => path.display().to_string(),
            Self::Remote(request) => format!("{} from {}", request.name(), request.connection.server()),
            Self::Received => "what came by OTLP".to_owned(),
        }
    }

    /// The file, if it is one.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::File(path) => Some(path),
            Self::Remote(_) | Self::Received => None,
        }
    }

    /// The same for these labels only, where that is a matter of what is asked for.
    #[must_use]
    pub fn of_labels(mut self, labels: &[Filter]) -> Self {
        if let Self::Remote(request) = &mut self
            && let Some(query) = &mut request.query
        {
            query.selector.matchers.extend(labels.iter().filter_map(Matcher::of_filter));
        }
        self
    }

    /// What has to be fetched, if it is no file.
    pub fn request(&self) -> Option<&Request> {
        match self {
            Self::File(_) | Self::Received => None,
            Self::Remote(request) => Some(request),
        }
    }
}

/// What was fetched for a wish; `None` for files.
#[derive(Clone, Debug, Default)]
pub struct Given {
    /// What the receiver has, if anything.
    pub received: Option<Snapshot>,
    /// For the profile.
    pub profile: Option<Arc<Fetched>>,
    /// For the base.
    pub base: Option<Arc<Fetched>>,
}

/// Decodes what a source gave: all parts as one profile, with the times that the source knows.
pub fn decode_fetched(fetched: &Fetched, limits: &Limits, cancel: &CancelFlag) -> Result<Profile, Failure> {
    let fail = |why: String| Failure::Failed(format!("{}: {why}", fetched.name));
    let mut parts = Vec::with_capacity(fetched.parts.len());
    for part in &fetched.parts {
        match decode(&part[..], limits, cancel) {
            Ok(profile) => parts.push(profile),
            Err(error) if error.kind() == DecodeErrorKind::Cancelled => return Err(Failure::Cancelled),
            // Servers answer with no bytes at all when there is nothing.
            Err(error) if error.kind() == DecodeErrorKind::Empty => {}
            Err(error) => return Err(fail(error.to_string())),
        }
    }
    let whole = Profile::merge(parts).map_err(|error| fail(error.to_string()))?;
    let is_empty = whole.as_ref().is_none_or(|profile| profile.samples().is_empty());
    match (whole, &fetched.when_empty) {
        (_, Some(sentence)) if is_empty => Err(Failure::Failed(sentence.clone())),
        (None, _) => Err(fail("there is nothing in it".to_owned())),
        (Some(profile), _) => {
            let profile = match fetched.times {
                Some((start, end)) => {
                    let duration = end.0.saturating_sub(start.0);
                    profile.with_times(Some(start.0), (duration > 0).then_some(duration))
                }
                None => profile,
            };
            let profile = profile.with_notes(fetched.notes.iter().cloned());
            Ok(if fetched.looks_up_lines { profile.with_looked_up_lines() } else { profile })
        }
    }
}
