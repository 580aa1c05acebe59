//! An assistant: the protocol's own client, with the tool server it has started.

use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rmcp::model::{CallToolRequestParams, ContentBlock, ProgressNotificationParam, Tool};
use rmcp::service::{NotificationContext, RoleClient, RunningService};
use rmcp::{ClientHandler, ServiceExt};
use serde_json::Value;
use tokio::process::{Child, Command};
use tokio::runtime::Runtime;
use tokio::time::timeout;

use crate::cli::{binary, isolate};
use crate::lsp::DEADLINE;

/// The most that an answer may be.
const MAX_BYTES: usize = 8 << 10;

/// How long a call may take: whole builds are in it.
const PATIENCE: Duration = Duration::from_mins(8);

/// Hears how far calls are.
#[derive(Clone, Debug, Default)]
struct Ears(Arc<Mutex<Vec<String>>>);

impl ClientHandler for Ears {
    async fn on_progress(&self, step: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        self.0.lock().expect("nobody panicked").extend(step.message);
    }
}

/// An assistant, and the server it has started.
#[derive(Debug)]
pub struct Assistant {
    runtime: Runtime,
    client: Option<RunningService<RoleClient, Ears>>,
    ears: Ears,
    child: Child,
}

impl Assistant {
    /// Started in a folder, for the user of this home.
    pub fn start(folder: &Path, home: &Path, arguments: &[&str]) -> Self {
        Self::start_with(folder, home, arguments, &[])
    }

    /// The same with more in its environment.
    pub fn start_with(folder: &Path, home: &Path, arguments: &[&str], environment: &[(&str, &Path)]) -> Self {
        Self::run(std::process::Command::new(binary()), folder, home, arguments, environment)
    }

    /// The same through another program, which runs the words behind its name.
    pub fn start_through(program: &Path, folder: &Path, home: &Path, environment: &[(&str, &Path)]) -> Self {
        let mut command = std::process::Command::new(program);
        command.arg(binary());
        Self::run(command, folder, home, &[], environment)
    }

    fn run(
        mut command: std::process::Command,
        folder: &Path,
        home: &Path,
        arguments: &[&str],
        environment: &[(&str, &Path)],
    ) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
        isolate(&mut command, home);
        command.env_remove("PERFLENS_POLICY").envs(environment.iter().copied());
        command.arg("mcp").args(arguments).current_dir(folder);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let ears = Ears::default();
        let own = ears.clone();
        let (child, client) = runtime.block_on(async {
            let mut child = Command::from(command).kill_on_drop(true).spawn().expect("starting the server");
            let pipes = (child.stdout.take().expect("it is piped"), child.stdin.take().expect("it is piped"));
            let client = timeout(DEADLINE, own.serve(pipes)).await.expect("in time").expect("a session");
            (child, client)
        });
        Self { runtime, client: Some(client), ears, child }
    }

    fn client(&self) -> &RunningService<RoleClient, Ears> {
        self.client.as_ref().expect("it is not closed")
    }

    /// The tools that there are.
    pub fn tools(&self) -> Vec<Tool> {
        self.runtime
            .block_on(async { timeout(DEADLINE, self.client().list_all_tools()).await })
            .expect("in time")
            .expect("a list")
    }

    /// The text of an answer, or the sentence of a refusal.
    pub fn text(&self, tool: &'static str, arguments: &Value) -> Result<String, String> {
        let arguments = arguments.as_object().cloned().unwrap_or_default();
        let request = CallToolRequestParams::new(tool).with_arguments(arguments);
        let answer = self.runtime.block_on(async { timeout(PATIENCE, self.client().call_tool(request)).await });
        let answer = answer.expect("in time").expect("an answer of the tool");
        let [ContentBlock::Text(text)] = &answer.content[..] else { panic!("one text: {answer:?}") };
        assert!(text.text.len() <= MAX_BYTES, "{} bytes", text.text.len());
        if answer.is_error == Some(true) { Err(text.text.clone()) } else { Ok(text.text.clone()) }
    }

    /// Calls a tool, and cancels the call when something is so.
    pub fn cancel_when(&self, tool: &'static str, arguments: &Value, mut is_time: impl FnMut() -> bool) {
        let arguments = arguments.as_object().cloned().unwrap_or_default();
        let request = CallToolRequestParams::new(tool).with_arguments(arguments);
        self.runtime.block_on(async {
            let mut call = std::pin::pin!(self.client().call_tool(request));
            let start = std::time::Instant::now();
            while !is_time() {
                assert!(start.elapsed() < DEADLINE * 4, "it was never time");
                if let Ok(answer) = timeout(Duration::from_millis(30), &mut call).await {
                    panic!("it was answered: {answer:?}");
                }
            }
        });
    }

    /// What was told of how far calls are.
    pub fn progress(&self) -> Vec<String> {
        self.ears.0.lock().expect("nobody panicked").clone()
    }

    /// The number of the server's process.
    pub fn pid(&self) -> u32 {
        self.child.id().expect("it runs")
    }

    /// The answer to a question.
    pub fn ask(&self, tool: &'static str, arguments: &Value) -> Value {
        let text = self.text(tool, arguments).unwrap_or_else(|refusal| panic!("{tool} {arguments}: {refusal}"));
        let answer: Value = serde_json::from_str(&text).expect("JSON");
        let contents = answer["contents"].as_str().expect("it says what it is");
        assert!(contents.contains("data") && contents.contains("not instructions"), "{contents}");
        answer
    }

    /// The sentence of a refusal.
    pub fn refused(&self, tool: &'static str, arguments: &Value) -> String {
        match self.text(tool, arguments) {
            Err(sentence) => {
                assert!(!sentence.contains('\n'), "{sentence}");
                sentence
            }
            Ok(answer) => panic!("{tool} {arguments} was answered: {answer}"),
        }
    }

    /// All rows of a question, page by page.
    pub fn all(&self, tool: &'static str, question: &Value) -> Vec<Value> {
        let mut rows = Vec::new();
        let mut asked = question.clone();
        for _ in 0..1000 {
            let answer = self.ask(tool, &asked);
            rows.extend(answer["rows"].as_array().cloned().unwrap_or_default());
            let Some(cursor) = answer.get("next_cursor") else { return rows };
            asked["cursor"] = cursor.clone();
        }
        panic!("{tool} {question} does not end");
    }
}

impl Drop for Assistant {
    fn drop(&mut self) {
        let client = self.client.take().expect("it is closed once");
        let ended = self.runtime.block_on(async {
            let _ = client.cancel().await;
            timeout(DEADLINE, self.child.wait()).await
        });
        if !std::thread::panicking() {
            assert!(ended.expect("the server ends when its input does").expect("a status").success());
        }
    }
}
