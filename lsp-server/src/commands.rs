//! The commands of the server, `workspace/executeCommand`: one table.
//!
//! Each row has a name, what it does and its arguments; what is announced to editors, checked,
//! documented in `docs/commands.md` and offered in menus comes from it. A new command is a row
//! of [`COMMANDS`] and a variant of [`CommandCall`]. What a command does is not here.
//!
//! Arguments are one object, or bare values in the order of the table. Editors whose users type
//! commands pass words, so every value may also be a text: `"12"`, `"true"`. They are checked
//! against the table before anything runs; a call that was read is complete and in range.

use std::fmt::Write as _;
use std::path::PathBuf;

use profiler_core::attribute::Filter;
use profiler_core::view::data::shown;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::config::HintMode;
use crate::config::docs::cell;
use crate::config::values::filters;
use crate::nearest::{nearest, one_of};

/// What all ids start with.
const PREFIX: &str = "perflens.";

/// A row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Command {
    /// Its id without `perflens.`.
    pub name: &'static str,
    /// For menus and buttons.
    pub title: &'static str,
    /// What it does, for the documentation.
    pub doc: &'static str,
    /// In the order of bare values.
    pub arguments: &'static [Argument],
}

/// One argument of a command.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Argument {
    /// Its key in the object.
    pub name: &'static str,
    /// What it takes.
    pub takes: Takes,
    /// Whether the command can do nothing without it.
    pub required: bool,
    /// What it means, for the documentation.
    pub doc: &'static str,
    /// A value as somebody would type it.
    pub example: &'static str,
}

/// What an argument takes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Takes {
    /// Any text that is not empty.
    Text,
    /// A list of filters as the command line has them; takes all words that are left. An empty
    /// text stands for no filter.
    Filters,
    /// True or false.
    Flag,
    /// A whole number.
    Number {
        /// The least.
        min: u32,
        /// The largest.
        max: u32,
    },
    /// One of these.
    Choice(&'static [&'static str]),
}

impl Takes {
    /// As part of a sentence.
    pub fn words(self) -> String {
        match self {
            Self::Text => "a text".to_owned(),
            Self::Filters => "filters like `fn~parse`".to_owned(),
            Self::Flag => "`true` or `false`".to_owned(),
            Self::Number { min, max } => format!("a whole number from {min} to {max}"),
            Self::Choice(choices) => one_of(choices),
        }
    }
}

impl Argument {
    const fn required(self) -> Self {
        Self { required: true, ..self }
    }

    /// The same argument with another meaning.
    const fn meaning(self, doc: &'static str, example: &'static str) -> Self {
        Self { doc, example, ..self }
    }
}

impl Command {
    /// The id by which editors call it.
    pub fn id(&self) -> String {
        format!("{PREFIX}{}", self.name)
    }
}

/// A profile, as an argument.
const PATH: Argument = Argument {
    name: "path",
    takes: Takes::Text,
    required: false,
    doc: "The profile: a file, absolute or relative to the workspace folder, or an address.",
    example: "cpu.pb.gz",
};

const TYPE: Argument = Argument {
    name: "type",
    takes: Takes::Text,
    required: false,
    doc: "The value type, as `TYPE` or `TYPE/UNIT`.",
    example: "cpu",
};

const FILE: Argument = Argument {
    name: "file",
    takes: Takes::Text,
    required: false,
    doc: "A source file: its `file:` URI, or a path, absolute or relative to the workspace folder.",
    example: "src/main.rs",
};

/// Lines of commands are what people see in editors, not the protocol's.
const LINE: Argument = Argument {
    name: "line",
    takes: Takes::Number { min: 1, max: i32::MAX.unsigned_abs() },
    required: false,
    doc: "A line of the file; the first is 1.",
    example: "17",
};

const RUNNABLE: Argument = Argument {
    name: "name",
    takes: Takes::Text,
    required: false,
    doc: "The name of what is profiled. Lenses send it, as the lines that they were made for may have moved since: it \
          is then the one of this name, the nearest to the line.",
    example: "parse_words",
};

const FUNCTION: Argument = Argument {
    name: "name",
    takes: Takes::Text,
    required: false,
    doc: "The name of a function with a lens. Lenses send their own, as the lines that they were made for may have \
          moved since: it is then about the one of this name, the nearest to the line.",
    example: "words::measure",
};

const RANGE: Argument = Argument {
    name: "range",
    takes: Takes::Text,
    required: false,
    doc: "Of which time: `15m`, `24h`, `7d`, `1h@24h` for an hour that ended a day ago, or two times with a slash \
          between them.",
    example: "15m",
};

