//! The report: the stable JSON of `perflens report`, as plain data.
//!
//! Values are exact integers in the unit of the selected value type, never scaled. Fields
//! may be added; their meaning does not change within a `schema`.

use serde::Serialize;

use crate::attribute::accounting::{Bucket, LeafReason, Standing, Weight};
use crate::attribute::analysis::{Analysis, Basis, ComparedTo};
use crate::attribute::compare::{Pair, SideCost};
use crate::attribute::{Costs, FileGroups, GroupId, LineRow};
use crate::profile::{LineNo, Profile, ValueType};

/// Version of the JSON's meaning.
pub const SCHEMA: u32 = 1;

/// Most bytes of a producer's comments that are among the notes: a file may repeat one for ever.
const MAX_COMMENTS: usize = 1 << 16;

/// The whole report.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: u32,
    /// What was measured.
    pub profile: Head,
    /// Costs of lines.
    pub lines: Vec<Line>,
    /// Costs of functions.
    pub functions: Vec<Function>,
    /// Costs of files.
    pub files: Vec<File>,
    /// Where every sample went.
    pub accounting: AccountingReport,
}

/// What was measured.
#[derive(Clone, Debug, Serialize)]
pub struct Head {
    /// Where the profile came from: a file name.
    pub origin: String,
    /// Name of its format.
    pub format: &'static str,
    /// All value types of the file.
    pub value_types: Vec<ValueType>,
    /// The one that the values below are of.
    pub selected: ValueType,
    /// Kept records with a value.
    pub records: u64,
    /// Σ|v| of the type that counts samples; `None` without one.
    pub samples: Option<i64>,
    /// Σ|v| of kept samples; all shares are of this.
    pub total: i64,
    /// Σv of kept samples.
    pub net: i64,
    /// Σ|v| of all samples, whatever the filters.
    pub total_unfiltered: i64,
    /// Length of the recording in nanoseconds.
    pub duration_ns: Option<i64>,
    /// When it was made, in nanoseconds since 1970.
    pub time_ns: Option<i64>,
    /// Distance of two samples, in units of `period_type`.
    pub period: Option<i64>,
    /// What `period` counts.
    pub period_type: Option<ValueType>,
    /// What line numbers stand for: `executing`, or less (`leaf_only`, `flat_only`,
    /// `function_only`), as a note then says in words.
    pub line_detail: &'static str,
    /// The filters that were applied.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub filters: Vec<String>,
    /// What its producer says of the profile, and what was odd about it, each a sentence.
    pub notes: Vec<String>,
    /// What it is compared with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<BaseHead>,
}

/// The base of a comparison.
#[derive(Clone, Debug, Serialize)]
pub struct BaseHead {
    /// Where it came from.
    pub origin: String,
    /// Σ|v| of kept samples.
    pub total: i64,
    /// Σv of kept samples.
    pub net: i64,
    /// Kept records with a value.
    pub records: u64,
    /// Σ|v| of the type that counts samples.
    pub samples: Option<i64>,
    /// How the sides were made comparable: `value`, or `normalized` (the new profile's
    /// values brought to the base's net).
    pub mode: &'static str,
    /// Length of its recording in nanoseconds.
    pub duration_ns: Option<i64>,
}

/// Where a row's file is.
#[derive(Clone, Debug, Serialize)]
pub struct Location {
    /// The profile's path, lexically cleaned.
    pub file: String,
    /// The file of the workspace, relative to its root; only with a workspace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace_file: Option<Option<String>>,
    /// How the file was matched, or why not; only with a workspace.
    #[serde(rename = "match", skip_serializing_if = "Option::is_none")]
    pub evidence: Option<String>,
    /// Further paths of the profile that are this file; only with a workspace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aliases: Option<Vec<String>>,
}

impl Location {
    /// The name for people: the workspace file, else the profile's path.
    pub fn display(&self) -> &str {
        match &self.workspace_file {
            Some(Some(file)) => file,
            _ => &self.file,
        }
    }
}

/// What a row costs.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Values {
    /// Σv of samples whose leaf is here.
    pub flat: i64,
    /// Σv of samples that pass here.
    pub cumulative: i64,
    /// Σv of samples whose innermost own frame is here; only with a workspace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub direct: Option<i64>,
    /// The other side; only in a comparison.
    #[serde(flatten)]
    pub base: Option<BaseValues>,
}

