//! A server that signs people in, as strict as such servers are: codes once and with their
//! proof, refresh tokens once and else all of the family is over.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::json;
use sha2::{Digest, Sha256};

use crate::http::{Asked, Does};

/// What it knows, and how it behaves.
#[derive(Debug, Default)]
pub struct Identity {
    /// Where it is, with the scheme; set once the server runs.
    pub url: String,
    /// How long access tokens last by its word, in seconds; `None` says nothing.
    pub lasts: Option<u64>,
    /// How far its clock is ahead, in seconds, as its tokens say.
    pub clock_ahead: u64,
    /// The answer of the user.
    pub denies: Option<String>,
    /// Answers instead of a token.
    pub token_answer: Option<Does>,
    /// How often somebody has refreshed.
    pub refreshes: usize,
    /// Tokens that were revoked by request.
    pub revoked: Vec<String>,
    codes: BTreeMap<String, Begun>,
    access: BTreeSet<String>,
    refresh: BTreeSet<String>,
    used: BTreeSet<String>,
    device_polls: usize,
    issued: usize,
}

#[derive(Clone, Debug)]
struct Begun {
    challenge: String,
    redirect: String,
    client_id: String,
}

impl Identity {
    /// Whether a token is good.
    pub fn is_valid(&self, token: &str) -> bool {
        self.access.contains(token)
    }

    /// Makes all access tokens invalid, whatever was said about how long they last.
    pub fn forget_access(&mut self) {
        self.access.clear();
    }

    /// Ends the sign-in.
    pub fn revoke_all(&mut self) {
        self.access.clear();
        self.refresh.clear();
    }

    /// A token that is good for ever, as service accounts have them.
    pub fn service_token(&mut self) -> String {
        let token = "psc_v1_0123".to_owned();
        self.access.insert(token.clone());
        token
    }

    pub(super) fn answer(&mut self, asked: &Asked) -> Option<Does> {
        match asked.path() {
            "/.well-known/oauth-authorization-server" => {
                let at = |path: &str| format!("{}{path}", self.url);
                Some(json_ok(&json!({
                    "issuer": self.url,
                    "authorization_endpoint": at("/login/cli?auth_endpoint=x"),
                    "token_endpoint": at("/token"),
                    "device_authorization_endpoint": at("/device/code"),
                    "revocation_endpoint": at("/revoke"),
                    "code_challenge_methods_supported": ["S256"],
                })))
            }
            "/login/cli" => Some(self.authorize(asked)),
            "/token" => Some(self.token(asked)),
            "/device/code" => Some(json_ok(&json!({
                "device_code": "dev-1", "user_code": "WDJB-MJHT", "expires_in": 60, "interval": 1,
                "verification_uri": format!("{}/device", self.url),
            }))),
            "/revoke" => {
                self.revoked.extend(asked.parameter("token"));
                Some(Does::ok("text/plain", ""))
            }
            _ => None,
        }
    }

    fn authorize(&mut self, asked: &Asked) -> Does {
        let parameter = |name: &str| asked.parameter(name).unwrap_or_default();
        let is_right = parameter("auth_endpoint") == "x"
            && parameter("response_type") == "code"
            && parameter("code_challenge_method") == "S256"
            && parameter("scope").split(' ').any(|scope| scope == "offline_access")
            && !parameter("state").is_empty();
        if !is_right {
            return Does::status(400, "text/plain", "the request to sign in is not complete");
        }
        let (redirect, state) = (parameter("redirect_uri"), parameter("state"));
        if let Some(words) = &self.denies {
            let words = words.replace(' ', "+");
            let to = format!("{redirect}?error=access_denied&error_description={words}&state={state}");
            return Does::status(302, "text/html", "").header("location", &to);
        }
        self.issued += 1;
        let code = format!("code-{}", self.issued);
        self.codes.insert(
            code.clone(),
            Begun {
                challenge: parameter("code_challenge"),
                redirect: redirect.clone(),
                client_id: parameter("client_id"),
            },
        );
        if redirect.starts_with("urn:") {
            return Does::ok("text/plain", code);
        }
        Does::status(302, "text/html", "").header("location", &format!("{redirect}?code={code}&state={state}"))
    }

    fn token(&mut self, asked: &Asked) -> Does {
        if let Some(does) = &self.token_answer {
            return does.clone();
        }
        let parameter = |name: &str| asked.parameter(name).unwrap_or_default();
        match parameter("grant_type").as_str() {
            "authorization_code" => {
                let Some(begun) = self.codes.remove(&parameter("code")) else { return refused("invalid_grant") };
                let proof = base64url(&Sha256::digest(parameter("code_verifier").as_bytes()));
                let is_right = proof == begun.challenge
                    && parameter("redirect_uri") == begun.redirect
                    && parameter("client_id") == begun.client_id;
                if is_right { self.issue() } else { refused("invalid_grant") }
            }
            "refresh_token" => {
                self.refreshes += 1;
                let token = parameter("refresh_token");
                if self.used.contains(&token) {
                    // Somebody has stolen it, for all it knows.
                    self.revoke_all();
                    return refused("invalid_grant");
                }
                if !self.refresh.remove(&token) {
                    return refused("invalid_grant");
                }
                self.used.insert(token);
                self.issue()
            }
            "urn:ietf:params:oauth:grant-type:device_code" => {
                self.device_polls += 1;
                match (self.device_polls, parameter("device_code").as_str()) {
                    (1, "dev-1") => refused("authorization_pending"),
                    (_, "dev-1") => self.issue(),
                    _ => refused("invalid_grant"),
                }
            }
            _ => refused("unsupported_grant_type"),
        }
    }

    fn issue(&mut self) -> Does {
        self.issued += 1;
        let (access, refresh) = (format!("access-{}", self.issued), format!("refresh-{}", self.issued));
        self.access.insert(access.clone());
        self.refresh.insert(refresh.clone());
        let mut answer = json!({ "access_token": access, "token_type": "bearer", "refresh_token": refresh });
        if self.clock_ahead > 0 {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is after 1970").as_secs();
            let issued = now + self.clock_ahead;
            let claims = json!({ "iat": issued, "nbf": issued, "exp": issued + self.lasts.unwrap_or(60) });
            let [head, claims] = [json!({ "alg": "none" }), claims].map(|part| base64url(part.to_string().as_bytes()));
            answer["id_token"] = json!(format!("{head}.{claims}."));
        }
        if let Some(lasts) = self.lasts {
            answer["expires_in"] = json!(lasts);
        }
        json_ok(&answer)
    }
}

fn json_ok(value: &serde_json::Value) -> Does {
    Does::ok("application/json", value.to_string())
}

fn refused(error: &str) -> Does {
    Does::status(400, "application/json", json!({ "error": error }).to_string())
}

fn base64url(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let (mut text, mut bits, mut count) = (String::new(), 0u32, 0);
    for &byte in bytes {
        bits = (bits << 8) | u32::from(byte);
        count += 8;
        while count >= 6 {
            count -= 6;
            text.push(char::from(ALPHABET[(bits >> count & 63) as usize]));
        }
    }
    if count > 0 {
        text.push(char::from(ALPHABET[(bits << (6 - count) & 63) as usize]));
    }
    text
}
