//! A server of Parca's kind over gRPC-web, and the sign-in of Polar Signals Cloud before it.
//!
//! It stores what is pushed as strictly as the real one, and has its peculiarities: samples are
//! multiplied by their period when they are merged, the header of a merged profile is broken,
//! types with a duration are deltas and the others are not, no data is an empty answer here and
//! `NotFound` there, regular expressions match anywhere. The real server is the judge of it, see
//! `tests/tests/sources_parca.rs`; faults on demand are why there is another one.
//!
//! It knows only the calls and reports that servers of every age know: whoever comes to need a newer
//! one (SOURCE is from 0.26 on) is refused, and a test fails.
//!
//! Messages are written down here a second time, so that a wrong number in the program's own
//! is noticed.

mod identity;
mod messages;
mod real;

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use prost::Message;

pub use identity::Identity;
pub use real::{RealParca, wait_for};

use crate::http::{Asked, Does, HttpServer};
use crate::mini::Mini;
use crate::pprof;
use crate::stored::{Kind, Matcher, Stored, inflate, merged};
use messages::{
    GetProjectsResponse, LabelSet, LabelsResponse, Merge, MetricsSample, MetricsSeries, Organization, ProfileType,
    ProfileTypesResponse, Project, Query, QueryRange, QueryRangeResponse, QueryResponse, Timestamp, ValuesRequest,
    ValuesResponse, WriteRaw,
};

const WEB: &str = "application/grpc-web+proto";

/// What is stored, and how the server behaves.
#[derive(Debug, Default)]
pub struct Parca {
    stored: Vec<Stored>,
    /// What to do with the next requests, instead of answering them.
    pub faults: VecDeque<Does>,
    /// Projects of the account.
    pub projects: Vec<(String, String)>,
    /// The project that may be seen, where one has to be named.
    pub project: Option<String>,
    /// Who signs in; without, nobody has to.
    pub identity: Option<Identity>,
    /// Values are never multiplied, as some stores of the real server don't.
    pub never_scales: bool,
}

/// A server that can be changed while it runs.
#[derive(Debug)]
pub struct FakeParca {
    /// Serves.
    pub http: HttpServer,
    parca: Arc<Mutex<Parca>>,
}

impl FakeParca {
    /// Starts an empty server that everybody may ask.
    pub fn start() -> Self {
        let parca = Arc::<Mutex<Parca>>::default();
        Self { http: serve(&parca, "127.0.0.1:0"), parca }
    }

    /// Answers at another address from now on, and no longer at this one: what is under way there
    /// breaks off. What is known stays; who asked what is forgotten.
    pub fn move_to(&mut self, address: &str) {
        self.http = serve(&self.parca, address);
    }

    /// The server, to look at or to change.
    pub fn parca(&self) -> MutexGuard<'_, Parca> {
        lock(&self.parca)
    }

    /// Paths of requests for profiles, in short: `Query`, `QueryRange`.
    pub fn calls(&self) -> Vec<String> {
        let paths = self.http.paths();
        paths
            .iter()
            .filter(|path| path.contains("parca."))
            .filter_map(|path| Some(path.rsplit('/').next()?.to_owned()))
            .collect()
    }
}

fn serve(parca: &Arc<Mutex<Parca>>, address: &str) -> HttpServer {
    let own = Arc::clone(parca);
    HttpServer::start_at(address, move |asked| lock(&own).answer(asked))
}

fn lock(parca: &Mutex<Parca>) -> MutexGuard<'_, Parca> {
    parca.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A refusal: a code of gRPC and its words.
struct Refused(u32, String);

impl Parca {
    /// Stores a profile in the small language, taken at a time.
    ///
    /// # Panics
    /// When the server would not take it.
    pub fn store(&mut self, name: &str, labels: &[(&str, &str)], time_ns: i64, profile: &str) {
        self.store_profile(name, labels, time_ns, Mini::parse(profile).profile);
    }

