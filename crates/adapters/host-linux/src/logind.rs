//! systemd's login manager over D-Bus (org.freedesktop.login1(5), node-and-resources 8.6).

use std::future::Future;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures::{StreamExt as _, stream};
use ports::logind::{DelayLock, Logind, ShutdownNews};
use tokio::runtime::Handle;
use tokio::sync::mpsc::{Sender, channel};
use zbus::{Connection, MatchRule, MessageStream, OwnedFd, OwnedVariant, connection};

#[cfg(test)]
mod tests;

/// Patience with one call, the connection included.
const PATIENCE: Duration = Duration::from_secs(30);

const SERVICE: &str = "org.freedesktop.login1";
const PATH: &str = "/org/freedesktop/login1";
const MANAGER: &str = "org.freedesktop.login1.Manager";
/// What who takes the lock says of itself. People see it in the list of `systemd-inhibit`.
const LOCK: [&str; 4] = ["shutdown", "kubelet", "Kubelet needs time to handle node shutdown", "delay"];

const SIGHUP: i32 = 1;
/// News that may wait until somebody reads them.
const WAITING: usize = 16;

/// The login manager of this machine. One connection for all calls, made at the first and anew after it broke.
#[derive(Clone, Debug)]
pub struct SystemdLogind {
    /// Where the connection lives, whoever calls.
    runtime: Handle,
    bus: Arc<Bus>,
}

#[derive(Debug)]
struct Bus {
    /// Of the bus; `None`: the system's.
    address: Option<String>,
    connection: Mutex<Option<Connection>>,
}

impl SystemdLogind {
    /// Connects nowhere yet.
    #[must_use]
    pub fn new(runtime: Handle) -> Self {
        Self::at(runtime, None)
    }

    fn at(runtime: Handle, address: Option<String>) -> Self {
        Self { runtime, bus: Arc::new(Bus { address, connection: Mutex::default() }) }
    }

    /// Does something with the bus, where the connection lives.
    async fn on_bus<T, F>(&self, work: impl FnOnce(Arc<Bus>) -> F) -> io::Result<T>
    where
        T: Send + 'static,
        F: Future<Output = io::Result<T>> + Send + 'static,
    {
        let limited = tokio::time::timeout(PATIENCE, work(self.bus.clone()));
        self.runtime.spawn(limited).await.map_err(io::Error::other)??
    }
}

#[async_trait(?Send)]
impl Logind for SystemdLogind {
    async fn longest_delay(&self) -> io::Result<Duration> {
        let of = |bus: Arc<Bus>| async move { bus.property("InhibitDelayMaxUSec").await };
        let delay: u64 = self.on_bus(of).await?.try_into().map_err(io::Error::other)?;
        Ok(Duration::from_micros(delay))
    }

    async fn reload(&self) -> io::Result<()> {
        let (service, path) = ("org.freedesktop.systemd1", "/org/freedesktop/systemd1");
        let kill = move |bus: Arc<Bus>| async move {
            let manager = "org.freedesktop.systemd1.Manager";
            bus.call((service, path, manager), "KillUnit", &("systemd-logind.service", "all", SIGHUP)).await
        };
        self.on_bus(kill).await.map(drop)
    }

    async fn hold_back(&self) -> io::Result<DelayLock> {
        let inhibit = |bus: Arc<Bus>| async move {
            let [what, who, why, mode] = LOCK;
            let answer = bus.call((SERVICE, PATH, MANAGER), "Inhibit", &(what, who, why, mode)).await?;
            answer.body().deserialize::<OwnedFd>().map_err(io::Error::other)
        };
        self.on_bus(inhibit).await.map(DelayLock::new)
    }

    async fn follow(&self) -> io::Result<ShutdownNews> {
        let subscribe = |bus: Arc<Bus>| async move {
            let connection = bus.connection().await?;
            let rule = rule().map_err(words)?;
            let signals = MessageStream::for_match_rule(rule, &connection, None).await.map_err(words)?;
            let now = bus.property("PreparingForShutdown").await?;
            Ok((bool::try_from(now).map_err(io::Error::other)?, signals))
        };
        let (now, signals) = self.on_bus(subscribe).await?;
        let (to, mut from) = channel(WAITING);
        to.send(Ok(now)).await.map_err(io::Error::other)?;
        self.runtime.spawn(pass_on(self.bus.clone(), signals, to));
        Ok(stream::poll_fn(move |cx| from.poll_recv(cx)).boxed_local())
    }
}

/// By its sender: on the system's bus everybody may say such words.
fn rule() -> zbus::Result<MatchRule<'static>> {
    let rule = MatchRule::builder().msg_type(zbus::message::Type::Signal).sender(SERVICE);
    rule.path(PATH).interface(MANAGER).member("PrepareForShutdown").build()
}

/// Passes on what logind says, for as long as somebody listens and the connection holds.
async fn pass_on(bus: Arc<Bus>, mut signals: MessageStream, to: Sender<io::Result<bool>>) {
    loop {
        let signal = tokio::select! {
            () = to.closed() => return,
            signal = signals.next() => signal,
        };
        let news = match signal {
            Some(Ok(signal)) => match signal.body().deserialize::<bool>() {
                Ok(going_down) => Ok(going_down),
                Err(error) => {
                    tracing::error!(%error, "a word of logind about a shutdown is not understood");
                    continue;
                }
            },
            Some(Err(error)) => Err(words(error)),
            None => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the message bus is gone")),
        };
        let ended = news.is_err();
        if ended {
            bus.forget();
        }
        if to.send(news).await.is_err() || ended {
            return;
        }
    }
}

impl Bus {
    async fn property(&self, name: &str) -> io::Result<OwnedVariant> {
        let of = (SERVICE, PATH, "org.freedesktop.DBus.Properties");
        let answer = self.call(of, "Get", &(MANAGER, name)).await?;
        answer.body().deserialize().map_err(io::Error::other)
    }

    /// Every call may be repeated, so that one that met a bus that went meanwhile is.
    async fn call<B>(&self, of: (&str, &str, &str), method: &str, body: &B) -> io::Result<zbus::Message>
    where
        B: serde::Serialize + zbus::DynamicType + Sync,
    {
        let (service, path, interface) = of;
        let mut again = true;
        loop {
            let connection = self.connection().await?;
            match connection.call_method(Some(service), path, Some(interface), method, body).await {
                Err(zbus::Error::InputOutput(_)) if again => {
                    self.forget();
                    again = false;
                }
                other => return other.map_err(words),
            }
        }
    }

    async fn connection(&self) -> io::Result<Connection> {
        if let Some(there) = &*self.connection.lock().unwrap_or_else(PoisonError::into_inner) {
            return Ok(there.clone());
        }
        let builder = match &self.address {
            Some(address) => connection::Builder::address(address.as_str()),
            None => connection::Builder::system(),
        };
        let made = builder.build().await.map_err(words)?;
        *self.connection.lock().unwrap_or_else(PoisonError::into_inner) = Some(made.clone());
        Ok(made)
    }

    fn forget(&self) {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

/// What the other side says.
fn words(e: zbus::Error) -> io::Error {
    match e {
        zbus::Error::MethodError(name, text, _) => io::Error::other(text.unwrap_or_else(|| name.to_string())),
        zbus::Error::InputOutput(e) => io::Error::new(e.kind(), e.to_string()),
        e => io::Error::other(e),
    }
}
