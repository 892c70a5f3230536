//! Credential provider plugins as programs of this machine (interfaces 8.6).
//!
//! Owns starting, feeding, reading and killing them. Never looks into what they say, keeps nothing, and lets none of them
//! outlive its caller or write without bounds.

#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};

use async_trait::async_trait;
use ports::credential::{CredentialPlugin, PluginCall, PluginError};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};

#[cfg(test)]
mod tests;

/// Most bytes of an answer.
const STDOUT_MAX: u64 = 4 << 20;
/// Bytes of its complaints that are kept.
const STDERR_MAX: u64 = 16 << 10;

/// Plugins of one folder.
#[derive(Clone, Debug)]
pub struct ExecPlugins {
    folder: PathBuf,
}

impl ExecPlugins {
    /// Plugins of this folder (`--image-credential-provider-bin-dir`).
    #[must_use]
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }
}

#[async_trait]
impl CredentialPlugin for ExecPlugins {
    async fn run(&self, call: PluginCall) -> Result<Vec<u8>, PluginError> {
        let name = call.name.clone();
        if name.is_empty() || name == "." || name == ".." || name.contains('/') {
            return Err(PluginError(format!("{name:?} cannot be the name of a plugin")));
        }
        let failed = |why: &dyn std::fmt::Display| PluginError(format!("credential provider plugin {name}: {why}"));
        let mut child = Command::new(self.folder.join(&name))
            .args(&call.args)
            .envs(call.env.iter().map(|(k, v)| (k, v)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|e| failed(&e))?;
        let out = match tokio::time::timeout(call.deadline, exchange(&mut child, &call.stdin)).await {
            Ok(out) => out.map_err(|e| failed(&e))?,
            Err(_) => {
                let _gone_by_itself: std::io::Result<()> = child.kill().await;
                return Err(failed(&"context deadline exceeded"));
            }
        };
        let complaints = String::from_utf8_lossy(&out.stderr);
        let complaints = complaints.trim();
        if !out.status.success() {
            return Err(failed(&format!("{}: {complaints}", exit_text(out.status))));
        }
        if out.stdout.len() as u64 > STDOUT_MAX {
            return Err(failed(&format!("wrote more than {STDOUT_MAX} bytes")));
        }
        Ok(out.stdout)
    }
}

struct Said {
    status: ExitStatus,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

/// Feeds it and reads it at the same time, so that neither side waits for the other.
async fn exchange(child: &mut Child, stdin: &[u8]) -> std::io::Result<Said> {
    let (to, out, err) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let feed = async {
        if let Some(mut to) = to {
            // A plugin that does not read its request ends before it is written.
            let _not_read: std::io::Result<()> = to.write_all(stdin).await;
        }
    };
    let ((), stdout, stderr) = tokio::join!(feed, read(out, STDOUT_MAX + 1), read(err, STDERR_MAX));
    Ok(Said { stdout: stdout?, stderr: stderr?, status: child.wait().await? })
}

async fn read(from: Option<impl AsyncRead + Unpin>, max: u64) -> std::io::Result<Vec<u8>> {
    let mut kept = Vec::new();
    let Some(mut from) = from else { return Ok(kept) };
    (&mut from).take(max).read_to_end(&mut kept).await?;
    // What is too much is read as well, so that the plugin can end.
    tokio::io::copy(&mut from, &mut tokio::io::sink()).await?;
    Ok(kept)
}

/// As Go puts it.
fn exit_text(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit status {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => status.to_string(),
    }
}
