//! The calls of OAuth 2: where a server signs in, the code with its proof (PKCE), device codes,
//! refreshing, revoking. The library makes the requests, our HTTP client sends them.

use std::time::Duration;

use futures_util::future::BoxFuture;
use oauth2::basic::{BasicClient, BasicErrorResponseType, BasicTokenResponse};
use oauth2::{
    AuthUrl, AuthorizationCode, ClientId, CsrfToken, DeviceAuthorizationUrl, DeviceCodeErrorResponseType,
    EndpointNotSet, EndpointSet, HttpRequest, HttpResponse, PkceCodeChallenge, PkceCodeVerifier, RedirectUrl,
    RefreshToken, RequestTokenError, Scope, StandardDeviceAuthorizationResponse, TokenResponse, TokenUrl,
};
use reqwest::RequestBuilder;
use serde::Deserialize;
use url::Url;

use super::store::Grant;
use crate::source::connection::may_carry_secrets;
use crate::source::http::{Http, is_page, words};
use crate::source::time::Instant;
use crate::source::{Connection, Progress, SourceError, SourceErrorKind};

/// The client id that works without registration at Polar Signals Cloud.
pub const CLIENT_ID: &str = "polarsignals-mcp";
/// For pasting a code by hand.
pub const OUT_OF_BAND: &str = "urn:ietf:wg:oauth:2.0:oob";

const SCOPES: [&str; 4] = ["openid", "profile", "email", "offline_access"];
const DEADLINE: Duration = Duration::from_secs(30);

type Client<Device> = BasicClient<EndpointSet, Device, EndpointNotSet, EndpointNotSet, EndpointSet>;

/// Where a server signs in, as it says itself.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Endpoints {
    /// What a browser opens.
    #[serde(rename = "authorization_endpoint")]
    pub authorize: Url,
    /// Where codes and refresh tokens become access tokens.
    #[serde(rename = "token_endpoint")]
    pub token: Url,
    /// Where devices without a browser begin.
    #[serde(rename = "device_authorization_endpoint")]
    pub device: Option<Url>,
    /// Where tokens end.
    #[serde(rename = "revocation_endpoint")]
    pub revoke: Option<Url>,
}

impl Endpoints {
    /// Asks the server of a connection.
    pub async fn discover(connection: &Connection) -> Result<Self, SourceError> {
        let http = Http::new(&bare(connection, &connection.address))?;
        let mut url = connection.address.clone();
        url.set_path("/.well-known/oauth-authorization-server");
        url.set_query(None);
        let request = http.client().get(url);
        let reply = http.send(request, DEADLINE, &Progress::default()).await?;
        let endpoints: Option<Self> =
            if reply.status.is_success() { serde_json::from_slice(&reply.body).ok() } else { None };
        let Some(endpoints) = endpoints else {
            return Err(http.error(
                SourceErrorKind::Protocol,
                "it does not say how to sign in; if it takes a token, run perflens login --token",
            ));
        };
        let all =
            [Some(&endpoints.authorize), Some(&endpoints.token), endpoints.device.as_ref(), endpoints.revoke.as_ref()];
        for url in all.into_iter().flatten() {
            may_carry_secrets(url)?;
        }
        Ok(endpoints)
    }
}

/// A connection to another endpoint of the same sign-in: the same certificates, no headers.
fn bare(connection: &Connection, address: &Url) -> Connection {
    Connection {
        address: address.clone(),
        headers: Vec::new(),
        user: None,
        project: None,
        tenant: None,
        ..connection.clone()
    }
}

/// A sign-in that waits for its code.
#[derive(Debug)]
pub struct Pending {
    /// What the user opens.
    pub url: Url,
    /// What comes back with the code.
    pub state: String,
    redirect: RedirectUrl,
    verifier: PkceCodeVerifier,
}

/// Signs in at one server.
#[derive(Debug)]
pub struct Oauth {
    endpoints: Endpoints,
    client_id: String,
    connection: Connection,
}

impl Oauth {
    /// At the endpoints of a connection's server.
    pub fn new(connection: &Connection, endpoints: Endpoints, client_id: String) -> Self {
        Self { endpoints, client_id, connection: connection.clone() }
    }

    fn client(&self) -> Client<EndpointNotSet> {
        BasicClient::new(ClientId::new(self.client_id.clone()))
            .set_auth_uri(AuthUrl::from_url(self.endpoints.authorize.clone()))
            .set_token_uri(TokenUrl::from_url(self.endpoints.token.clone()))
            // Public clients have no secret; the id goes into the body.
            .set_auth_type(oauth2::AuthType::RequestBody)
    }

