//! Signing in, whoever asks: the command line, or an editor.

use std::process::{Command, Stdio};

use oauth2::StandardDeviceAuthorizationResponse;
use url::Url;

use super::callback::Callback;
use super::oauth::{Endpoints, OUT_OF_BAND, Oauth};
use super::store::Grant;
use crate::source::{Connection, SourceError};

/// How somebody signs in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// A browser on this machine, which comes back to a port of it.
    Browser {
        /// The port; 0 is any.
        port: u16,
    },
    /// A browser anywhere; the code is carried by hand.
    Paste,
    /// Another device.
    Device,
}

/// Whom to show what, and whom to ask.
pub trait Asks: Sync {
    /// Shows what to do next.
    fn show(&self, words: &str);

    /// Takes a code. Blocks.
    fn code(&self) -> Result<String, SourceError>;
}

/// Signs in to the server of a connection. Dropped, it is as if nothing had been begun.
pub async fn sign_in(
    connection: &Connection,
    client_id: String,
    way: Way,
    asks: &impl Asks,
) -> Result<Grant, SourceError> {
    let oauth = Oauth::new(connection, Endpoints::discover(connection).await?, client_id);
    match way {
        Way::Browser { port } => {
            let callback = Callback::listen(port).await?;
            let pending = oauth.begin(&callback.redirect())?;
            let opened = open_browser(&pending.url);
            let head = if opened { "sign in in the browser; or open" } else { "open this in a browser to sign in:" };
            asks.show(&format!("{head} {}", pending.url));
            let code = callback.code(&pending.state).await?;
            oauth.finish(pending, code).await
        }
        Way::Paste => {
            let pending = oauth.begin(OUT_OF_BAND)?;
            asks.show(&format!("open this in a browser to sign in, then enter the code it shows: {}", pending.url));
            let code = pasted(&asks.code()?, &pending.state)?;
            oauth.finish(pending, code).await
        }
        Way::Device => {
            let details = oauth.begin_device().await?;
            asks.show(&device_words(&details));
            oauth.finish_device(&details).await
        }
    }
}

fn device_words(details: &StandardDeviceAuthorizationResponse) -> String {
    let url = details
        .verification_uri_complete()
        .map_or_else(|| details.verification_uri().to_string(), |complete| complete.secret().clone());
    format!("open {url} on any device and enter {}", details.user_code().secret())
}

/// The code, alone or in the address that the browser ended at.
fn pasted(text: &str, state: &str) -> Result<String, SourceError> {
    let text = text.trim();
    if text.is_empty() {
        return Err(SourceError::input("no code was entered"));
    }
    let Ok(url) = Url::parse(text) else { return Ok(text.to_owned()) };
    let parameter = |name: &str| url.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value.into_owned());
    match (parameter("code"), parameter("state")) {
        (Some(code), Some(came)) if came == state => Ok(code),
        (Some(_), _) => Err(SourceError::input("this address is not from the sign-in that was begun; begin again")),
        (None, _) => Err(SourceError::input("there is no code in this address")),
    }
}

/// Opens an address in the user's browser; whether somebody took it.
pub fn open_browser(url: &Url) -> bool {
    let mut command = match std::env::var_os("BROWSER").filter(|it| !it.is_empty()) {
        Some(browser) => Command::new(browser),
        None if cfg!(target_os = "macos") => Command::new("open"),
        None if cfg!(windows) => {
            let mut command = Command::new("rundll32");
            command.arg("url.dll,FileProtocolHandler");
            command
        }
        // Without a display there is no browser to be seen.
        None if std::env::var_os("DISPLAY").is_none() && std::env::var_os("WAYLAND_DISPLAY").is_none() => return false,
        None => Command::new("xdg-open"),
    };
    let child = command.arg(url.as_str()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    match child {
        Ok(mut child) => {
            // Somebody has to take note of its end.
            std::thread::spawn(move || drop(child.wait()));
            true
        }
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::pasted;

    #[test]
    fn a_code_is_taken_alone_or_from_its_address() {
        assert_eq!(pasted(" abc ", "s").unwrap(), "abc");
        assert_eq!(pasted("http://127.0.0.1:1/callback?code=a%2Fb&state=s", "s").unwrap(), "a/b");
        for (text, words) in [
            ("", "no code"),
            ("http://127.0.0.1:1/callback?code=a&state=other", "not from the sign-in"),
            ("http://127.0.0.1:1/callback?code=a", "not from the sign-in"),
            ("http://127.0.0.1:1/callback?error=x&state=s", "no code in this address"),
        ] {
            assert!(pasted(text, "s").unwrap_err().to_string().contains(words), "{text}");
        }
    }
}
