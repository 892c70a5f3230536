//! What a test asks a daemon that runs.

use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use super::Bosun;
use crate::{BedError, command, socket, wait_until};

impl Bosun {
    /// Runs the command line against this daemon, and returns what it printed.
    ///
    /// # Errors
    /// When it ends with an error.
    pub fn cli(&self, args: &[&str]) -> Result<String, BedError> {
        let mut run = Command::new(&self.options.program);
        run.args(args).arg("--socket").arg(self.socket());
        command::run_command(&mut run)
    }

    /// `GET /v1/WHAT` on the daemon's socket: `pods`, `actors`, `manifests`, `events`, `node`.
    ///
    /// # Errors
    /// When nobody answers, or not with JSON.
    pub fn get(&self, what: &str) -> Result<Value, BedError> {
        let text = socket::request(&self.socket(), "GET", &format!("/v1/{what}"), "")?;
        serde_json::from_str(&text)
            .map_err(|e| BedError::Answer { from: format!("bosun (GET /v1/{what})"), detail: format!("{e}: {text}") })
    }

    /// `GET PATH` on the daemon's socket; the body comes as the daemon writes it.
    ///
    /// # Errors
    /// When nobody answers, or not with 2xx.
    pub fn open(&self, path: &str) -> Result<std::io::BufReader<std::os::unix::net::UnixStream>, BedError> {
        Ok(socket::open(&self.socket(), "GET", path, "")?.body)
    }

    /// The pods as `v1.Pod` objects with their status.
    ///
    /// # Errors
    /// As [`Bosun::get`].
    pub fn pods(&self) -> Result<Vec<Value>, BedError> {
        Ok(items(self.get("pods")?))
    }

    /// The pod of the manifest whose `metadata.name` is `name`.
    ///
    /// # Errors
    /// As [`Bosun::get`]; `Ok(None)` when there is none.
    pub fn pod(&self, name: &str) -> Result<Option<Value>, BedError> {
        let full = format!("{name}-{}", self.options.hostname);
        Ok(self.pods()?.into_iter().find(|p| p["metadata"]["name"] == full.as_str()))
    }

    /// Waits until a pod looks as `good` says. `good` answers `None` while it does not.
    ///
    /// # Errors
    /// After `limit`, with the pod's status as last seen and the end of the log.
    pub fn wait_pod<T>(
        &self,
        name: &str,
        what: &str,
        limit: Duration,
        mut good: impl FnMut(&Value) -> Option<T>,
    ) -> Result<T, BedError> {
        wait_until(&format!("pod {name} {what}"), limit, || {
            let pod = self.pod(name).map_err(|e| e.to_string())?.ok_or("no such pod")?;
            good(&pod).ok_or_else(|| serde_json::to_string_pretty(&pod["status"]).unwrap_or_default())
        })
        .map_err(|e| self.with_log(e))
    }

    /// The actors and their restarts.
    ///
    /// # Errors
    /// As [`Bosun::get`].
    pub fn actors(&self) -> Result<Vec<Value>, BedError> {
        Ok(items(self.get("actors")?))
    }

    /// Sets a fault rule (needs [`BosunOptions::faults`]), as `bosun fault` does.
    ///
    /// # Errors
    /// When the daemon refuses it.
    pub fn fault(&self, rule: &str) -> Result<(), BedError> {
        socket::request(&self.socket(), "POST", "/v1/faults", rule).map(drop)
    }

    /// Forgets all fault rules.
    ///
    /// # Errors
    /// When the daemon refuses.
    pub fn clear_faults(&self) -> Result<(), BedError> {
        socket::request(&self.socket(), "DELETE", "/v1/faults", "").map(drop)
    }
}

/// Lists come as Kubernetes lists (`items`) or as plain arrays.
fn items(value: Value) -> Vec<Value> {
    match value {
        Value::Array(items) => items,
        Value::Object(mut list) => match list.remove("items") {
            Some(Value::Array(items)) => items,
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}
