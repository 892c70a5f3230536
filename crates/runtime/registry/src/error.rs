//! Why an image could not be pulled, in words that say where and what helps.

use std::time::Duration;

use image_store::oci::DocumentError;
use image_store::{Digest, StoreError};

use crate::hosts::HostsError;

/// What went wrong with one host.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// No connection.
    #[error("cannot be reached: {0}")]
    Connect(String),
    /// TLS was not agreed on.
    #[error("TLS failed: {0}; {hint}", hint = tls_hint(.0))]
    Tls(String),
    /// A file for TLS, or a header, cannot be used.
    #[error("its configuration cannot be used: {0}")]
    Configuration(String),
    /// The connection broke.
    #[error("the connection broke: {0}")]
    Broken(String),
    /// Nothing came for so long.
    #[error("nothing came for {} s ({during})", .after.as_secs_f32())]
    Stalled {
        /// How long.
        after: Duration,
        /// While what was waited for.
        during: &'static str,
    },
    /// It refused: HTTP status, and its own words.
    #[error("answered {status}{}{}", in_brackets(.said), status_hint(*.status))]
    Status {
        /// HTTP status.
        status: u16,
        /// Its words; may be empty.
        said: String,
        /// How long it asks to be left alone.
        retry_after: Option<Duration>,
    },
    /// It does not let us in: how it wants to be asked cannot be done, or the server of tokens refused.
    #[error("wants to know who asks: {0}")]
    Auth(String),
    /// It breaks HTTP or its own API.
    #[error("gave an answer that makes no sense: {0}")]
    Protocol(String),
    /// Content is not what its digest says.
    #[error("gave content that is not {promised} but {found}")]
    Digest {
        /// What was asked for.
        promised: Digest,
        /// What came.
        found: Digest,
    },
    /// More than is allowed.
    #[error("{0} is larger than {1} bytes")]
    TooLarge(&'static str, u64),
}

impl Failure {
    /// Whether the same may work a little later.
    pub(crate) fn may_pass(&self) -> bool {
        match self {
            Self::Connect(_) | Self::Broken(_) | Self::Stalled { .. } => true,
            Self::Status { status, .. } => matches!(status, 408 | 429 | 500 | 502 | 503 | 504),
            Self::Tls(_) | Self::Configuration(_) | Self::Auth(_) | Self::Protocol(_) => false,
            Self::Digest { .. } | Self::TooLarge(..) => false,
        }
    }
}

impl Failure {
    /// How often the same is asked: a host that does not even answer keeps the next one waiting.
    pub(crate) fn attempts(&self, most: u32) -> u32 {
        match self {
            Self::Connect(_) | Self::Stalled { during: "connecting", .. } => most.min(2),
            _ => most,
        }
    }
}

fn in_brackets(said: &str) -> String {
    if said.is_empty() { String::new() } else { format!(" ({said})") }
}

fn status_hint(status: u16) -> &'static str {
    match status {
        401 | 403 => {
            "; are credentials needed, or wrong? A pod gives them by imagePullSecrets, `bosun image pull` by --creds"
        }
        404 => "; is the name right?",
        429 => "; too many pulls: wait, sign in, or use a mirror",
        _ => "",
    }
}

fn tls_hint(why: &str) -> &'static str {
    if why.contains("InvalidMessage") || why.contains("corrupt message") {
        "does it speak plain HTTP? Then its hosts.toml says server = \"http://...\""
    } else {
        "its authority can be named in its hosts.toml: ca = \"FILE\""
    }
}

/// One host and what went wrong with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostFailure {
    /// Host, and port where it is not the usual one.
    pub host: String,
    /// What was asked of it.
    pub asked: String,
    /// What came of it.
    pub failure: Failure,
}

impl std::fmt::Display for HostFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({}) {}", self.host, self.asked, self.failure)
    }
}

/// Why an image could not be pulled.
#[derive(Debug, thiserror::Error)]
pub enum PullError {
    /// No name of an image.
    #[error("{0:?}: {1}")]
    Name(String, String),
    /// Its configuration of hosts cannot be used.
    #[error(transparent)]
    Hosts(#[from] HostsError),
    /// No host is there that may be asked that.
    #[error("no host may be asked {0}: see capabilities in its hosts.toml")]
    NoHost(&'static str),
    /// All hosts were asked, in this order.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Refused(Vec<HostFailure>),
    /// What it is cannot run here.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The disk has no room.
    #[error("the image needs at least {needed} bytes of disk, {room} are left")]
    NoRoom {
        /// Bytes.
        needed: u64,
        /// Bytes.
        room: u64,
    },
    /// A thread ended without a word.
    #[error("{0} failed unexpectedly: this is a fault of bosun")]
    Lost(&'static str),
}

impl PullError {
    /// Whether every host that was asked says that there is no such image.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        let missing = |f: &HostFailure| matches!(f.failure, Failure::Status { status: 404, .. });
        matches!(self, Self::Refused(all) if !all.is_empty() && all.iter().all(missing))
    }

    /// Whether a host does not let us in, and none has the image.
    #[must_use]
    pub fn is_denied(&self) -> bool {
        let denied =
            |f: &HostFailure| matches!(f.failure, Failure::Status { status: 401 | 403, .. } | Failure::Auth(_));
        matches!(self, Self::Refused(all) if all.iter().any(denied))
    }
}
