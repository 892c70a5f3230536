//! Who asks: passwords, and the tokens that they are given for.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hyper::Method;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use model::url::{Url, escape};
use serde::Deserialize;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::challenge::{self, Challenge};
use crate::client::{Ask, Client};
use crate::endpoint::{Endpoint, same_server};
use crate::error::Failure;

/// What one pull may show to the hosts of its image's registry, mirrors among them, as they were configured by the administrator. Hosts that a redirect
/// leads to see nothing of it.
#[derive(Clone, PartialEq, Eq)]
pub enum Credentials {
    /// A user.
    Password {
        /// Name.
        username: String,
        /// Password.
        password: String,
    },
    /// A token that stands for a user at the server of tokens.
    IdentityToken(String),
    /// A token for the registry itself.
    RegistryToken(String),
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Password { username, .. } => write!(f, "Password({username:?}, <secret>)"),
            Self::IdentityToken(_) => f.write_str("IdentityToken(<secret>)"),
            Self::RegistryToken(_) => f.write_str("RegistryToken(<secret>)"),
        }
    }
}

/// Most bytes of a token's document.
const TOKEN: u64 = 1 << 20;
/// How long a token is good whose server does not say (Docker's token specification).
const USUAL_LIFE: u64 = 60;

#[derive(Debug)]
struct Pass {
    endpoint: Url,
    header: HeaderValue,
    until: Option<Instant>,
}

impl Pass {
    fn is_good(&self) -> bool {
        self.until.is_none_or(|until| until > Instant::now())
    }
}

/// Of one pull.
#[derive(Debug)]
pub(crate) struct Auth {
    credentials: Option<Credentials>,
    passes: Mutex<Vec<Pass>>,
}

#[derive(Deserialize)]
struct Token {
    token: Option<String>,
    access_token: Option<String>,
    expires_in: Option<u64>,
}

impl Auth {
    pub(crate) fn new(credentials: Option<Credentials>) -> Self {
        Self { credentials, passes: Mutex::default() }
    }

    /// What to show to an endpoint, as far as it is known.
    pub(crate) async fn pass(&self, endpoint: &Endpoint) -> Result<Option<HeaderValue>, Failure> {
        if let Some(Credentials::RegistryToken(token)) = &self.credentials {
            return secret(&format!("Bearer {token}")).map(Some);
        }
        let passes = self.passes.lock().await;
        let known = passes.iter().find(|p| p.endpoint == endpoint.root);
        Ok(known.filter(|p| p.is_good()).map(|p| p.header.clone()))
    }

    /// An endpoint refused what it was shown: something better, if there is.
    pub(crate) async fn answer(
        &self,
        client: &Arc<Client>,
        endpoint: &Endpoint,
        repository: &str,
        shown: Option<&HeaderValue>,
        challenges: &[String],
    ) -> Result<Option<HeaderValue>, Failure> {
        if matches!(self.credentials, Some(Credentials::RegistryToken(_))) {
            return Ok(None);
        }
        let Some(challenge) = challenge::best(challenges.iter().map(String::as_str)) else { return Ok(None) };
        // Layers that come at once are refused at once, and need one token.
        let mut passes = self.passes.lock().await;
        let known = passes.iter().find(|p| p.endpoint == endpoint.root);
        if let Some(newer) = known.filter(|p| Some(&p.header) != shown && p.is_good()) {
            return Ok(Some(newer.header.clone()));
        }
        let (header, until) = match &challenge {
            Challenge::Basic => match &self.credentials {
                Some(Credentials::Password { username, password }) => (basic(username, password)?, None),
                _ => return Ok(None),
            },
            Challenge::Bearer { realm, service, scope } => {
                let scope = challenge::scope(scope.as_deref(), repository);
                let token = self.token(client, endpoint, realm, service.as_deref(), &scope).await?;
                let life = Duration::from_secs(token.expires_in.unwrap_or(USUAL_LIFE).min(86_400));
                let text = token.token.or(token.access_token).filter(|t| !t.is_empty());
                let text = text.ok_or_else(|| Failure::Auth(format!("{realm} gave no token")))?;
                (secret(&format!("Bearer {text}"))?, Some(Instant::now() + life.mul_f64(0.9)))
            }
        };
        if shown == Some(&header) {
            return Ok(None);
        }
        passes.retain(|p| p.endpoint != endpoint.root);
        passes.push(Pass { endpoint: endpoint.root.clone(), header: header.clone(), until });
        Ok(Some(header))
    }

    async fn token(
        &self,
        client: &Arc<Client>,
        endpoint: &Endpoint,
        realm: &str,
        service: Option<&str>,
        scope: &str,
    ) -> Result<Token, Failure> {
        let parsed = endpoint.root.join(realm).filter(|_| model::url::is_absolute(realm));
        let mut url = parsed.ok_or_else(|| Failure::Auth(format!("its server of tokens {realm:?} is no URL")))?;
        if endpoint.root.tls && !url.tls {
            return Err(Failure::Auth(format!("its server of tokens {realm} is to be asked without TLS")));
        }
        let service = service.map(|s| format!("service={}&", escape(s))).unwrap_or_default();
        let query = format!("{service}scope={}", escape(scope));
        let (ask, shown) = match &self.credentials {
            Some(Credentials::IdentityToken(token)) => (refresh(token, &query)?, None),
            Some(Credentials::Password { username, password }) => {
                append(&mut url, &format!("account={}&{query}", escape(username)));
                (Ask::get(), Some(basic(username, password)?))
            }
            _ => {
                append(&mut url, &query);
                (Ask::get(), None)
            }
        };
        // Headers and certificates of the endpoint are not for another server.
        let mut of_tokens = endpoint.clone();
        if !same_server(&endpoint.root, &url) {
            of_tokens.headers.clear();
        }
        let mut answer = client.follow(&of_tokens, &url, &ask, shown.as_ref()).await?;
        if !answer.status().is_success() {
            let why = answer.refusal().await;
            let fits = why.may_pass() || matches!(why, Failure::Stalled { .. });
            return Err(if fits {
                why
            } else {
                Failure::Auth(format!("its server of tokens {} {why}", url.host_header()))
            });
        }
        let text = answer.whole("a token", TOKEN).await?;
        serde_json::from_slice(&text).map_err(|_| Failure::Auth(format!("{realm} gave no token")))
    }
}

/// A token for a token (OAuth 2, as Docker's servers of tokens have it).
fn refresh(token: &str, query: &str) -> Result<Ask, Failure> {
    let form = format!("grant_type=refresh_token&client_id=bosun&refresh_token={}&{query}", escape(token));
    let ask = Ask { method: Method::POST, body: form.into(), ..Ask::get() };
    ask.with(CONTENT_TYPE, "application/x-www-form-urlencoded")
}

fn append(url: &mut Url, query: &str) {
    let mark = if url.path.contains('?') { '&' } else { '?' };
    url.path = format!("{}{mark}{query}", url.path);
}

fn basic(username: &str, password: &str) -> Result<HeaderValue, Failure> {
    secret(&format!("Basic {}", STANDARD.encode(format!("{username}:{password}"))))
}

fn secret(text: &str) -> Result<HeaderValue, Failure> {
    let value = HeaderValue::from_str(text);
    let mut value = value.map_err(|_| Failure::Auth("a token or password cannot be sent".to_owned()))?;
    value.set_sensitive(true);
    Ok(value)
}