/// All commands, in the order in which the documentation explains them.
pub const COMMANDS: &[Command] = &[
    Command {
        name: "openProfile",
        title: "Open a profile",
        doc: "Opens a profile and shows its costs.",
        arguments: &[PATH.required(), TYPE],
    },
    Command {
        name: "selectValueType",
        title: "Select the value type",
        doc: "Counts another value type of the open profile. Without an argument it offers them.",
        arguments: &[TYPE],
    },
    Command {
        name: "selectPreset",
        title: "Select a preset",
        doc: "Asks a question that has a name: one of yours or the workspace's, or one that is built in, as far as \
              what is open can answer it. Without an argument it offers them.",
        arguments: &[Argument {
            name: "name",
            takes: Takes::Text,
            required: false,
            doc: "The preset's name.",
            example: "cpu",
        }],
    },
    Command {
        name: "setFilter",
        title: "Set filters",
        doc: "Counts only what matches all filters, instead of the present ones. An empty text, or an empty list, \
              counts everything. Without an argument it offers services, threads and labels of the samples, and to \
              hide the frames of executors, each with how much it leaves out.",
        arguments: &[Argument {
            name: "filters",
            takes: Takes::Filters,
            required: false,
            doc: "Filters, as `FIELD OP VALUE`.",
            example: "fn~parse",
        }],
    },
    Command {
        name: "query",
        title: "Ask the profiling server",
        doc: "Fetches a profile from the server of `source.address`. Without an argument it offers what that has.",
        arguments: &[
            Argument {
                name: "selector",
                takes: Takes::Text,
                required: false,
                doc: "A profile type, and labels in braces with any of `=` `!=` `=~` `!~`.",
                example: "memory:inuse_space:bytes:space:bytes{job=\"api\"}",
            },
            RANGE,
        ],
    },
    Command {
        name: "setTimeRange",
        title: "Set the time range",
        doc: "Asks the server for the same of another time. Without an argument it offers some.",
        arguments: &[RANGE],
    },
    Command {
        name: "listLabels",
        title: "List labels of a query",
        doc: "Answers with the names of the labels by which a query can be narrowed, or with the values of one.",
        arguments: &[
            Argument {
                name: "selector",
                takes: Takes::Text,
                required: true,
                doc: "A profile type, as for `perflens.query`.",
                example: "memory:inuse_space:bytes:space:bytes",
            },
            Argument {
                name: "label",
                takes: Takes::Text,
                required: false,
                doc: "Whose values; else the labels are listed.",
                example: "job",
            },
            RANGE,
        ],
    },
    Command {
        name: "importUrl",
        title: "Show what a page shows",
        doc: "Shows what a page of Parca, Polar Signals Cloud or Pyroscope shows: query, time, filters.",
        arguments: &[Argument {
            name: "url",
            takes: Takes::Text,
            required: true,
            doc: "The page's address.",
            example: "http://localhost:7070/?expression_a=…",
        }],
    },
    Command {
        name: "copyLink",
        title: "Copy a link",
        doc: "Gives the address of the server's page that shows what is shown, with fixed times and filters.",
        arguments: &[FILE, LINE],
    },
    Command { name: "openInBrowser", title: "Open in the browser", doc: "Opens that page.", arguments: &[FILE, LINE] },
    Command {
        name: "signIn",
        title: "Sign in",
        doc: "Signs in to the server of `source.address` with a browser. In a terminal: `perflens login`.",
        arguments: &[Argument {
            name: "device",
            takes: Takes::Flag,
            required: false,
            doc: "Show a code to enter on another device instead.",
            example: "true",
        }],
    },
    Command {
        name: "signOut",
        title: "Sign out",
        doc: "Forgets the sign-in to the server of `source.address`, and ends it there where that is possible.",
        arguments: &[],
    },
    Command {
        name: "switchProject",
        title: "Switch the project",
        doc: "Shows another project of Polar Signals Cloud. Without an argument it offers them.",
        arguments: &[Argument {
            name: "project",
            takes: Takes::Text,
            required: false,
            doc: "Its name or id.",
            example: "shop",
        }],
    },
    Command {
        name: "pushProfile",
        title: "Push the profile to the server",
        doc: "Sends what is open to the server of `source.address`, without home folders, names of user and host, and \
              labels but a few. Without an argument it lists what is still in it, and asks.",
        arguments: &[Argument {
            name: "name",
            takes: Takes::Text,
            required: false,
            doc: "What the server calls who measured, the first part of the profile type: letters, digits and _.",
            example: "perflens",
        }],
    },
    Command {
        name: "refresh",
        title: "Refresh",
        doc: "Opens the profile again and lists the files of the workspace again.",
        arguments: &[],
    },
    Command { name: "clear", title: "Clear", doc: "Closes the profile and shows no costs.", arguments: &[] },
    Command {
        name: "record",
        title: "Record a program or a process",
        doc: "Runs a command, or watches a process, and shows what its lines cost while it runs. Without arguments it \
              offers processes of the workspace. Linux only.",
        arguments: &[
            Argument {
                name: "target",
                takes: Takes::Text,
                required: false,
                doc: "The command as a shell would be given it, or the number of a process.",
                example: "./target/release/app --fast",
            },
            Argument {
                name: "seconds",
                takes: Takes::Number { min: 1, max: 3600 },
                required: false,
                doc: "How long; else until the command ends, and 10 for a process.",
                example: "10",
            },
            Argument {
                name: "event",
                takes: Takes::Choice(&["cpu", "off-cpu", "alloc"]),
                required: false,
                doc: "What to record: time on a processor, time waiting, or memory; else `cpu`.",
                example: "off-cpu",
            },
        ],
    },
    Command {
        name: "profileTest",
        title: "Profile this test, benchmark or program",
        doc: "Builds a test, benchmark, example or program, runs it until there are 1000 samples of it or 30 s are \
              over, and shows what its lines cost, without set-up. Without a line it offers what the file has. The \
              workspace must be trusted. Linux only.",
        arguments: &[FILE, LINE, RUNNABLE],
    },
    Command {
        name: "profileInTurns",
        title: "Run base and new in turns",
        doc: "Runs a test, benchmark, example or program in turns with its program of before your last edit, and judges \
              every line and function by all pairs of runs. It must have been profiled before that edit, and be \
              compiled. The workspace must be trusted. Linux only.",
        arguments: &[
            FILE,
            LINE,
            Argument {
                name: "pairs",
                takes: Takes::Number { min: 2, max: 10 },
                required: false,
                doc: "How many pairs; else 5.",
                example: "5",
            },
            RUNNABLE,
        ],
    },
    Command {
        name: "stopRecording",
        title: "Stop recording",
        doc: "Ends the recording that is under way; what was recorded stays open.",
        arguments: &[],
    },
    Command {
        name: "compareWith",
        title: "Compare with another profile",
        doc: "Shows what has changed since a base. Without an argument it offers what there is.",
        arguments: &[
            PATH.meaning(
                "The base: a file, absolute or relative to the workspace folder, or an address. Of a recording also \
                 `edit:`, the same before your last edit, `merge-base:`, as it was where this branch left the main \
                 one, and `branch:NAME`, the last one of a branch. Of a profiling server also `yesterday:`, the same \
                 time a day earlier, and `version:`, the version before this one, or `version:NAME`.",
                "edit:",
            ),
            Argument {
                name: "normalize",
                takes: Takes::Flag,
                required: false,
                doc: "Bring the values to the base's sum first.",
                example: "true",
            },
        ],
    },
    Command {
        name: "stopComparing",
        title: "Stop comparing",
        doc: "Shows the costs of the open profile alone.",
        arguments: &[],
    },
    Command {
        name: "nextHotspot",
        title: "Go to the next hot spot",
        doc: "Goes to the line that costs next less than the given one, or than the last one that was gone to; \
              first to the hottest.",
        arguments: &[FILE, LINE],
    },
    Command {
        name: "previousHotspot",
        title: "Go to the previous hot spot",
        doc: "Goes to the line that costs next more than the given one, or than the last one that was gone to.",
        arguments: &[FILE, LINE],
    },
    Command {
        name: "showHotspots",
        title: "Show hot spots",
        doc: "Lists what costs most in the workspace, by direct cost.",
        arguments: &[
            Argument {
                name: "by",
                takes: Takes::Choice(&["line", "function"]),
                required: false,
                doc: "What a row is; else lines.",
                example: "function",
            },
            Argument {
                name: "top",
                takes: Takes::Number { min: 1, max: 10_000 },
                required: false,
                doc: "How many rows; else 20.",
                example: "20",
            },
        ],
    },
    Command {
        name: "showActions",
        title: "Show what can be done here",
        doc: "Offers what can be done with the cost of a line or function. Lenses run it.",
        arguments: &[FILE.required(), LINE.required(), FUNCTION],
    },
    Command {
        name: "showCallers",
        title: "Show callers and callees",
        doc: "Lists who calls a line or function and what it calls, with costs.",
        arguments: &[
            FILE.required(),
            LINE.required(),
            Argument {
                name: "of",
                takes: Takes::Choice(&["line", "function"]),
                required: false,
                doc: "Whose; else the line's.",
                example: "function",
            },
        ],
    },
    Command {
        name: "copyForAI",
        title: "Copy for an assistant",
        doc: "Answers with costs as a text for an assistant: what was measured, what the numbers mean, code with costs \
              in its margin, and a question. For an editor that shows no answers itself it opens the text as a file.",
        arguments: &[
            Argument {
                name: "scope",
                takes: Takes::Choice(&["line", "function", "file", "selection", "workspace", "comparison"]),
                required: true,
                doc: "Whose costs; those of a line, function, file or selection are of the given place.",
                example: "workspace",
            },
            FILE,
            LINE,
            Argument {
                name: "endLine",
                takes: Takes::Number { min: 1, max: i32::MAX.unsigned_abs() },
                required: false,
                doc: "The last line of a selection; else it has one line.",
                example: "24",
            },
        ],
    },
    Command {
        name: "explain",
        title: "Explain what is shown",
        doc: "Tells where the value of the profile went: what is placed in the workspace, what is not, and why.",
        arguments: &[
            FILE.meaning("Only why this source file shows what it shows: its `file:` URI or a path.", FILE.example)
        ],
    },
    Command {
        name: "chooseMatch",
        title: "Choose the file that a path means",
        doc: "Settles which workspace file a path of the profile means when several are possible. Without \
              arguments, or without a file, it offers what there is.",
        arguments: &[
            PATH.meaning("The path as the profile has it.", "/build/src/main.rs"),
            FILE.meaning("The workspace file: its `file:` URI or a path.", FILE.example),
        ],
    },
    Command {
        name: "trustWorkspace",
        title: "Trust this workspace",
        doc: "Lets `perflens.toml` as it is now set everything, after listing what that allows.",
        arguments: &[Argument {
            name: "folder",
            takes: Takes::Text,
            required: false,
            doc: "Which workspace folder, where there are several: its `file:` URI or its path.",
            example: ".",
        }],
    },
    Command {
        name: "showStatus",
        title: "Show the status",
        doc: "Tells what is open, how old it is, how much of it is in this workspace, and which settings are ignored.",
        arguments: &[],
    },
    Command {
        name: "toggleHints",
        title: "Toggle hints",
        doc: "Shows or hides the costs at the end of lines, until the server ends. Other servers' hints stay.",
        arguments: &[Argument {
            name: "mode",
            takes: Takes::Choice(&["all", "hot", "off"]),
            required: false,
            doc: "What to show; else off when hints are shown, and what was shown before when they are off.",
            example: "hot",
        }],
    },
];