/// What a row costs in the base, and the difference new − base.
#[derive(Clone, Debug, Serialize)]
pub struct BaseValues {
    /// Flat of the base.
    pub base_flat: i64,
    /// Cumulative of the base.
    pub base_cumulative: i64,
    /// new − base.
    pub diff_flat: i128,
    /// new − base.
    pub diff_cumulative: i128,
    /// Direct of the base; only with a workspace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_direct: Option<i64>,
    /// new − base; only with a workspace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff_direct: Option<i128>,
    /// Samples that pass here; `None` when the profile doesn't count samples.
    pub samples: Option<i64>,
    /// Samples that pass here in the base.
    pub base_samples: Option<i64>,
}

/// A line.
#[derive(Clone, Debug, Serialize)]
pub struct Line {
    /// Its file.
    #[serde(flatten)]
    pub location: Location,
    /// Its number, from 1.
    pub line: u32,
    /// What it costs.
    #[serde(flatten)]
    pub values: Values,
    /// Functions with samples on the line.
    pub functions: Vec<String>,
    /// How the line was found in today's text: `exact`, `shifted`, `uncertain`; only
    /// where the measured text is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub anchor: Option<&'static str>,
    /// Its number in the text that was measured, where that is another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured_line: Option<u32>,
    /// Why it may be another line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub doubt: Option<String>,
}

/// A function.
#[derive(Clone, Debug, Serialize)]
pub struct Function {
    /// Its demangled name.
    pub name: String,
    /// Its file.
    #[serde(flatten)]
    pub location: Location,
    /// The line its declaration starts on, from 1; `None` when unknown.
    pub start_line: Option<u32>,
    /// What it costs.
    #[serde(flatten)]
    pub values: Values,
}

/// A file.
#[derive(Clone, Debug, Serialize)]
pub struct File {
    /// The file.
    #[serde(flatten)]
    pub location: Location,
    /// What it costs.
    #[serde(flatten)]
    pub values: Values,
    /// How its lines were found in today's text; only where the measured text is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub anchor: Option<Anchor>,
}

/// How the lines of a file were found in today's text.
#[derive(Clone, Debug, Serialize)]
pub struct Anchor {
    /// What the measured text was taken from: `same_text`, `copy`, `commit`, `opened`,
    /// `functions`.
    pub basis: &'static str,
    /// The same in words.
    pub found: String,
    /// Whether the text is another by now.
    pub changed: bool,
    /// The file's name when it was measured, where that was another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub renamed_from: Option<String>,
    /// Σv of samples whose leaf was on a line that is gone.
    pub gone_flat: i64,
    /// Σv of samples that pass such lines, each sample once.
    pub gone_cumulative: i64,
}

/// Where every sample went, in |v|.
#[derive(Clone, Debug, Serialize)]
pub struct AccountingReport {
    /// Σ|v| of kept samples; the next four add up to it.
    pub total: i64,
    /// Leaf has a file and a line.
    pub with_line: i64,
    /// Leaf has a file but no line.
    pub no_line: i64,
    /// Leaf has a name but no file.
    pub no_file: i64,
    /// Leaf has neither name nor file.
    pub unresolved: i64,
    /// Left out by filters; outside of the total.
    pub filtered: i64,
    /// By the best frame anywhere.
    pub reach: Reach,
    /// By the best frame as the workspace sees it.
    pub workspace: Option<WorkspaceBuckets>,
    /// Why value is in its bucket.
    pub reasons: Vec<Reason>,
    /// Value in no line of the workspace, by the package or binary of its leaf.
    pub unplaced: Vec<Unplaced>,
    /// Value whose leaf has no line, by binary.
    pub without_lines: Vec<WithoutLines>,
}

/// By the best frame anywhere; adds up to the total.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Reach {
    /// Some frame has a file and a line.
    pub with_line: i64,
    /// Else some frame has a file.
    pub no_line: i64,
    /// Else some frame has a name.
    pub no_file: i64,
    /// Else.
    pub unresolved: i64,
}

