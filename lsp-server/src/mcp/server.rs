//! The protocol: lists tools, calls them on the blocking pool, writes each call into the journal.

use std::sync::Arc;

use profiler_core::cancel::CancelFlag;
use profiler_core::view::data::shown_within;
use rmcp::ErrorData;
use rmcp::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, ListToolsResult,
    PaginatedRequestParams, ProgressNotificationParam, ServerCapabilities, ServerConfig, Tool, ToolAnnotations,
};
use rmcp::service::{RequestContext, RoleServer};
use tokio::sync::mpsc;

use super::Refusal;
use super::arguments::Object;
use super::desk::Desk;
use super::journal::Call;
use super::tools::{self, Entry};
use super::turn::Turn;
use crate::nearest::one_of;

/// Most characters of a sentence about what is wrong.
const MAX_SENTENCE: usize = 1500;

/// Most characters of a word about progress, and how many of them may wait.
const MAX_PROGRESS: usize = 200;
const QUEUE: usize = 8;

/// What an assistant is told before anything else.
const INSTRUCTIONS: &str = "Costs of the lines of code in this workspace, measured by a profiler: what the user's editor \
    shows, profile files, or recordings. Start with `overview`. Values are exact integers in the unit that the answer \
    names. Where an answer has `next_cursor`, it goes on. Lines are of the text that was measured; `stale` says when that \
    is not the text on disk. To make code faster: `record` a test or benchmark that runs it, change the code, `verify`.";

/// The server.
#[derive(Clone, Debug)]
pub(super) struct Server {
    desk: Arc<Desk>,
    tools: Arc<Vec<Entry>>,
}

impl Server {
    pub(super) fn new(desk: Arc<Desk>) -> Self {
        let is_offered = |tool: &Entry| !(tool.acts && desk.is_read_only());
        let tools = tools::all().into_iter().filter(is_offered).collect();
        Self { desk, tools: Arc::new(tools) }
    }

    /// Answers a call: the text, or one sentence.
    fn answer(&self, client: &str, name: &str, arguments: &Object, turn: &Turn) -> Result<String, String> {
        let result = self.page(name, arguments, turn);
        let answer = match &result {
            Ok((text, _)) => Ok(text.clone()),
            Err(refusal) => {
                let sentence = self.desk.private.clean(&refusal.to_string());
                Err(shown_within(&sentence, MAX_SENTENCE).into_owned())
            }
        };
        self.desk.journal.note(&Call {
            workspace: &self.desk.workspace(),
            client: &shown_within(client, 80),
            tool: &shown_within(name, 80),
            profile: result.as_ref().ok().and_then(|(_, profile)| profile.as_deref()),
            outcome: result.as_ref().map_or_else(Refusal::outcome, |_| "ok"),
            bytes: answer.as_ref().map_or_else(String::len, String::len),
        });
        answer
    }

    fn page(&self, name: &str, arguments: &Object, turn: &Turn) -> Result<(String, Option<String>), Refusal> {
        let tool = self.tools.iter().find(|tool| tool.name == name).ok_or_else(|| {
            let names: Vec<&str> = self.tools.iter().map(|tool| tool.name).collect();
            Refusal::Arguments(format!("there is no tool `{name}`; there are {}", one_of(&names)))
        })?;
        let page = tool.call(&self.desk, arguments, turn)?;
        Ok((page.text()?, page.profile_id().map(str::to_owned)))
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("perflens", env!("CARGO_PKG_VERSION")))
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tool = |tool: &Entry| {
            let hints = ToolAnnotations::new().read_only(!tool.acts).destructive(false).idempotent(!tool.acts);
            Tool::new(tool.name, tool.description, Arc::new(tool.schema.clone()))
                .with_title(tool.title)
                .with_annotations(hints.open_world(false))
        };
        Ok(ListToolsResult::with_all_items(self.tools.iter().map(tool).collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let client = context.client_info().map(|client| client.name).unwrap_or_default();
        let token = context.meta.get_progress_token();
        let (progress, mut told) = mpsc::channel(QUEUE);
        let cancel = CancelFlag::new();
        let (server, turn) = (self.clone(), Turn::new(cancel.clone(), progress));
        let mut work = tokio::task::spawn_blocking(move || {
            let arguments = request.arguments.unwrap_or_default();
            server.answer(&client, &request.name, &arguments, &turn)
        });
        let mut steps = 0.0;
        let answer = loop {
            tokio::select! {
                answer = &mut work => break answer,
                () = context.ct.cancelled() => {
                    cancel.cancel();
                    return Err(ErrorData::internal_error("cancelled", None));
                }
                Some(how_far) = told.recv() => {
                    let Some(token) = &token else { continue };
                    steps += 1.0;
                    let step = ProgressNotificationParam::new(token.clone(), steps)
                        .with_message(shown_within(&self.desk.private.clean(&how_far), MAX_PROGRESS));
                    // Who can't be told does not wait either.
                    let _ = context.peer.notify_progress(step).await;
                }
            }
        };
        let result = match answer {
            Ok(Ok(text)) => CallToolResult::success(vec![ContentBlock::text(text)]),
            Ok(Err(sentence)) => CallToolResult::error(vec![ContentBlock::text(sentence)]),
            // Its panic is in the log.
            Err(_) => CallToolResult::error(vec![ContentBlock::text("the tool failed inside perflens")]),
        };
        Ok(result.into())
    }
}