/// A command with its arguments, read and checked.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", tag = "name", content = "arguments")]
#[expect(missing_docs, reason = "the table documents them, for users as well")]
pub enum CommandCall {
    OpenProfile {
        path: PathBuf,
        #[serde(rename = "type")]
        value_type: Option<String>,
    },
    SelectValueType {
        #[serde(rename = "type")]
        value_type: Option<String>,
    },
    SelectPreset {
        name: Option<String>,
    },
    SetFilter {
        #[serde(default, deserialize_with = "filters::some")]
        filters: Option<Vec<Filter>>,
    },
    Query {
        selector: Option<String>,
        range: Option<String>,
    },
    SetTimeRange {
        range: Option<String>,
    },
    PushProfile {
        name: Option<String>,
    },
    ListLabels {
        selector: String,
        label: Option<String>,
        range: Option<String>,
    },
    ImportUrl {
        url: String,
    },
    CopyLink {
        file: Option<String>,
        line: Option<u32>,
    },
    OpenInBrowser {
        file: Option<String>,
        line: Option<u32>,
    },
    SignIn {
        #[serde(default)]
        device: bool,
    },
    SignOut {},
    SwitchProject {
        project: Option<String>,
    },
    Refresh {},
    Clear {},
    Record {
        target: Option<String>,
        seconds: Option<u32>,
        #[serde(default)]
        event: RecordedEvent,
    },
    ProfileTest {
        file: Option<String>,
        line: Option<u32>,
        name: Option<String>,
    },
    ProfileInTurns {
        file: Option<String>,
        line: Option<u32>,
        name: Option<String>,
        pairs: Option<u32>,
    },
    StopRecording {},
    CompareWith {
        path: Option<PathBuf>,
        #[serde(default)]
        normalize: bool,
    },
    StopComparing {},
    NextHotspot {
        file: Option<String>,
        line: Option<u32>,
    },
    PreviousHotspot {
        file: Option<String>,
        line: Option<u32>,
    },
    ShowHotspots {
        by: Option<Subject>,
        top: Option<u32>,
    },
    ShowActions {
        file: String,
        line: u32,
        name: Option<String>,
    },
    ShowCallers {
        file: String,
        line: u32,
        of: Option<Subject>,
    },
    #[serde(rename = "copyForAI")]
    CopyForAI {
        scope: CopyScope,
        file: Option<String>,
        line: Option<u32>,
        #[serde(rename = "endLine")]
        end_line: Option<u32>,
    },
    Explain {
        file: Option<String>,
    },
    ChooseMatch {
        path: Option<String>,
        file: Option<String>,
    },
    TrustWorkspace {
        folder: Option<String>,
    },
    ShowStatus {},
    ToggleHints {
        mode: Option<HintMode>,
    },
}