    /// Begins; the browser comes back to `redirect`.
    pub fn begin(&self, redirect: &str) -> Result<Pending, SourceError> {
        let redirect = RedirectUrl::new(redirect.to_owned()).map_err(|error| SourceError::input(error.to_string()))?;
        let (challenge, verifier) = PkceCodeChallenge::new_random_sha256();
        let client = self.client().set_redirect_uri(redirect.clone());
        let (url, state) = client
            .authorize_url(CsrfToken::new_random)
            .add_scopes(SCOPES.map(|scope| Scope::new(scope.to_owned())))
            .set_pkce_challenge(challenge)
            .url();
        Ok(Pending { url, state: state.into_secret(), redirect, verifier })
    }

    /// Exchanges the code.
    pub async fn finish(&self, pending: Pending, code: String) -> Result<Grant, SourceError> {
        let send = self.sender(&self.endpoints.token)?;
        let client = self.client().set_redirect_uri(pending.redirect);
        let request = client.exchange_code(AuthorizationCode::new(code)).set_pkce_verifier(pending.verifier);
        let reply = request.request_async(&send).await.map_err(|error| self.failure(error))?;
        Ok(self.grant(&reply, None))
    }

    /// Begins without a browser on this machine.
    pub async fn begin_device(&self) -> Result<StandardDeviceAuthorizationResponse, SourceError> {
        let Some(device) = &self.endpoints.device else {
            return Err(self.server_error(SourceErrorKind::Protocol, "it knows no device codes; try --paste"));
        };
        let send = self.sender(device)?;
        let client = self.client().set_device_authorization_url(DeviceAuthorizationUrl::from_url(device.clone()));
        let request = client.exchange_device_code().add_scopes(SCOPES.map(|scope| Scope::new(scope.to_owned())));
        request.request_async(&send).await.map_err(|error| self.failure(error))
    }

    /// Waits until the user has entered the code elsewhere.
    pub async fn finish_device(&self, details: &StandardDeviceAuthorizationResponse) -> Result<Grant, SourceError> {
        let send = self.sender(&self.endpoints.token)?;
        let client = self.client();
        let request = client.exchange_device_access_token(details);
        let reply = request.request_async(&send, tokio::time::sleep, Some(details.expires_in())).await;
        let reply = reply.map_err(|error| match error {
            RequestTokenError::ServerResponse(response) => {
                let words = match response.error() {
                    DeviceCodeErrorResponseType::AccessDenied => "you said no".to_owned(),
                    DeviceCodeErrorResponseType::ExpiredToken => "the code has expired; begin again".to_owned(),
                    other => other.as_ref().to_owned(),
                };
                self.server_error(SourceErrorKind::SignIn, words)
            }
            RequestTokenError::Request(error) => error,
            _ => self.no_token(),
        })?;
        Ok(self.grant(&reply, None))
    }

    fn grant(&self, reply: &BasicTokenResponse, old_refresh: Option<String>) -> Grant {
        let now = Instant::now().0 / 1_000_000_000;
        let lasts = reply.expires_in().and_then(|lasts| i64::try_from(lasts.as_secs()).ok());
        Grant {
            access_token: reply.access_token().secret().clone(),
            refresh_token: reply.refresh_token().map(|token| token.secret().clone()).or(old_refresh),
            expires_at: lasts.map(|lasts| now.saturating_add(lasts)),
            client_id: Some(self.client_id.clone()),
            token_endpoint: Some(self.endpoints.token.to_string()),
            revocation_endpoint: self.endpoints.revoke.as_ref().map(Url::to_string),
            project: None,
            is_dead: false,
        }
    }

    fn server_error(&self, kind: SourceErrorKind, detail: impl Into<String>) -> SourceError {
        SourceError::new(kind, crate::source::connection::server(&self.endpoints.token), detail)
    }

    fn no_token(&self) -> SourceError {
        self.server_error(SourceErrorKind::Protocol, "its answer holds no token")
    }

    fn failure(&self, error: TokenError) -> SourceError {
        match error {
            RequestTokenError::ServerResponse(response) => {
                let words =
                    response.error_description().cloned().unwrap_or_else(|| response.error().as_ref().to_owned());
                self.server_error(SourceErrorKind::SignIn, words.chars().take(200).collect::<String>())
            }
            RequestTokenError::Request(error) => error,
            RequestTokenError::Parse(..) | RequestTokenError::Other(_) => self.no_token(),
        }
    }

