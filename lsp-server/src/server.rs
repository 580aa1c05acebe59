//! The protocol's requests and notifications: each takes what it needs from the session and
//! hands it to its handler. Reads like a table of contents.
//!
//! Two laws of [`transport`](crate::transport) hold here: notifications finish without
//! waiting, and requests take their snapshot before their first await.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use lsp_types::{
    CallHierarchyIncomingCall, CallHierarchyIncomingCallsParams, CallHierarchyItem, CallHierarchyOutgoingCall,
    CallHierarchyOutgoingCallsParams, CallHierarchyPrepareParams, CallHierarchyServerCapability, CodeActionKind,
    CodeActionOrCommand, CodeActionParams, CodeActionProviderCapability, CodeActionResponse, CodeLens, CodeLensOptions,
    CodeLensParams, DidChangeConfigurationParams, DidChangeTextDocumentParams, DidChangeWorkspaceFoldersParams,
    DidCloseTextDocumentParams, DidOpenTextDocumentParams, ExecuteCommandOptions, ExecuteCommandParams, Hover,
    HoverParams, HoverProviderCapability, InitializeParams, InitializeResult, InitializedParams, InlayHint,
    InlayHintOptions, InlayHintParams, InlayHintServerCapabilities, MessageType, OneOf, ServerCapabilities, ServerInfo,
    TextDocumentSyncCapability, TextDocumentSyncKind, TextDocumentSyncOptions, Url, WorkspaceFoldersServerCapabilities,
    WorkspaceServerCapabilities,
};
use profiler_core::view::flame;
use serde_json::{Value, json};
use tower_lsp::jsonrpc::{Error, Result};
use tower_lsp::{ClientSocket, LanguageServer, LspService};

use crate::commands::{COMMANDS, CommandCall, Subject};
use crate::extensions::{EXTENSIONS, VERSION};
use crate::handlers::ext::{
    Callers, CallersParams, FileCost, Flamegraph, FlamegraphParams, Heat, HeatParams, HotspotsParams, Package,
    PackagesParams, Query,
};
use crate::handlers::hints::HintData;
use crate::handlers::hotspots::Hotspot;
use crate::handlers::status::Status;
use crate::handlers::{actions, calls, commands, diagnostics, ext, hints, hover, lenses, status};
use crate::lsp::client::Editor;
use crate::session::Session;
use crate::state::Snapshot;
use crate::state::capabilities::Capabilities;
use crate::state::documents::file_path;
use crate::state::folder::Shown;
use crate::state::view::View;

/// An editor that can't be told to ask again waits this long for its first costs.
const FIRST_ANSWER: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// The server of one session.
pub struct Server {
    session: Arc<Session>,
}

/// The service for the transport, with the session it serves.
pub fn service() -> (LspService<Server>, ClientSocket, Arc<Session>) {
    let slot = Arc::new(std::sync::OnceLock::new());
    let filled = Arc::clone(&slot);
    let (service, socket) = LspService::build(move |client| {
        let session = Session::new(Editor::new(client));
        let _ = filled.set(Arc::clone(&session));
        Server { session }
    })
    .custom_method("perflens/heat", Server::heat)
    .custom_method("perflens/files", Server::files)
    .custom_method("perflens/hotspots", Server::hotspots)
    .custom_method("perflens/packages", Server::packages)
    .custom_method("perflens/flamegraph", Server::flamegraph)
    .custom_method("perflens/callers", Server::callers)
    .custom_method("perflens/status", Server::status)
    .custom_method("perflens/query", Server::query)
    .custom_method("window/workDoneProgress/cancel", Server::cancel_progress)
    .custom_method("$/setTrace", Server::set_trace)
    .finish();
    let session = Arc::clone(slot.get_or_init(|| unreachable!("the service makes its server at once")));
    (service, socket, session)
}

#[expect(clippy::unused_async, reason = "the library registers async methods only")]
impl Server {
    fn snapshot(&self, uri: &Url) -> Option<Snapshot> {
        self.session.state().snapshot(uri)
    }

    /// What is shown for an item of a call hierarchy.
    fn view_of(&self, item: &CallHierarchyItem) -> Option<Arc<View>> {
        let state = self.session.state();
        let own = file_path(&item.uri).and_then(|path| state.view_of(&path)?.view().cloned());
        own.or_else(|| state.latest_folder()?.view().cloned())
    }

