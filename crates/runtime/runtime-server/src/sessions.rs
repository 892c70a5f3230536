//! Sessions that wait for somebody to come for them.

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::net::TcpListener;

use crate::error::{At, Done, RuntimeError};

/// How long a URL is good.
const GOOD_FOR: Duration = Duration::from_secs(60);
/// URLs that nobody has come for.
const MAX_WAITING: usize = 1000;
/// How long a client may take to take the last words and go.
pub(crate) const LAST_WORD: Duration = Duration::from_secs(10);

/// What a client may do with a container.
#[derive(Clone, Debug)]
pub(crate) struct Command {
    pub(crate) container: String,
    /// A command to run; `None`: attach.
    pub(crate) words: Option<Vec<String>>,
    pub(crate) stdin: bool,
    pub(crate) stdout: bool,
    pub(crate) stderr: bool,
    pub(crate) tty: bool,
}

/// Whose ports.
#[derive(Clone, Debug)]
pub(crate) struct Forward {
    pub(crate) pod: String,
}

/// What a URL stands for.
#[derive(Clone, Debug)]
pub(crate) enum Session {
    /// Exec or attach.
    Command(Command),
    /// Ports of a pod.
    Forward(Forward),
}

impl Session {
    /// The protocol of its streams.
    pub(crate) fn protocol(&self) -> &'static str {
        match self {
            Self::Command(_) => "v4.channel.k8s.io",
            Self::Forward(_) => "portforward.k8s.io",
        }
    }
}

/// Sessions that wait for somebody to come.
#[derive(Debug)]
pub(crate) struct Streams {
    address: SocketAddr,
    waiting: Mutex<BTreeMap<String, (Instant, Session)>>,
}

impl Streams {
    /// Takes a loopback port.
    pub(crate) async fn bind() -> io::Result<(Self, TcpListener)> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        Ok((Self { address: listener.local_addr()?, waiting: Mutex::default() }, listener))
    }

    fn waiting(&self) -> MutexGuard<'_, BTreeMap<String, (Instant, Session)>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The URL of a session.
    pub(crate) fn offer(&self, kind: &str, session: Session) -> Done<String> {
        let mut waiting = self.waiting();
        waiting.retain(|_, (since, _)| since.elapsed() < GOOD_FOR);
        if waiting.len() >= MAX_WAITING {
            return Err(RuntimeError::Refused("too many streams wait for their clients".into()));
        }
        let token = token()?;
        let url = format!("http://{}/{kind}/{token}", self.address);
        waiting.insert(token, (Instant::now(), session));
        Ok(url)
    }

    /// The session of a path, once.
    pub(crate) fn take(&self, path: &str) -> Option<Session> {
        let token = path.rsplit('/').next()?;
        let (since, session) = self.waiting().remove(token)?;
        (since.elapsed() < GOOD_FOR).then_some(session)
    }
}

/// 128 bits of the kernel's randomness: who can reach the port must not guess it.
fn token() -> Done<String> {
    use std::io::Read;
    let path = std::path::Path::new("/dev/urandom");
    let mut bytes = [0; 16];
    std::fs::File::open(path).and_then(|mut f| f.read_exact(&mut bytes)).at("read", path)?;
    Ok(bytes.iter().map(|b| format!("{b:02x}")).collect())
}
