//! What leaves when a profile is pushed to a server, for the command line and editors alike: a copy
//! without what is private, the labels it is stored under, and what there is to say about it.
//!
//! What is not here: whether it may be sent, which whoever sends it asks.

use std::io;

use profiler_core::encode::pprof;
use profiler_core::encode::share::{Private, Remains, share};
use profiler_core::profile::{BuildError, Profile};

use crate::source::time::Instant;
use crate::source::{Kind, Push};

/// Who measured, where nobody says so.
pub const NAME: &str = "perflens";

/// A profile, ready to be sent.
#[derive(Debug)]
pub struct Parcel {
    /// What is sent.
    pub push: Push,
    /// The types it is stored as.
    pub types: Vec<String>,
    /// What is still in it.
    pub remains: Remains,
}

/// Servers take these names only.
pub fn is_name(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && text.bytes().next().is_some_and(|first| !first.is_ascii_digit())
}

/// What may leave: the profile without what is private, with a time, which is what queries find it
/// by.
pub fn shared(profile: &Profile, private: &Private) -> Result<(Profile, Remains), BuildError> {
    let (shared, remains) = share(profile, private)?;
    let meta = shared.meta();
    let (time, duration) = (meta.time_ns.unwrap_or(Instant::now().0), meta.duration_ns);
    Ok((shared.with_times(Some(time), duration), remains))
}

/// Makes what is sent to a server of a kind, stored under a [name](is_name) and labels.
pub fn parcel(
    profile: &Profile,
    kind: Kind,
    name: &str,
    labels: &[(String, String)],
    private: &Private,
) -> Result<Parcel, String> {
    let (shared, remains) = shared(profile, private).map_err(|error| error.to_string())?;
    let mut bytes = Vec::new();
    pprof::write(&shared, &mut bytes).map_err(|error: io::Error| error.to_string())?;
    let mut all = vec![("__name__".to_owned(), name.to_owned())];
    all.extend(labels.iter().cloned());
    if kind == Kind::Pyroscope && !all.iter().any(|(key, _)| key == "service_name") {
        all.push(("service_name".to_owned(), name.to_owned()));
    }
    let delta = if shared.meta().duration_ns.is_some() && kind != Kind::Pyroscope { ":delta" } else { "" };
    let period = shared.meta().period_type.clone().unwrap_or_default();
    let types = shared.value_types().iter();
    let types = types.map(|of| format!("{name}:{}:{}:{}:{}{delta}", of.kind, of.unit, period.kind, period.unit));
    Ok(Parcel { types: types.collect(), push: Push { pprof: bytes.into(), labels: all }, remains })
}