    async fn heat(&self, parameters: HeatParams) -> Result<Heat> {
        let snapshot = self.snapshot(&parameters.text_document.uri);
        Ok(snapshot.map(|snapshot| ext::heat(&snapshot)).unwrap_or_default())
    }

    async fn hotspots(&self, parameters: HotspotsParams) -> Result<Vec<Hotspot>> {
        Ok(ext::hotspots(&self.session.state(), &parameters))
    }

    async fn files(&self, _: Value) -> Result<Vec<FileCost>> {
        Ok(ext::files(&self.session.state()))
    }

    async fn packages(&self, parameters: PackagesParams) -> Result<Vec<Package>> {
        Ok(ext::packages(&self.session.state(), &parameters))
    }

    async fn flamegraph(&self, parameters: FlamegraphParams) -> Result<Option<Flamegraph>> {
        let view = self.session.state().latest_folder().and_then(|folder| folder.view().cloned());
        let Some(view) = view else { return Ok(None) };
        let samples = Arc::clone(&view);
        let flame = crate::handlers::on_pool(move |cancel| match &samples.comparison {
            Some(comparison) => flame::change_flame(&samples.analysis, &comparison.compared, parameters.top(), cancel),
            None => flame::flame(&samples.analysis, parameters.top(), cancel),
        })
        .await?;
        let flame = flame.map_err(|_| Error::request_cancelled())?;
        Ok(Some(ext::flamegraph(&self.session.state(), &view, flame)))
    }

    async fn callers(&self, parameters: CallersParams) -> Result<Callers> {
        let Some(snapshot) = self.snapshot(&parameters.text_document.uri) else { return Ok(Callers::default()) };
        if snapshot.view.is_none() {
            return Ok(Callers::default());
        }
        let of = parameters.of.unwrap_or(Subject::Line);
        commands::callers(&self.session, snapshot, parameters.line, of).await
    }

    async fn status(&self, _: Value) -> Result<Vec<Status>> {
        Ok(status::all(&self.session.state()))
    }

    async fn query(&self, _: Value) -> Result<Query> {
        Ok(ext::query(&self.session.state()))
    }

    async fn cancel_progress(&self, parameters: Value) {
        if let Some(token) = parameters["token"].as_str() {
            self.session.cancel_progress(token);
        }
    }

    /// Editors announce how much they want to see in their log; ours goes to stderr.
    async fn set_trace(&self, _: Value) {}
}

#[tower_lsp::async_trait]
impl LanguageServer for Server {
    async fn initialize(&self, _: InitializeParams) -> Result<InitializeResult> {
        // The transport gave the raw parameters to the session: these have lost some.
        let encoding = self.session.state().capabilities.encoding;
        let methods: Vec<&str> = EXTENSIONS.iter().map(|extension| extension.method).collect();
        Ok(InitializeResult {
            server_info: Some(ServerInfo {
                name: "perflens".to_owned(),
                version: Some(env!("CARGO_PKG_VERSION").to_owned()),
            }),
            capabilities: ServerCapabilities {
                position_encoding: Some(encoding.kind()),
                text_document_sync: Some(TextDocumentSyncCapability::Options(TextDocumentSyncOptions {
                    open_close: Some(true),
                    change: Some(TextDocumentSyncKind::INCREMENTAL),
                    ..TextDocumentSyncOptions::default()
                })),
                inlay_hint_provider: Some(OneOf::Right(InlayHintServerCapabilities::Options(InlayHintOptions {
                    resolve_provider: Some(true),
                    ..InlayHintOptions::default()
                }))),
                code_lens_provider: Some(CodeLensOptions { resolve_provider: Some(false) }),
                hover_provider: Some(HoverProviderCapability::Simple(true)),
                code_action_provider: Some(CodeActionProviderCapability::Simple(true)),
                call_hierarchy_provider: Some(CallHierarchyServerCapability::Simple(true)),
                execute_command_provider: Some(ExecuteCommandOptions {
                    commands: COMMANDS.iter().map(crate::commands::Command::id).collect(),
                    ..ExecuteCommandOptions::default()
                }),
                workspace: Some(WorkspaceServerCapabilities {
                    workspace_folders: Some(WorkspaceFoldersServerCapabilities {
                        supported: Some(true),
                        change_notifications: Some(OneOf::Left(true)),
                    }),
                    file_operations: None,
                }),
                experimental: Some(json!({ "perflens": { "version": VERSION, "methods": methods } })),
                ..ServerCapabilities::default()
            },
        })
    }