/// By the best frame as the workspace sees it; adds up to the total.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct WorkspaceBuckets {
    /// Some frame is hand-written workspace code with a line.
    pub shown: i64,
    /// Else some line could be in several workspace files.
    pub ambiguous: i64,
    /// Else some line is in generated code, a dependency or the toolchain.
    pub outside: i64,
    /// Else some frame has a line, in a file nothing is known about.
    pub no_match: i64,
    /// Else as in reach.
    pub no_line: i64,
    /// Else as in reach.
    pub no_file: i64,
    /// Else as in reach.
    pub unresolved: i64,
}

/// Why value is in its bucket.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Reason {
    /// The bucket, of leaves or of the workspace.
    pub bucket: &'static str,
    /// The reason.
    pub reason: &'static str,
    /// Σ|v|.
    pub value: i64,
    /// Samples.
    pub records: u64,
}

/// Value in no line of the workspace.
#[derive(Clone, Debug, Serialize)]
pub struct Unplaced {
    /// The package or binary.
    pub name: String,
    /// Σ|v|.
    pub value: i64,
    /// Samples.
    pub records: u64,
}

/// Value whose leaf has no line, of one binary.
#[derive(Clone, Debug, Serialize)]
pub struct WithoutLines {
    /// The binary's path where it ran.
    pub file: String,
    /// Its build id, if the profile has it.
    pub build_id: String,
    /// Σ|v|.
    pub value: i64,
    /// Samples.
    pub records: u64,
    /// What was missing when its addresses were looked up; `null` when they weren't, or all was there.
    pub why: Option<String>,
    /// What to do about it.
    pub advice: Option<String>,
}

/// Makes the report of a profile. `top` bounds each array; 0 means all.
pub fn report(origin: &str, analysis: &Analysis, top: usize) -> Report {
    let costs = &analysis.costs;
    let rows = Rows::of(analysis);
    Report {
        schema: SCHEMA,
        profile: head(origin, analysis),
        lines: limited(&costs.lines, top).map(|row| rows.line(row, rows.values(row.cost, None))).collect(),
        functions: limited(&costs.functions, top)
            .map(|row| Function {
                name: row.name.clone(),
                location: rows.location(row.file),
                start_line: known(row.start_line),
                values: rows.values(row.cost, None),
            })
            .collect(),
        files: limited(&costs.files, top).map(|row| rows.file(row.file, rows.values(row.cost, None))).collect(),
        accounting: accounting(analysis),
    }
}

/// Makes the report of a comparison: rows of either side, by falling |difference|.
pub fn comparison(origin: &str, base_origin: &str, analysis: &Analysis, compared: &ComparedTo, top: usize) -> Report {
    let (new, base) = (Rows::of(analysis), Rows::of(&compared.base));
    let base_costs = &compared.base.costs;
    let mut head = head(origin, analysis);
    head.base = Some(BaseHead {
        origin: base_origin.to_owned(),
        total: base_costs.total,
        net: base_costs.net,
        records: base_costs.records,
        samples: base_costs.samples,
        mode: match compared.basis {
            Basis::Normalized(_) => "normalized",
            Basis::Unknown => "value",
            Basis::SameWork => "same work",
            Basis::PerWork(_) => "per work",
        },
        duration_ns: compared.base.profile.meta().duration_ns,
    });
    // A row's words come from the side that has it, from the new one where both do.
    let lines = limited(&compared.comparison.lines, top)
        .filter_map(|pair| {
            let values = new.values(pair.new.cost, Some(pair));
            let of = |rows: &Rows<'_>, side: &SideCost| {
                side.row.map(|row| rows.line(&rows.costs.lines[row], values.clone()))
            };
            of(&new, &pair.new).or_else(|| of(&base, &pair.base))
        })
        .collect();
    let functions = limited(&compared.comparison.functions, top)
        .filter_map(|pair| {
            let values = new.values(pair.new.cost, Some(pair));
            let of = |rows: &Rows<'_>, side: &SideCost| {
                let row = &rows.costs.functions[side.row?];
                Some(Function {
                    name: row.name.clone(),
                    location: rows.location(row.file),
                    start_line: known(row.start_line),
                    values: values.clone(),
                })
            };
            of(&new, &pair.new).or_else(|| of(&base, &pair.base))
        })
        .collect();
    let files = limited(&compared.comparison.files, top)
        .filter_map(|pair| {
            let values = new.values(pair.new.cost, Some(pair));
            let of =
                |rows: &Rows<'_>, side: &SideCost| Some(rows.file(rows.costs.files[side.row?].file, values.clone()));
            of(&new, &pair.new).or_else(|| of(&base, &pair.base))
        })
        .collect();
    Report { schema: SCHEMA, profile: head, lines, functions, files, accounting: accounting(analysis) }
}

