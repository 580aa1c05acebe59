//! What each request answers, one file per kind. Handlers get a snapshot, compute, and return
//! protocol types; they never wait for the editor.
//!
//! Everything asked for while typing (hints, lenses, code actions) is looked up in indexes and
//! answered at once. What looks through samples (hovers, callers) runs on the blocking pool,
//! with a flag that is tripped when nobody wants the answer any more.

pub mod actions;
mod again;
pub(crate) mod bases;
pub mod calls;
pub mod commands;
pub mod copy;
pub mod diagnostics;
pub mod ext;
mod filters;
pub mod hints;
pub mod hotspots;
pub mod hover;
pub mod lenses;
mod matches;
pub mod places;
mod push;
pub mod received;
mod remote;
pub mod status;

use profiler_core::cancel::CancelFlag;
use profiler_core::view::hint::{Mode, Settings};
use profiler_core::view::label::{Glyphs, Style};
use tower_lsp::jsonrpc::{Error, ErrorCode};

use crate::config::{Config, HintMode};

/// How hints are made; `None` when they are off.
fn settings(config: &Config) -> Option<Settings> {
    let mode = match config.hints.mode {
        HintMode::All => Mode::All,
        HintMode::Hot => Mode::Hot,
        HintMode::Off => return None,
    };
    Some(Settings { mode, ..base_settings(config) })
}

/// How hints and lenses are made, whatever is shown of hints.
fn base_settings(config: &Config) -> Settings {
    Settings {
        min_basis_points: basis_points(config.hints.min_share.get()),
        max_per_file: usize::try_from(config.hints.per_file.get()).unwrap_or(usize::MAX),
        mode: Mode::All,
        style: style(config),
    }
}

fn style(config: &Config) -> Style {
    let glyphs = match config.hints.glyphs {
        crate::config::Glyphs::Unicode => Glyphs::Unicode,
        crate::config::Glyphs::Ascii => Glyphs::Ascii,
    };
    Style { glyphs, has_lead: config.hints.lead }
}

/// From percent, 0 to 100, to hundredths of a percent.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is from 0 to 10 000")]
fn basis_points(percent: f64) -> u32 {
    (percent * 100.0).round() as u32
}

/// Trips a flag when a handler is dropped: its request was cancelled, so what runs for it on
/// the pool is for nobody.
struct CancelOnDrop(CancelFlag);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// Runs slow work on the blocking pool.
pub async fn on_pool<T: Send + 'static>(work: impl FnOnce(&CancelFlag) -> T + Send + 'static) -> Result<T, Error> {
    let guard = CancelOnDrop(CancelFlag::new());
    let flag = guard.0.clone();
    let result = tokio::task::spawn_blocking(move || work(&flag)).await;
    drop(guard);
    result.map_err(|_| Error::internal_error())
}

/// The parameters of a request make no sense; the sentence says which and why.
pub fn invalid(sentence: impl Into<String>) -> Error {
    Error { code: ErrorCode::InvalidParams, message: sentence.into().into(), data: None }
}
