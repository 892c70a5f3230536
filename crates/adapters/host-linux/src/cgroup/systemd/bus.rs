//! The few calls of systemd's manager over D-Bus.

use std::io;
use std::num::NonZero;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures::StreamExt as _;
use tokio::runtime::Handle;
use zbus::{Connection, MatchRule, MessageStream, connection};
use zbus::{OwnedObjectPath, OwnedVariant, Variant};

/// Patience with one call, the connection included.
const PATIENCE: Duration = Duration::from_secs(30);

const SERVICE: &str = "org.freedesktop.systemd1";
const MANAGER: &str = "org.freedesktop.systemd1.Manager";
const MANAGER_PATH: &str = "/org/freedesktop/systemd1";

/// Ends of jobs that wait to be looked at while systemd answers: a node that boots has hundreds.
const MOST_ENDS: Option<NonZero<usize>> = NonZero::new(4096);

/// Name and value of a unit's property.
pub(super) type Property = (&'static str, Variant<'static>);

/// One connection for all callers; made at the first call, and anew after it broke.
#[derive(Debug)]
pub(super) struct Bus {
    /// Where the connection lives; its callers are blocking threads.
    runtime: Handle,
    /// Of the bus; `None`: the system's.
    address: Option<String>,
    connection: Mutex<Option<Connection>>,
}

impl Bus {
    pub(super) fn new(runtime: Handle, address: Option<String>) -> Self {
        Self { runtime, address, connection: Mutex::default() }
    }

    /// Starts a transient unit. One that runs already is what was wanted.
    pub(super) fn start(&self, unit: &str, properties: &[Property]) -> io::Result<()> {
        let no_others: &[(&str, &[Property])] = &[];
        match self.manager("StartTransientUnit", &(unit, "replace", properties, no_others)) {
            Err(_) if self.is_active(unit).is_ok_and(|active| active) => Ok(()),
            other => other.map(drop),
        }
    }

    /// Starts a scope with a process in it, and waits until systemd is done with that. One that is there takes the process in.
    pub(super) fn start_scope(&self, unit: &str, properties: &[Property], pid: u32) -> io::Result<()> {
        let work = async {
            // Before the job: its end may come before its answer.
            let mut ends = self.ends().await?;
            let no_others: &[(&str, &[Property])] = &[];
            let body = (unit, "replace", properties, no_others);
            let job: OwnedObjectPath = match self.ask(MANAGER_PATH, MANAGER, "StartTransientUnit", &body).await {
                Err(_) if self.is_active_now(unit).await.is_ok_and(|active| active) => {
                    let more = (unit, "", &[pid][..]);
                    return self.ask(MANAGER_PATH, MANAGER, "AttachProcessesToUnit", &more).await.map(drop);
                }
                other => other?.body().deserialize().map_err(io::Error::other)?,
            };
            while let Some(end) = ends.next().await {
                let (_, ended, _, result): (u32, OwnedObjectPath, String, String) =
                    end.map_err(words)?.body().deserialize().map_err(io::Error::other)?;
                match result.as_str() {
                    _ if ended != job => {}
                    "done" => return Ok(()),
                    other => return Err(io::Error::other(format!("the job of its start: {other}"))),
                }
            }
            // The bus went meanwhile, and took the end along.
            match self.is_active_now(unit).await? {
                true => Ok(()),
                false => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the message bus is gone")),
            }
        };
        self.runtime.block_on(async { tokio::time::timeout(PATIENCE, work).await })?
    }

    /// Ends of jobs, on a connection that holds.
    async fn ends(&self) -> io::Result<MessageStream> {
        let rule = job_removed().map_err(words)?;
        match MessageStream::for_match_rule(rule.clone(), &self.connection().await?, MOST_ENDS).await {
            Ok(ends) => Ok(ends),
            Err(_) => {
                self.forget();
                MessageStream::for_match_rule(rule, &self.connection().await?, MOST_ENDS).await.map_err(words)
            }
        }
    }

    /// Changes properties until the next boot.
    pub(super) fn set(&self, unit: &str, properties: &[Property]) -> io::Result<()> {
        self.manager("SetUnitProperties", &(unit, true, properties)).map(drop)
    }

    /// Stops a unit. One that does not run is what was wanted.
    pub(super) fn stop(&self, unit: &str) -> io::Result<()> {
        match self.manager("StopUnit", &(unit, "replace")) {
            Err(_) if self.is_active(unit).is_ok_and(|active| !active) => Ok(()),
            other => other.map(drop),
        }
    }

    fn is_active(&self, unit: &str) -> io::Result<bool> {
        self.runtime.block_on(async { tokio::time::timeout(PATIENCE, self.is_active_now(unit)).await })?
    }

    async fn is_active_now(&self, unit: &str) -> io::Result<bool> {
        let path: OwnedObjectPath = match self.ask(MANAGER_PATH, MANAGER, "GetUnit", &unit).await {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(false),
            found => found?.body().deserialize().map_err(io::Error::other)?,
        };
        let of = ("org.freedesktop.systemd1.Unit", "ActiveState");
        let answer = self.ask(path.as_str(), "org.freedesktop.DBus.Properties", "Get", &of).await?;
        let state: OwnedVariant = answer.body().deserialize().map_err(io::Error::other)?;
        let state = String::try_from(state).map_err(io::Error::other)?;
        Ok(state == "active" || state == "reloading")
    }

    fn manager<B>(&self, method: &str, body: &B) -> io::Result<zbus::Message>
    where
        B: serde::Serialize + zbus::DynamicType,
    {
        let ask = self.ask(MANAGER_PATH, MANAGER, method, body);
        self.runtime.block_on(async { tokio::time::timeout(PATIENCE, ask).await })?
    }

    /// Every call may be repeated, so that one that met a bus that went meanwhile is.
    async fn ask<B>(&self, path: &str, interface: &str, method: &str, body: &B) -> io::Result<zbus::Message>
    where
        B: serde::Serialize + zbus::DynamicType,
    {
        let mut again = true;
        loop {
            let connection = self.connection().await?;
            match connection.call_method(Some(SERVICE), path, Some(interface), method, body).await {
                Err(zbus::Error::InputOutput(_)) if again => {
                    self.forget();
                    again = false;
                }
                other => return other.map_err(words),
            }
        }
    }

    /// The next call connects anew.
    fn forget(&self) {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner).take();
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
}

/// Words of systemd that a job has ended. Who asked for a job is told without having subscribed.
fn job_removed() -> zbus::Result<MatchRule<'static>> {
    let rule = MatchRule::builder().msg_type(zbus::message::Type::Signal).sender(SERVICE);
    rule.path(MANAGER_PATH).interface(MANAGER).member("JobRemoved").build()
}

/// What the other side says; `NotFound` when it knows no such unit.
fn words(e: zbus::Error) -> io::Error {
    match e {
        zbus::Error::MethodError(name, text, _) => {
            let unknown = name.as_str() == "org.freedesktop.systemd1.NoSuchUnit";
            let kind = if unknown { io::ErrorKind::NotFound } else { io::ErrorKind::Other };
            io::Error::new(kind, text.unwrap_or_else(|| name.to_string()))
        }
        zbus::Error::InputOutput(e) => io::Error::new(e.kind(), e.to_string()),
        e => io::Error::other(e),
    }
}