    /// Stores a profile, taken at a time.
    ///
    /// # Panics
    /// When the server would not take it.
    pub fn store_profile(&mut self, name: &str, labels: &[(&str, &str)], time_ns: i64, mut profile: pprof::Profile) {
        profile.time_nanos = time_ns;
        let mut all = BTreeMap::from([("__name__".to_owned(), name.to_owned())]);
        all.extend(labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        if let Err(Refused(_, why)) = self.take(all, profile) {
            panic!("{why}");
        }
    }

    /// What is stored: labels, and the profile.
    pub fn stored(&self) -> Vec<(BTreeMap<String, String>, pprof::Profile)> {
        self.stored.iter().map(|stored| (stored.labels.clone(), stored.profile.clone())).collect()
    }

    fn answer(&mut self, asked: &Asked) -> Does {
        if let Some(identity) = &mut self.identity
            && let Some(does) = identity.answer(asked)
        {
            return does;
        }
        if let Some(fault) = self.faults.pop_front() {
            return fault;
        }
        let mut parts = asked.path().rsplit('/');
        let (method, service) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        if asked.method != "POST" || asked.headers.get("content-type").map(String::as_str) != Some(WEB) {
            return Does::status(404, "text/plain", "404 page not found\n");
        }
        let message = asked.body.get(5..).unwrap_or_default();
        match self.allowed(asked, method).and_then(|()| self.call(service, method, message)) {
            Ok(answer) => whole(&answer),
            // A refusal comes in the headers alone, as the real one does it.
            Err(Refused(code, words)) => {
                Does::ok(WEB, "").header("grpc-status", &code.to_string()).header("grpc-message", &encoded(&words))
            }
        }
    }

    fn allowed(&self, asked: &Asked, method: &str) -> Result<(), Refused> {
        if let Some(identity) = &self.identity {
            let token =
                asked.headers.get("authorization").and_then(|it| it.strip_prefix("Bearer ")).unwrap_or_default();
            if !identity.is_valid(token) {
                return Err(Refused(16, "invalid token".to_owned()));
            }
        }
        if let Some(project) = &self.project
            && method != "GetProjects"
            && asked.headers.get("projectid") != Some(project)
        {
            return Err(Refused(7, "no access to this project".to_owned()));
        }
        Ok(())
    }

    fn call(&mut self, service: &str, method: &str, message: &[u8]) -> Result<Vec<u8>, Refused> {
        match (service, method) {
            ("parca.query.v1alpha1.QueryService", "ProfileTypes") => {
                let mut types: Vec<Kind> = self.stored.iter().flat_map(Stored::kinds).collect();
                types.sort();
                types.dedup();
                Ok(ProfileTypesResponse { types: types.into_iter().map(ProfileType::from).collect() }.encode_to_vec())
            }
            ("parca.query.v1alpha1.QueryService", "Labels") => {
                let names = self.stored.iter().flat_map(|stored| stored.labels.keys());
                let mut label_names: Vec<String> = names.filter(|name| *name != "__name__").cloned().collect();
                label_names.sort();
                label_names.dedup();
                Ok(LabelsResponse { label_names, warnings: Vec::new() }.encode_to_vec())
            }
            ("parca.query.v1alpha1.QueryService", "Values") => {
                let label = read::<ValuesRequest>(message)?.label_name;
                let values = self.stored.iter().filter_map(|stored| stored.labels.get(&label));
                let mut label_values: Vec<String> = values.cloned().collect();
                label_values.sort();
                label_values.dedup();
                Ok(ValuesResponse { label_values, warnings: Vec::new() }.encode_to_vec())
            }
            ("parca.query.v1alpha1.QueryService", "QueryRange") => self.range(&read(message)?),
            ("parca.query.v1alpha1.QueryService", "Query") => self.query(&read(message)?),
            ("parca.profilestore.v1alpha1.ProfileStoreService", "WriteRaw") => {
                for series in read::<WriteRaw>(message)?.series {
                    let pairs = series.labels.unwrap_or_default().labels;
                    let labels: BTreeMap<String, String> =
                        pairs.into_iter().map(|label| (label.name, label.value)).collect();
                    for sample in series.samples {
                        let raw = inflate(&sample.raw_profile);
                        let profile =
                            pprof::Profile::decode(&raw[..]).map_err(|error| Refused(3, error.to_string()))?;
                        self.take(BTreeMap::clone(&labels), profile)?;
                    }
                }
                Ok(Vec::new())
            }
            ("polarsignals.project.v1alpha1.ProjectService", "GetProjects") => {
                let project = |(id, name): &(String, String)| Project {
                    id: id.clone(),
                    name: name.clone(),
                    organization_id: "o1".to_owned(),
                };
                let projects = self.projects.iter().map(project).collect();
                let organization = Organization { id: "o1".to_owned(), name: "Acme".to_owned(), projects };
                Ok(GetProjectsResponse { organizations: vec![organization] }.encode_to_vec())
            }
            _ => Err(Refused(12, format!("unknown method {method}"))),
        }
    }

    /// Stores a profile, if it is as the real server wants it.
    fn take(&mut self, labels: BTreeMap<String, String>, profile: pprof::Profile) -> Result<(), Refused> {
        let wrong = |what: &str| Err(Refused(3, what.to_owned()));
        let is_word =
            |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if !labels.get("__name__").is_some_and(|name| is_word(name)) {
            return wrong("the series has no name");
        }
        if !labels.keys().all(|name| is_word(name)) {
            return wrong("a label is no name");
        }
        if profile.string_table.first().is_none_or(|first| !first.is_empty()) {
            return wrong("string table must start with ''");
        }
        let in_order = |ids: Vec<u64>| (1..).zip(ids).all(|(expected, id)| expected == id);
        if !in_order(profile.location.iter().map(|row| row.id).collect())
            || !in_order(profile.function.iter().map(|row| row.id).collect())
            || !in_order(profile.mapping.iter().map(|row| row.id).collect())
        {
            return wrong("ids are not 1, 2, 3");
        }
        let types = profile.sample_type.len();
        if profile.sample.iter().any(|sample| sample.value.len() != types || sample.location_id.contains(&0)) {
            return wrong("a sample is not valid");
        }
        if profile.time_nanos == 0 {
            return wrong("the profile has no time");
        }
        let stored = Stored { labels, profile };
        if !stored
            .kinds()
            .iter()
            .all(|of| [&of.sample_type, &of.sample_unit, &of.period_type, &of.period_unit].iter().all(|it| is_word(it)))
        {
            return wrong("a type is no word");
        }
        self.stored.push(stored);
        Ok(())
    }

    fn range(&self, request: &QueryRange) -> Result<Vec<u8>, Refused> {
        let selector = Selector::parse(&request.query)?;
        let (start, end) = times(request.start, request.end)?;
        let step = request.step.map_or(0, |step| step.seconds);
        if step < 1 {
            return Err(Refused(13, "runtime error: integer divide by zero".to_owned()));
        }
        let mut series: BTreeMap<Vec<(String, String)>, Vec<i64>> = BTreeMap::new();
        for (stored, _) in self.selected(&selector, start, end) {
            let labels = stored.labels.iter().filter(|(name, _)| *name != "__name__");
            let labels = labels.map(|(name, value)| (name.clone(), value.clone())).collect();
            series.entry(labels).or_default().push(stored.profile.time_nanos);
        }
        if series.is_empty() {
            return Err(Refused(5, "No data found for the query, try a different query or time range or no data has been written to be queried yet.".to_owned()));
        }
        let series = series.into_iter().map(|(labels, mut times)| {
            times.sort_unstable();
            MetricsSeries {
                labelset: Some(LabelSet::of(labels)),
                samples: times
                    .into_iter()
                    .map(|time| MetricsSample { timestamp: Some(Timestamp::of(time)), value: 1 })
                    .collect(),
            }
        });
        Ok(QueryRangeResponse { series: series.collect() }.encode_to_vec())
    }

    fn query(&self, request: &Query) -> Result<Vec<u8>, Refused> {
        const MERGE: i32 = 2;
        const PPROF: i32 = 1;
        let Some(Merge { query, start, end }) = request.merge.as_ref().filter(|_| request.mode == MERGE) else {
            return Err(Refused(3, "mode and options do not match".to_owned()));
        };
        if request.report_type != PPROF {
            return Err(Refused(3, "this report is not made here".to_owned()));
        }
        let selector = Selector::parse(query)?;
        let (start, end) = times(*start, *end)?;
        let selected = self.selected(&selector, start, end);
        let pprof = if selected.is_empty() { Vec::new() } else { pprof::gzip(&self.merged(&selected)) };
        Ok(QueryResponse { pprof: Some(pprof), total: 0 }.encode_to_vec())
    }

    /// Stored profiles, each with the column of the type.
    fn selected(&self, selector: &Selector, start: i64, end: i64) -> Vec<(&Stored, usize)> {
        let in_time = |stored: &&Stored| (start..=end).contains(&stored.profile.time_nanos);
        let fits = |stored: &Stored| stored.kinds().iter().position(|of| of.to_string() == selector.profile_type);
        self.stored
            .iter()
            .filter(in_time)
            .filter(|stored| selector.matchers.iter().all(|matcher| matcher.holds(&stored.labels)))
            .filter_map(|stored| Some((stored, fits(stored)?)))
            .collect()
    }

    /// One profile of one type, values multiplied where the real server does, with its header.
    fn merged(&self, selected: &[(&Stored, usize)]) -> Vec<u8> {
        let mut profile = merged(selected, !self.never_scales);
        // As a time that has overflowed.
        profile.time_nanos = i64::MIN + 4_711;
        pprof::raw(&profile)
    }
}

impl From<Kind> for ProfileType {
    fn from(kind: Kind) -> Self {
        let Kind { name, sample_type, sample_unit, period_type, period_unit, delta } = kind;
        Self { name, sample_type, sample_unit, period_type, period_unit, delta }
    }
}

struct Selector {
    profile_type: String,
    matchers: Vec<Matcher>,
}

impl Selector {
    fn parse(text: &str) -> Result<Self, Refused> {
        let wrong = || Refused(3, "failed to parse query".to_owned());
        let (profile_type, labels) = text.split_once('{').ok_or_else(wrong)?;
        if !matches!(profile_type.split(':').count(), 5 | 6) {
            return Err(Refused(3, "profile-type selection must be of the form <name>:<sample-type>:<sample-unit>:<period-type>:<period-unit>(:delta)".to_owned()));
        }
        // Regular expressions match anywhere, as the real server's.
        let matchers = Matcher::parse(labels, false).ok_or_else(wrong)?;
        Ok(Self { profile_type: profile_type.to_owned(), matchers })
    }
}

fn times(start: Option<Timestamp>, end: Option<Timestamp>) -> Result<(i64, i64), Refused> {
    let (Some(start), Some(end)) = (start, end) else {
        return Err(Refused(3, "start and end are required".to_owned()));
    };
    let (start, end) = (start.nanos(), end.nanos());
    if end < start { Err(Refused(3, "end is before start".to_owned())) } else { Ok((start, end)) }
}

fn read<M: Message + Default>(bytes: &[u8]) -> Result<M, Refused> {
    M::decode(bytes).map_err(|error| Refused(13, error.to_string()))
}

/// An answer to a query that has this profile in it, packed or not, as it is.
pub fn answer(pprof: Vec<u8>) -> Does {
    whole(&QueryResponse { pprof: Some(pprof), total: 0 }.encode_to_vec())
}

/// An answer that went well.
fn whole(message: &[u8]) -> Does {
    Does::ok(WEB, [frame(0, message), frame(0x80, b"grpc-status: 0\r\ngrpc-message: \r\n")].concat())
}

/// A frame of gRPC-web.
pub fn frame(flags: u8, content: &[u8]) -> Vec<u8> {
    let length = u32::try_from(content.len()).expect("tests are small").to_be_bytes();
    [&[flags][..], &length, content].concat()
}

fn encoded(words: &str) -> String {
    words
        .bytes()
        .map(|byte| if byte.is_ascii_alphanumeric() { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}