impl CommandCall {
    /// Whether it is run for its answer.
    pub fn is_question(&self) -> bool {
        matches!(
            self,
            Self::CopyLink { .. }
                | Self::ListLabels { .. }
                | Self::SignOut {}
                | Self::ShowHotspots { .. }
                | Self::ShowCallers { .. }
                | Self::Explain { .. }
                | Self::ShowStatus {}
        )
    }
}

/// What to record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RecordedEvent {
    /// Time on a processor.
    #[default]
    Cpu,
    /// Time waiting.
    OffCpu,
    /// Memory, where it is allocated.
    Alloc,
}

impl RecordedEvent {
    /// As the command line has it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::OffCpu => "off-cpu",
            Self::Alloc => "alloc",
        }
    }
}

/// Whose costs are copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum CopyScope {
    /// Of a line.
    Line,
    /// Of the function around a line.
    Function,
    /// Of a file.
    File,
    /// Of some lines of it.
    Selection,
    /// The hot spots of the workspace.
    Workspace,
    /// What changed most.
    Comparison,
}

/// Lines or functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Subject {
    /// Lines of source files.
    Line,
    /// Functions.
    Function,
}

/// A call that makes no sense; displays as sentences for its author.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommandError {
    /// There is no such command.
    #[error("there is no command `{id}`{}", did_you_mean(suggestion.as_deref()))]
    UnknownCommand {
        /// As it was called.
        id: String,
        /// What was probably meant.
        suggestion: Option<String>,
    },
    /// An object with a key that is no argument.
    #[error("{command} has no argument `{argument}`{}", did_you_mean(suggestion.as_deref()))]
    UnknownArgument {
        /// The id.
        command: String,
        /// The key.
        argument: String,
        /// What was probably meant.
        suggestion: Option<String>,
    },
    /// More values than arguments, or an object among several.
    #[error("{command} takes {takes}; call it as {example}")]
    Shape {
        /// The id.
        command: String,
        /// How many arguments, in words.
        takes: String,
        /// A call that works.
        example: String,
    },
    /// A required argument is missing.
    #[error("{command} needs `{argument}`: {doc} For example: {example}")]
    Missing {
        /// The id.
        command: String,
        /// The argument.
        argument: &'static str,
        /// What it is.
        doc: &'static str,
        /// A call that works.
        example: String,
    },
    /// A value that the argument does not take.
    #[error("{command}: `{argument}` {reason}")]
    Invalid {
        /// The id.
        command: String,
        /// The argument.
        argument: &'static str,
        /// What it takes and what it got.
        reason: String,
    },
}

