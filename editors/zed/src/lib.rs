//! Tells Zed how to start `perflens lsp`, which an editor of its kind asks an extension for.
//!
//! What is shown is Zed's: hints, lenses, hovers, actions.

use zed_extension_api::settings::LspSettings;
use zed_extension_api::{self as zed, LanguageServerId, Result, serde_json};

/// The name in `lsp.perflens` of the settings.
const NAME: &str = "perflens";

struct Perflens;

impl zed::Extension for Perflens {
    fn new() -> Self {
        Self
    }

    fn language_server_command(&mut self, _: &LanguageServerId, worktree: &zed::Worktree) -> Result<zed::Command> {
        let binary = LspSettings::for_worktree(NAME, worktree)?.binary;
        let (path, arguments) = binary.map_or((None, None), |binary| (binary.path, binary.arguments));
        let command = path
            .or_else(|| worktree.which(NAME))
            .ok_or("there is no program `perflens` on the PATH; install it, or name it in lsp.perflens.binary.path")?;
        Ok(zed::Command {
            command,
            args: arguments.unwrap_or_else(|| vec!["lsp".to_owned()]),
            env: worktree.shell_env(),
        })
    }

    fn language_server_initialization_options(
        &mut self,
        _: &LanguageServerId,
        worktree: &zed::Worktree,
    ) -> Result<Option<serde_json::Value>> {
        Ok(LspSettings::for_worktree(NAME, worktree)?.initialization_options)
    }
}

zed::register_extension!(Perflens);