fn limited<T>(rows: &[T], top: usize) -> impl Iterator<Item = &T> {
    rows.iter().take(if top == 0 { usize::MAX } else { top })
}

fn known(line: LineNo) -> Option<u32> {
    line.is_known().then_some(line.0)
}

fn head(origin: &str, analysis: &Analysis) -> Head {
    let (profile, costs) = (&analysis.profile, &analysis.costs);
    let meta = profile.meta();
    Head {
        origin: origin.to_owned(),
        format: profile.format(),
        value_types: profile.value_types().to_vec(),
        selected: analysis.selected().clone(),
        records: costs.records,
        samples: costs.samples,
        total: costs.total,
        net: costs.net,
        total_unfiltered: profile.sum(analysis.value_type).total,
        duration_ns: meta.duration_ns,
        time_ns: meta.time_ns,
        period: Some(meta.period).filter(|&period| period != 0),
        period_type: meta.period_type.clone(),
        line_detail: meta.line_detail.name(),
        filters: analysis.filters.iter().map(ToString::to_string).collect(),
        notes: comments(profile).chain(profile.notes()).chain(&costs.notes).cloned().collect(),
        base: None,
    }
}

/// What its producer says of the profile: of a recording, how it was taken and what was lost. Other formats than pprof
/// have a name of the product there.
fn comments(profile: &Profile) -> impl Iterator<Item = &String> {
    let all = if profile.format() == "pprof" { profile.meta().comments.as_slice() } else { &[] };
    let mut left = MAX_COMMENTS;
    all.iter().map_while(move |comment| {
        left = left.checked_sub(comment.len() + 1)?;
        Some(comment)
    })
}

/// Turns rows of one side into words.
pub(super) struct Rows<'a> {
    profile: &'a Profile,
    groups: &'a FileGroups,
    costs: &'a Costs,
}

impl<'a> Rows<'a> {
    pub(super) fn of(analysis: &'a Analysis) -> Self {
        Self { profile: &analysis.profile, groups: &analysis.groups, costs: &analysis.costs }
    }

    fn line(&self, row: &LineRow, values: Values) -> Line {
        let anchor = self.groups.get(row.file).anchor.as_ref();
        let state = anchor.and_then(|anchor| anchor.state(row.line.0));
        Line {
            location: self.location(row.file),
            line: row.line.0,
            values,
            functions: row.functions.iter().map(|&function| self.costs.functions[function].name.clone()).collect(),
            anchor: anchor.map(|anchor| anchor.word(row.line.0)),
            measured_line: state.map(|state| state.from),
            doubt: state.and_then(|state| state.doubt).map(|doubt| doubt.to_string()),
        }
    }

    pub(super) fn file(&self, group: GroupId, values: Values) -> File {
        let anchor = self.groups.get(group).anchor.as_ref().map(|anchor| {
            let gone = self.costs.gone.iter().find(|row| row.file == group).map(|row| row.cost).unwrap_or_default();
            Anchor {
                basis: anchor.basis().name(),
                found: anchor.basis().to_string(),
                changed: anchor.is_changed(),
                renamed_from: anchor.old_name().map(str::to_owned),
                gone_flat: gone.flat,
                gone_cumulative: gone.cumulative,
            }
        });
        File { location: self.location(group), values, anchor }
    }