fn did_you_mean(suggestion: Option<&str>) -> String {
    suggestion.map(|suggestion| format!("; did you mean `{suggestion}`?")).unwrap_or_default()
}

/// Reads a call.
pub fn parse(id: &str, arguments: &[Value]) -> Result<CommandCall, CommandError> {
    let name = id.strip_prefix(PREFIX).unwrap_or_default();
    let command = COMMANDS.iter().find(|command| command.name == name).ok_or_else(|| {
        let name = id.strip_prefix(PREFIX).unwrap_or(id);
        let suggestion = nearest(name, COMMANDS.iter().map(|command| command.name));
        CommandError::UnknownCommand { id: id.to_owned(), suggestion: suggestion.map(|name| format!("{PREFIX}{name}")) }
    })?;
    command.read(arguments)
}

impl Command {
    fn read(&self, arguments: &[Value]) -> Result<CommandCall, CommandError> {
        let given = match arguments {
            [Value::Object(object)] => self.by_name(object)?,
            values => self.by_position(values)?,
        };
        let mut checked = Map::new();
        for (argument, value) in given {
            let value = argument.takes.check(value).map_err(|reason| self.invalid(argument.name, reason))?;
            checked.insert(argument.name.to_owned(), value);
        }
        let is_missing = |argument: &&Argument| argument.required && !checked.contains_key(argument.name);
        if let Some(argument) = self.arguments.iter().find(is_missing) {
            return Err(CommandError::Missing {
                command: self.id(),
                argument: argument.name,
                doc: argument.doc,
                example: self.example(),
            });
        }
        let call = serde_json::json!({ "name": self.name, "arguments": checked });
        // The table and the enum agree: a test calls every row.
        CommandCall::deserialize(call).map_err(|error| self.invalid("arguments", error.to_string()))
    }