    /// Sends the library's requests to one endpoint.
    fn sender(&self, endpoint: &Url) -> Result<impl Fn(HttpRequest) -> Sent + use<>, SourceError> {
        sender(&self.connection, endpoint)
    }
}

type Sent = BoxFuture<'static, Result<HttpResponse, SourceError>>;
type TokenError = RequestTokenError<SourceError, oauth2::StandardErrorResponse<BasicErrorResponseType>>;

fn sender(connection: &Connection, endpoint: &Url) -> Result<impl Fn(HttpRequest) -> Sent + use<>, SourceError> {
    may_carry_secrets(endpoint)?;
    let http = Http::new(&bare(connection, endpoint))?;
    Ok(move |request: HttpRequest| -> Sent {
        let http = http.clone();
        Box::pin(async move {
            let wrong = |error: String| SourceError::input(format!("the request can't be made: {error}"));
            let request = reqwest::Request::try_from(request).map_err(|error| wrong(error.to_string()))?;
            let request = RequestBuilder::from_parts(http.client().clone(), request);
            let reply = http.send(request, DEADLINE, &Progress::default()).await?;
            // What a proxy or a broken server says is no answer of OAuth.
            if is_page(&reply) || reply.status.is_redirection() || reply.status.is_server_error() {
                let refusal = http.refusal(&reply);
                return Err(refusal
                    .unwrap_or_else(|| http.error(SourceErrorKind::Protocol, format!("it sent {}", words(&reply)))));
            }
            let mut response = HttpResponse::new(reply.body.to_vec());
            *response.status_mut() = reply.status;
            *response.headers_mut() = reply.headers;
            Ok(response)
        })
    })
}

/// What became of refreshing.
#[derive(Debug)]
pub enum Refreshed {
    /// There is a new token.
    Grant(Box<Grant>),
    /// The server won't refresh, now or later; its words.
    Dead(String),
}

/// Refreshes a grant, at the endpoint and as the client that it is from.
pub async fn refresh(connection: &Connection, grant: &Grant) -> Result<Refreshed, SourceError> {
    let (Some(token), Some(endpoint), Some(client_id)) =
        (&grant.refresh_token, &grant.token_endpoint, &grant.client_id)
    else {
        return Ok(Refreshed::Dead("it can't be refreshed".to_owned()));
    };
    let endpoint =
        Url::parse(endpoint).map_err(|_| SourceError::input("the kept sign-in is damaged; sign in again"))?;
    let endpoints = Endpoints { authorize: endpoint.clone(), token: endpoint.clone(), device: None, revoke: None };
    let oauth = Oauth::new(connection, endpoints, client_id.clone());
    let send = oauth.sender(&endpoint)?;
    let client = oauth.client();
    let refresh = RefreshToken::new(token.clone());
    match client.exchange_refresh_token(&refresh).request_async(&send).await {
        Ok(reply) => Ok(Refreshed::Grant(Box::new(Grant {
            revocation_endpoint: grant.revocation_endpoint.clone(),
            project: grant.project.clone(),
            ..oauth.grant(&reply, Some(token.clone()))
        }))),
        Err(RequestTokenError::ServerResponse(response))
            if matches!(
                response.error(),
                BasicErrorResponseType::InvalidGrant
                    | BasicErrorResponseType::InvalidClient
                    | BasicErrorResponseType::UnauthorizedClient
            ) =>
        {
            Ok(Refreshed::Dead(response.error().as_ref().to_owned()))
        }
        Err(error) => Err(oauth.failure(error)),
    }
}

/// Tells the server that a sign-in has ended, where it wants to know. Whether it was told.
pub async fn revoke(connection: &Connection, grant: &Grant) -> Result<bool, SourceError> {
    let Some(endpoint) = grant.revocation_endpoint.as_deref().and_then(|it| Url::parse(it).ok()) else {
        return Ok(false);
    };
    may_carry_secrets(&endpoint)?;
    let http = Http::new(&bare(connection, &endpoint))?;
    let token = grant.refresh_token.as_ref().unwrap_or(&grant.access_token);
    let form = {
        let mut form = url::form_urlencoded::Serializer::new(String::new());
        form.append_pair("token", token);
        if let Some(client_id) = &grant.client_id {
            form.append_pair("client_id", client_id);
        }
        form.finish()
    };
    let request = http.client().post(endpoint).header("content-type", "application/x-www-form-urlencoded").body(form);
    let reply = http.send(request, DEADLINE, &Progress::default()).await?;
    match http.refusal(&reply) {
        None => Ok(true),
        Some(refusal) => Err(refusal),
    }
}