    pub(super) fn location(&self, group: GroupId) -> Location {
        let file = self.groups.path(self.profile, group).to_owned();
        if !self.groups.has_workspace() {
            return Location { file, workspace_file: None, evidence: None, aliases: None };
        }
        let members = self.groups.get(group);
        let aliases = members.files.iter().skip(1).map(|&file| self.profile.path(file).to_owned()).collect();
        let placement = members.placement.as_ref();
        Location {
            file,
            workspace_file: Some(placement.and_then(|placement| placement.workspace_file.clone())),
            evidence: Some(
                placement.map_or_else(|| "no source file".to_owned(), |placement| placement.evidence.clone()),
            ),
            aliases: Some(aliases),
        }
    }

    fn values(&self, cost: crate::attribute::Cost, pair: Option<&Pair>) -> Values {
        let has_workspace = self.groups.has_workspace();
        Values {
            flat: cost.flat,
            cumulative: cost.cumulative,
            direct: has_workspace.then_some(cost.direct),
            base: pair.map(|pair| BaseValues {
                base_flat: pair.base.cost.flat,
                base_cumulative: pair.base.cost.cumulative,
                diff_flat: pair.diff_flat(),
                diff_cumulative: pair.diff_cumulative(),
                base_direct: has_workspace.then_some(pair.base.cost.direct),
                diff_direct: has_workspace.then(|| pair.diff_direct()),
                samples: pair.new.samples,
                base_samples: pair.base.samples,
            }),
        }
    }
}

fn accounting(analysis: &Analysis) -> AccountingReport {
    let (profile, costs) = (&analysis.profile, &analysis.costs);
    let accounting = &costs.accounting;
    let leaf = |bucket| accounting.leaf_bucket(bucket);
    let reach = |bucket| accounting.reach_bucket(bucket);
    AccountingReport {
        total: costs.total,
        with_line: leaf(Bucket::WithLine),
        no_line: leaf(Bucket::NoLine),
        no_file: leaf(Bucket::NoFile),
        unresolved: leaf(Bucket::Unresolved),
        filtered: accounting.filtered.value,
        reach: Reach {
            with_line: reach(Bucket::WithLine),
            no_line: reach(Bucket::NoLine),
            no_file: reach(Bucket::NoFile),
            unresolved: reach(Bucket::Unresolved),
        },
        workspace: accounting.workspace.as_ref().map(workspace),
        reasons: reasons(accounting),
        unplaced: accounting
            .unplaced
            .iter()
            .map(|(name, weight)| Unplaced { name: name.clone(), value: weight.value, records: weight.records })
            .collect(),
        without_lines: accounting
            .without_lines
            .iter()
            .map(|&(mapping, weight)| {
                let row = profile.mapping(mapping);
                let note = profile.binary_note(mapping);
                WithoutLines {
                    file: profile.text(row.file).to_owned(),
                    build_id: profile.text(row.build_id).to_owned(),
                    value: weight.value,
                    records: weight.records,
                    why: note.map(|note| note.why.clone()),
                    advice: note.map(|note| note.advice.clone()),
                }
            })
            .collect(),
    }
}

fn workspace(standings: &[Weight; 9]) -> WorkspaceBuckets {
    let sum = |bucket: &str| {
        Standing::ALL
            .iter()
            .filter(|standing| standing.bucket() == bucket)
            .map(|&standing| standings[standing as usize].value)
            .sum()
    };
    WorkspaceBuckets {
        shown: sum("shown"),
        ambiguous: sum("ambiguous"),
        outside: sum("outside"),
        no_match: sum("no_match"),
        no_line: sum("no_line"),
        no_file: sum("no_file"),
        unresolved: sum("unresolved"),
    }
}

fn reasons(accounting: &crate::attribute::Accounting) -> Vec<Reason> {
    let leaf = LeafReason::ALL
        .iter()
        .filter(|&&reason| reason != LeafReason::WithLine)
        .map(|&reason| (reason.bucket().name(), reason.name(), accounting.leaf[reason as usize]));
    let workspace = accounting.workspace.iter().flat_map(|standings| {
        Standing::ALL
            .iter()
            .filter_map(|&standing| Some((standing.bucket(), standing.reason()?, standings[standing as usize])))
    });
    leaf.chain(workspace)
        .filter(|(_, _, weight)| weight.records > 0)
        .map(|(bucket, reason, weight)| Reason { bucket, reason, value: weight.value, records: weight.records })
        .collect()
}