    fn invalid(&self, argument: &'static str, reason: String) -> CommandError {
        CommandError::Invalid { command: self.id(), argument, reason }
    }

    /// Values with their arguments; `null` is as good as leaving out.
    fn by_name<'v>(&self, object: &'v Map<String, Value>) -> Result<Vec<(&Argument, Given<'v>)>, CommandError> {
        let argument = |key: &str| {
            let known = self.arguments.iter().find(|argument| argument.name == key);
            known.ok_or_else(|| CommandError::UnknownArgument {
                command: self.id(),
                argument: shown(key).into_owned(),
                suggestion: nearest(key, self.arguments.iter().map(|argument| argument.name)).map(str::to_owned),
            })
        };
        let mut given = Vec::new();
        for (key, value) in object {
            let argument = argument(key)?;
            if !value.is_null() {
                given.push((argument, Given::One(value)));
            }
        }
        Ok(given)
    }

    fn by_position<'v>(&self, values: &'v [Value]) -> Result<Vec<(&Argument, Given<'v>)>, CommandError> {
        let mut given = Vec::new();
        let mut left = values;
        for argument in self.arguments {
            let takes_all = argument.takes == Takes::Filters && left.len() > 1;
            match left {
                words if takes_all => {
                    given.push((argument, Given::Words(words)));
                    left = &[];
                }
                [Value::Null, rest @ ..] => left = rest,
                [value, rest @ ..] => {
                    given.push((argument, Given::One(value)));
                    left = rest;
                }
                [] => break,
            }
        }
        if left.is_empty() && !values.iter().any(Value::is_object) {
            return Ok(given);
        }
        let takes = match self.arguments {
            [] => "no arguments".to_owned(),
            arguments => {
                let names: Vec<&str> = arguments.iter().map(|argument| argument.name).collect();
                format!("one object, or {} in this order", names.join(", "))
            }
        };
        Err(CommandError::Shape { command: self.id(), takes, example: self.example() })
    }

    /// A call with all arguments, as words.
    fn example(&self) -> String {
        let mut line = self.id();
        for argument in self.arguments {
            // Writing to a string can't fail.
            let _ = write!(line, " {}", argument.example);
        }
        line
    }
}

/// `docs/commands.md`.
pub fn markdown() -> String {
    let mut page = include_str!("commands.md").to_owned();
    for command in COMMANDS {
        // Writing to a string can't fail.
        let _ = write!(page, "\n## {}\n\n{}\n\n", command.id(), command.doc);
        if !command.arguments.is_empty() {
            page.push_str("| argument | takes | needed | meaning |\n|---|---|---|---|\n");
            for argument in command.arguments {
                let needed = if argument.required { "yes" } else { "no" };
                let takes = cell(&argument.takes.words());
                let _ = writeln!(page, "| `{}` | {takes} | {needed} | {} |", argument.name, cell(argument.doc));
            }
            page.push('\n');
        }
        let _ = writeln!(page, "Example: `{}`", command.example());
    }
    page
}

