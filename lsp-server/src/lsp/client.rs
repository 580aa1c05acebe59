//! What the server asks and tells the editor by itself.
//!
//! Every call runs detached: awaiting the editor inside a notification would stop the order
//! of messages, and dropping a question half-way makes the library panic when the answer
//! comes. Whoever wants an answer waits for a channel, with a deadline.

use std::time::Duration;

use lsp_types::notification::{Notification, Progress};
use lsp_types::request::{Request, WorkDoneProgressCreate};
use lsp_types::{
    ConfigurationItem, MessageType, NumberOrString, ProgressParams, ProgressParamsValue, ShowDocumentParams, Url,
    WorkDoneProgress, WorkDoneProgressBegin, WorkDoneProgressCreateParams, WorkDoneProgressEnd, WorkDoneProgressReport,
};
use serde_json::Value;
use tokio::sync::oneshot;
use tower_lsp::Client;

/// The editor.
#[derive(Clone, Debug)]
pub struct Editor {
    client: Client,
}

/// `perflens/changed`: what extension requests answer may be another thing now.
enum Changed {}

impl Notification for Changed {
    type Params = Value;
    const METHOD: &'static str = "perflens/changed";
}

/// The editor has no dialogs, or nobody answered for long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CannotAsk;

/// How long an answer is waited for. Some editors queue dialogs for minutes.
const PATIENCE: Duration = Duration::from_mins(2);

impl Editor {
    /// Wraps the library's handle.
    pub fn new(client: Client) -> Self {
        Self { client }
    }

    /// Asks, without waiting; the channel gets the answer, or is closed when there is none.
    fn ask<R>(&self, parameters: R::Params) -> oneshot::Receiver<R::Result>
    where
        R: Request + 'static,
        R::Params: Send + 'static,
        R::Result: Send + 'static,
    {
        let (answer, wait) = oneshot::channel();
        let client = self.client.clone();
        tokio::spawn(async move {
            match client.send_request::<R>(parameters).await {
                Ok(result) => drop(answer.send(result)),
                Err(error) => tracing::debug!("the editor answered {} with: {error}", R::METHOD),
            }
        });
        wait
    }

    fn tell<N>(&self, parameters: N::Params)
    where
        N: Notification + 'static,
        N::Params: Send + 'static,
    {
        let client = self.client.clone();
        tokio::spawn(async move { client.send_notification::<N>(parameters).await });
    }

    async fn patiently<T>(wait: oneshot::Receiver<T>) -> Option<T> {
        tokio::time::timeout(PATIENCE, wait).await.ok()?.ok()
    }

    /// Shows a sentence to the user.
    pub fn say(&self, kind: MessageType, sentence: impl Into<String>) {
        let parameters = lsp_types::ShowMessageParams { typ: kind, message: sentence.into() };
        self.tell::<lsp_types::notification::ShowMessage>(parameters);
    }

    /// Tells a client of ours that what it has asked for may have changed.
    pub fn tell_changed(&self) {
        self.tell::<Changed>(serde_json::json!({}));
    }

    /// Offers choices; the one taken, if any. Slow: a person decides.
    pub async fn choose(&self, sentence: String, choices: Vec<String>) -> Result<Option<String>, CannotAsk> {
        let actions = choices
            .into_iter()
            .map(|title| lsp_types::MessageActionItem { title, properties: std::collections::HashMap::default() })
            .collect();
        let parameters =
            lsp_types::ShowMessageRequestParams { typ: MessageType::INFO, message: sentence, actions: Some(actions) };
        let wait = self.ask::<lsp_types::request::ShowMessageRequest>(parameters);
        let answer = Self::patiently(wait).await.ok_or(CannotAsk)?;
        Ok(answer.map(|action| action.title))
    }

    /// The editor's settings for us in a folder.
    pub async fn settings(&self, folder: Option<Url>) -> Option<Value> {
        let item = ConfigurationItem { scope_uri: folder, section: Some("perflens".to_owned()) };
        let parameters = lsp_types::ConfigurationParams { items: vec![item] };
        let wait = self.ask::<lsp_types::request::WorkspaceConfiguration>(parameters);
        Self::patiently(wait).await?.into_iter().next()
    }

    /// Asks to be told when settings change.
    pub fn watch_settings(&self) {
        let registration = lsp_types::Registration {
            id: "perflens.settings".to_owned(),
            method: "workspace/didChangeConfiguration".to_owned(),
            register_options: Some(serde_json::json!({ "section": "perflens" })),
        };
        drop(self.ask::<lsp_types::request::RegisterCapability>(lsp_types::RegistrationParams {
            registrations: vec![registration],
        }));
    }

    /// Has hints asked for again.
    pub async fn refresh_hints(&self) {
        let _ = Self::patiently(self.ask::<lsp_types::request::InlayHintRefreshRequest>(())).await;
    }

    /// Has lenses asked for again.
    pub async fn refresh_lenses(&self) {
        let _ = Self::patiently(self.ask::<lsp_types::request::CodeLensRefresh>(())).await;
    }

    /// Shows a place; whether the editor did.
    pub async fn show(&self, uri: Url, selection: lsp_types::Range) -> bool {
        let parameters =
            ShowDocumentParams { uri, external: Some(false), take_focus: Some(true), selection: Some(selection) };
        let wait = self.ask::<lsp_types::request::ShowDocument>(parameters);
        Self::patiently(wait).await.is_some_and(|result| result.success)
    }

    /// Opens an address outside of the editor; whether it did.
    pub async fn open(&self, uri: Url) -> bool {
        let parameters = ShowDocumentParams { uri, external: Some(true), take_focus: Some(true), selection: None };
        let wait = self.ask::<lsp_types::request::ShowDocument>(parameters);
        Self::patiently(wait).await.is_some_and(|result| result.success)
    }

    /// Replaces the diagnostics of a document.
    pub fn publish(&self, uri: Url, diagnostics: Vec<lsp_types::Diagnostic>, version: Option<i32>) {
        let parameters = lsp_types::PublishDiagnosticsParams { uri, diagnostics, version };
        self.tell::<lsp_types::notification::PublishDiagnostics>(parameters);
    }

    /// Starts showing progress under a name; what was started must be ended.
    pub async fn begin_progress(&self, token: &str, title: String) -> bool {
        let token = NumberOrString::String(token.to_owned());
        let create = WorkDoneProgressCreateParams { token: token.clone() };
        if Self::patiently(self.ask::<WorkDoneProgressCreate>(create)).await.is_none() {
            return false;
        }
        let begin = WorkDoneProgressBegin { title, cancellable: Some(true), message: None, percentage: None };
        self.progress(token, WorkDoneProgress::Begin(begin)).await;
        true
    }

    /// Says how far it is.
    pub async fn report_progress(&self, token: &str, message: String) {
        let report = WorkDoneProgressReport { cancellable: Some(true), message: Some(message), percentage: None };
        self.progress(NumberOrString::String(token.to_owned()), WorkDoneProgress::Report(report)).await;
    }

    /// Ends progress.
    pub async fn end_progress(&self, token: &str, message: Option<String>) {
        let end = WorkDoneProgressEnd { message };
        self.progress(NumberOrString::String(token.to_owned()), WorkDoneProgress::End(end)).await;
    }

    /// Awaited, so that the steps of one token keep their order.
    async fn progress(&self, token: NumberOrString, step: WorkDoneProgress) {
        let value = ProgressParamsValue::WorkDone(step);
        self.client.send_notification::<Progress>(ProgressParams { token, value }).await;
    }
}