    async fn initialized(&self, _: InitializedParams) {
        self.session.start();
    }

    async fn shutdown(&self) -> Result<()> {
        Ok(())
    }

    async fn did_open(&self, parameters: DidOpenTextDocumentParams) {
        // Some editors forget to say that they are ready.
        self.session.start();
        let document = parameters.text_document;
        self.session.state().open_document(document.uri.clone(), document.version, document.text);
        self.session.document_opened(&document.uri);
        self.session.document_changed(&document.uri);
        diagnostics::publish(&self.session);
    }

    async fn did_change(&self, parameters: DidChangeTextDocumentParams) {
        self.session.edited();
        let identifier = parameters.text_document;
        let is_open = {
            let mut state = self.session.state();
            let encoding = state.capabilities.encoding;
            state.documents.change(&identifier.uri, identifier.version, parameters.content_changes, encoding)
        };
        if is_open {
            self.session.document_changed(&identifier.uri);
        } else {
            tracing::warn!("a change came for {}, which is not open", identifier.uri);
        }
    }

    async fn did_close(&self, parameters: DidCloseTextDocumentParams) {
        let uri = parameters.text_document.uri;
        self.session.state().documents.close(&uri);
        if let Some(path) = file_path(&uri) {
            self.session.document_closed(&path);
        }
    }

    async fn did_save(&self, _: lsp_types::DidSaveTextDocumentParams) {}

    async fn did_change_configuration(&self, parameters: DidChangeConfigurationParams) {
        self.session.settings_changed(&parameters.settings);
    }

    async fn did_change_watched_files(&self, _: lsp_types::DidChangeWatchedFilesParams) {}

    async fn did_change_workspace_folders(&self, parameters: DidChangeWorkspaceFoldersParams) {
        let added: Vec<PathBuf> = {
            let mut state = self.session.state();
            for folder in parameters.event.removed {
                if let Some(path) = file_path(&folder.uri) {
                    state.remove_folder(&path);
                }
            }
            let new = parameters.event.added.iter().filter_map(|folder| file_path(&folder.uri));
            new.filter(|path| path.is_dir() && state.add_folder(path.clone())).collect()
        };
        self.session.folders_added(&added);
    }

    async fn inlay_hint(&self, parameters: InlayHintParams) -> Result<Option<Vec<InlayHint>>> {
        self.settled(&parameters.text_document.uri, |can| can.refreshes_hints).await;
        let snapshot = self.snapshot(&parameters.text_document.uri);
        Ok(Some(snapshot.map(|snapshot| hints::hints(&snapshot, parameters.range)).unwrap_or_default()))
    }

    async fn inlay_hint_resolve(&self, hint: InlayHint) -> Result<InlayHint> {
        let data: Option<HintData> = hint.data.clone().and_then(|data| serde_json::from_value(data).ok());
        let Some(data) = data else { return Ok(hint) };
        let Some(snapshot) = self.snapshot(&data.uri) else { return Ok(hint) };
        crate::handlers::on_pool(move |cancel| hints::resolve(hint, &data, &snapshot, cancel)).await
    }

    async fn code_lens(&self, parameters: CodeLensParams) -> Result<Option<Vec<CodeLens>>> {
        self.settled(&parameters.text_document.uri, |can| can.refreshes_lenses).await;
        let snapshot = self.snapshot(&parameters.text_document.uri);
        Ok(Some(snapshot.map(|snapshot| lenses::lenses(&snapshot)).unwrap_or_default()))
    }

    async fn hover(&self, parameters: HoverParams) -> Result<Option<Hover>> {
        let at = parameters.text_document_position_params;
        let Some(snapshot) = self.snapshot(&at.text_document.uri) else { return Ok(None) };
        crate::handlers::on_pool(move |cancel| hover::hover(&snapshot, at.position, cancel)).await
    }