/// What was given for an argument.
#[derive(Clone, Copy)]
enum Given<'v> {
    One(&'v Value),
    /// All words that were left.
    Words(&'v [Value]),
}

impl Takes {
    /// The value in its own type, or what is wrong with it.
    fn check(self, given: Given<'_>) -> Result<Value, String> {
        let value = match given {
            Given::Words(words) => return filter_list(words),
            Given::One(value) => value,
        };
        let text = value.as_str();
        let checked = match self {
            Self::Text => text.filter(|text| !text.is_empty()).map(Value::from),
            Self::Filters => {
                return match value {
                    Value::Array(items) => filter_list(items),
                    Value::String(text) if text.trim().is_empty() => filter_list(&[]),
                    other => filter_list(std::slice::from_ref(other)),
                };
            }
            Self::Flag => value.as_bool().or_else(|| text?.parse().ok()).map(Value::from),
            Self::Number { min, max } => {
                number(value).filter(|number| (f64::from(min)..=f64::from(max)).contains(number)).map(|number| {
                    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between min and max")]
                    Value::from(number as u32)
                })
            }
            Self::Choice(choices) => {
                text.and_then(|text| choices.iter().find(|choice| **choice == text)).map(|&c| c.into())
            }
        };
        checked.ok_or_else(|| {
            let suggestion = match (self, text) {
                (Self::Choice(choices), Some(text)) => nearest(text, choices.iter().copied()),
                _ => None,
            };
            format!("takes {}, not {}{}", self.words(), shown(&value.to_string()), did_you_mean(suggestion))
        })
    }
}

/// A whole number, also when it is written as a text or as `17.0`.
fn number(value: &Value) -> Option<f64> {
    let number = value.as_f64().or_else(|| value.as_str()?.trim().parse().ok())?;
    (number.fract() == 0.0).then_some(number)
}

/// The texts of filters, each of which can be read.
fn filter_list(values: &[Value]) -> Result<Value, String> {
    let text = |value: &Value| {
        let text = value
            .as_str()
            .ok_or_else(|| format!("takes {}, not {}", Takes::Filters.words(), shown(&value.to_string())))?;
        let filter: Filter = text.parse().map_err(|error| format!("can't be read: {error}"))?;
        Ok(Value::from(filter.to_string()))
    };
    values.iter().map(text).collect()
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;

    fn call(name: &str, arguments: &[Value]) -> Result<CommandCall, CommandError> {
        parse(&format!("perflens.{name}"), arguments)
    }

    fn words(words: &str) -> Vec<Value> {
        words.split_whitespace().map(Value::from).collect()
    }

    #[test]
    fn an_object_and_words_are_one_call() {
        let file = || Some("src/a.rs".to_owned());
        for (name, text, object, want) in [
            (
                "openProfile",
                "cpu.pb.gz cpu",
                json!({"path": "cpu.pb.gz", "type": "cpu"}),
                CommandCall::OpenProfile { path: "cpu.pb.gz".into(), value_type: Some("cpu".to_owned()) },
            ),
            (
                "openProfile",
                "cpu.pb.gz",
                json!({"path": "cpu.pb.gz"}),
                CommandCall::OpenProfile { path: "cpu.pb.gz".into(), value_type: None },
            ),
            ("selectValueType", "", json!({}), CommandCall::SelectValueType { value_type: None }),
            (
                "setFilter",
                "fn~a label.x=b",
                json!({"filters": ["fn~a", "label.x=b"]}),
                CommandCall::SetFilter { filters: Some(vec!["fn~a".parse().unwrap(), "label.x=b".parse().unwrap()]) },
            ),
            (
                "compareWith",
                "old.pb true",
                json!({"path": "old.pb", "normalize": true}),
                CommandCall::CompareWith { path: Some("old.pb".into()), normalize: true },
            ),
            (
                "nextHotspot",
                "src/a.rs 12",
                json!({"line": 12, "file": "src/a.rs"}),
                CommandCall::NextHotspot { file: file(), line: Some(12) },
            ),
            (
                "showHotspots",
                "function 5",
                json!({"by": "function", "top": 5}),
                CommandCall::ShowHotspots { by: Some(Subject::Function), top: Some(5) },
            ),
            ("toggleHints", "hot", json!({"mode": "hot"}), CommandCall::ToggleHints { mode: Some(HintMode::Hot) }),
            ("refresh", "", json!({}), CommandCall::Refresh {}),
        ] {
            assert_eq!(call(name, &words(text)).as_ref(), Ok(&want), "{name} {text}");
            assert_eq!(call(name, &[object]).as_ref(), Ok(&want), "{name}");
        }
    }

    #[test]
    fn filters_come_as_words_or_lists_and_an_empty_text_is_none() {
        let filters = |texts: &[&str]| CommandCall::SetFilter {
            filters: Some(texts.iter().map(|text| text.parse().unwrap()).collect()),
        };
        assert_eq!(call("setFilter", &[]), Ok(CommandCall::SetFilter { filters: None }));
        assert_eq!(call("setFilter", &[json!("")]), Ok(filters(&[])));
        assert_eq!(call("setFilter", &[json!([])]), Ok(filters(&[])));
        assert_eq!(call("setFilter", &[json!({"filters": []})]), Ok(filters(&[])));
        assert_eq!(call("setFilter", &[json!(["fn=a", "fn=b"])]), Ok(filters(&["fn=a", "fn=b"])));
        assert_eq!(call("setFilter", &[json!({"filters": "fn = a b"})]), Ok(filters(&["fn=a b"])));
    }

    #[test]
    fn null_is_as_good_as_leaving_out() {
        let want = Ok(CommandCall::NextHotspot { file: None, line: Some(3) });
        assert_eq!(call("nextHotspot", &[Value::Null, json!(3.0)]), want);
        assert_eq!(call("nextHotspot", &[json!({"file": null, "line": "3"})]), want);
    }

    /// The table and the enum name the same commands and arguments.
    #[test]
    fn every_row_can_be_called_as_its_example_says_and_with_the_least() {
        for command in COMMANDS {
            let full: Vec<Value> = command.arguments.iter().map(|argument| argument.example.into()).collect();
            call(command.name, &full).unwrap();
            let least: Map<String, Value> = command
                .arguments
                .iter()
                .filter(|argument| argument.required)
                .map(|argument| (argument.name.to_owned(), argument.example.into()))
                .collect();
            call(command.name, &[least.clone().into()]).unwrap();
            for argument in command.arguments.iter().filter(|argument| argument.required) {
                let mut arguments = least.clone();
                arguments.remove(argument.name);
                let error = call(command.name, &[arguments.into()]).unwrap_err();
                assert!(
                    matches!(error, CommandError::Missing { argument: name, .. } if name == argument.name),
                    "{error}"
                );
            }
        }
    }

    /// An optional argument that the enum did not know would be lost without a word.
    #[test]
    fn every_argument_reaches_the_call() {
        for command in COMMANDS {
            let full: Vec<Value> = command.arguments.iter().map(|argument| argument.example.into()).collect();
            for (i, argument) in command.arguments.iter().enumerate().filter(|(_, argument)| !argument.required) {
                let mut without = full.clone();
                without[i] = Value::Null;
                assert_ne!(
                    call(command.name, &full),
                    call(command.name, &without),
                    "{} {}",
                    command.name,
                    argument.name
                );
            }
        }
    }

    #[test]
    fn wrong_calls_are_told_how_to_call() {
        let mut text = String::new();
        for (id, arguments) in [
            ("perflens.openProfil", json!([])),
            ("openProfile", json!([])),
            ("rust-analyzer.run", json!([])),
            ("perflens.openProfile", json!([])),
            ("perflens.openProfile", json!([""])),
            ("perflens.openProfile", json!([{"pth": "x"}])),
            ("perflens.openProfile", json!(["a", "cpu", "b"])),
            ("perflens.openProfile", json!([{"path": "x"}, "cpu"])),
            ("perflens.openProfile", json!([5])),
            ("perflens.setFilter", json!(["nonsense"])),
            ("perflens.setFilter", json!([{"filters": {"fn": "x"}}])),
            ("perflens.refresh", json!(["now"])),
            ("perflens.compareWith", json!(["a", "maybe"])),
            ("perflens.showActions", json!(["a.rs", 0])),
            ("perflens.showActions", json!(["a.rs", "x"])),
            ("perflens.showActions", json!(["a.rs", 1.5])),
            ("perflens.showActions", json!(["a.rs", 4_294_967_296_u64])),
            ("perflens.showHotspots", json!(["lines"])),
            ("perflens.toggleHints", json!(["\u{202e}"])),
        ] {
            let error = parse(id, arguments.as_array().unwrap()).unwrap_err();
            let _ = writeln!(text, "{error}");
        }
        expect![[r#"
            there is no command `perflens.openProfil`; did you mean `perflens.openProfile`?
            there is no command `openProfile`; did you mean `perflens.openProfile`?
            there is no command `rust-analyzer.run`
            perflens.openProfile needs `path`: The profile: a file, absolute or relative to the workspace folder, or an address. For example: perflens.openProfile cpu.pb.gz cpu
            perflens.openProfile: `path` takes a text, not ""
            perflens.openProfile has no argument `pth`; did you mean `path`?
            perflens.openProfile takes one object, or path, type in this order; call it as perflens.openProfile cpu.pb.gz cpu
            perflens.openProfile takes one object, or path, type in this order; call it as perflens.openProfile cpu.pb.gz cpu
            perflens.openProfile: `path` takes a text, not 5
            perflens.setFilter: `filters` can't be read: filter `nonsense` has no operator; write FIELD=VALUE, or one of != ~ !~ ^ !^ for =
            perflens.setFilter: `filters` takes filters like `fn~parse`, not {"fn":"x"}
            perflens.refresh takes no arguments; call it as perflens.refresh
            perflens.compareWith: `normalize` takes `true` or `false`, not "maybe"
            perflens.showActions: `line` takes a whole number from 1 to 2147483647, not 0
            perflens.showActions: `line` takes a whole number from 1 to 2147483647, not "x"
            perflens.showActions: `line` takes a whole number from 1 to 2147483647, not 1.5
            perflens.showActions: `line` takes a whole number from 1 to 2147483647, not 4294967296
            perflens.showHotspots: `by` takes `line` or `function`, not "lines"; did you mean `line`?
            perflens.toggleHints: `mode` takes `all`, `hot` or `off`, not "\u{202e}"
        "#]].assert_eq(&text);
    }

    #[test]
    fn ids_are_unique() {
        let mut ids: Vec<String> = COMMANDS.iter().map(Command::id).collect();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), COMMANDS.len());
    }
}