    async fn code_action(&self, parameters: CodeActionParams) -> Result<Option<CodeActionResponse>> {
        // Ours have no kind: an editor that asks for certain kinds wants none of them.
        if parameters.context.only.is_some_and(|only| !only.contains(&CodeActionKind::EMPTY)) {
            return Ok(Some(Vec::new()));
        }
        let (snapshot, offers) = {
            let state = self.session.state();
            (state.snapshot(&parameters.text_document.uri), state.offers.clone())
        };
        let here = snapshot.map(|snapshot| actions::actions(&snapshot, parameters.range)).unwrap_or_default();
        Ok(Some(offers.iter().cloned().map(CodeActionOrCommand::Command).chain(here).collect()))
    }

    async fn prepare_call_hierarchy(
        &self,
        parameters: CallHierarchyPrepareParams,
    ) -> Result<Option<Vec<CallHierarchyItem>>> {
        let at = parameters.text_document_position_params;
        let state = self.session.state();
        Ok(state.snapshot(&at.text_document.uri).and_then(|snapshot| calls::prepare(&snapshot, &state, at.position)))
    }

    async fn incoming_calls(
        &self,
        parameters: CallHierarchyIncomingCallsParams,
    ) -> Result<Option<Vec<CallHierarchyIncomingCall>>> {
        let item = parameters.item;
        let Some(view) = self.view_of(&item) else { return Ok(None) };
        let samples = Arc::clone(&view);
        let found = crate::handlers::on_pool(move |cancel| calls::calls(&samples, &item, cancel)).await?;
        Ok(found.map(|found| calls::incoming(&view, &self.session.state(), &found)))
    }

    async fn outgoing_calls(
        &self,
        parameters: CallHierarchyOutgoingCallsParams,
    ) -> Result<Option<Vec<CallHierarchyOutgoingCall>>> {
        let item = parameters.item;
        let Some(view) = self.view_of(&item) else { return Ok(None) };
        let (samples, asked) = (Arc::clone(&view), item.clone());
        let found = crate::handlers::on_pool(move |cancel| calls::calls(&samples, &asked, cancel)).await?;
        Ok(found.map(|found| calls::outgoing(&view, &self.session.state(), &item, &found)))
    }

    async fn execute_command(&self, parameters: ExecuteCommandParams) -> Result<Option<Value>> {
        let call = crate::commands::parse(&parameters.command, &parameters.arguments)
            .map_err(|error| crate::handlers::invalid(error.to_string()));
        let is_question = call.as_ref().is_ok_and(CommandCall::is_question);
        let result = match call {
            Ok(call) => commands::run(&self.session, call).await,
            Err(error) => Err(error),
        };
        // Editors show results and errors of commands badly or not at all.
        match &result {
            Err(Error { message, .. }) => self.session.editor.say(MessageType::WARNING, format!("perflens: {message}")),
            Ok(result) if is_question && !self.session.state().capabilities.shows_answers => {
                if let Some(words) = commands::in_words(result) {
                    self.session.editor.say(MessageType::INFO, words);
                }
            }
            Ok(_) => {}
        }
        result.map(Some)
    }
}

impl Server {
    /// Waits while the first profile for a document is being opened, where the editor asks once
    /// and can't be told to ask again. What it then gets is of the document as it is by then.
    async fn settled(&self, uri: &Url, can_be_told: fn(&Capabilities) -> bool) {
        let wait = async {
            while self.is_opening(uri, can_be_told) {
                tokio::time::sleep(LOOK_EVERY).await;
            }
        };
        let _ = tokio::time::timeout(FIRST_ANSWER, wait).await;
    }

    fn is_opening(&self, uri: &Url, can_be_told: fn(&Capabilities) -> bool) -> bool {
        let state = self.session.state();
        let Some(document) = state.documents.get(uri) else { return false };
        let is_loading = || {
            let folder = state.view_of(&document.path);
            folder.is_some_and(|folder| matches!(folder.shown, Shown::Loading { .. }))
        };
        !can_be_told(&state.capabilities) && (!self.session.has_settings.load(Ordering::SeqCst) || is_loading())
    }
}
