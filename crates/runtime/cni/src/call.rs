//! One call of a plugin.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};

use crate::error::{CniError, failed};
use crate::result::PluginError;

/// Bytes of an answer, and of words on standard error that are told.
const MAX_OUTPUT: usize = 1 << 20;
const MAX_WORDS: usize = 4096;

/// What a plugin is told beside its configuration.
#[derive(Clone, Debug, Default)]
pub(crate) struct Environment {
    pub(crate) container: String,
    pub(crate) namespace: String,
    pub(crate) interface: String,
    pub(crate) args: String,
}

/// Finds a plugin's program.
pub(crate) fn program(folders: &[PathBuf], plugin: &str) -> Result<PathBuf, CniError> {
    folders
        .iter()
        .map(|f| f.join(plugin))
        .find(|p| p.is_file())
        .ok_or_else(|| CniError::NoPlugin { plugin: plugin.to_owned(), folders: joined(folders).replace(':', ", ") })
}

fn joined(folders: &[PathBuf]) -> String {
    let folders: Vec<String> = folders.iter().map(|f| f.display().to_string()).collect();
    folders.join(":")
}

/// Kills a plugin and what it started, also when whoever waits goes away.
struct Group(Option<Pid>);

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            // It may have ended just now.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

async fn read(from: Option<impl AsyncRead + Unpin>) -> std::io::Result<Vec<u8>> {
    let mut out = Vec::new();
    if let Some(from) = from {
        from.take(MAX_OUTPUT as u64).read_to_end(&mut out).await?;
    }
    Ok(out)
}

/// Calls a plugin with a configuration on its standard input; answers what it wrote.
pub(crate) async fn call(
    folders: &[PathBuf],
    plugin: &str,
    command: &'static str,
    environment: &Environment,
    configuration: &[u8],
    limit: Duration,
) -> Result<Vec<u8>, CniError> {
    let program = program(folders, plugin)?;
    let running = run(&program, folders, command, environment, configuration);
    let late = |_| CniError::Late { plugin: plugin.to_owned(), command };
    let (code, out, words) = tokio::time::timeout(limit, running).await.map_err(late)??;
    if code == Some(0) {
        return Ok(out);
    }
    let error: PluginError = serde_json::from_slice(&out).unwrap_or_default();
    let message = match (error.msg.as_str(), error.details.as_str()) {
        ("", _) => {
            let words = String::from_utf8_lossy(&words[..words.len().min(MAX_WORDS)]).trim().to_owned();
            let ended = code.map_or("a signal".to_owned(), |c| format!("code {c}"));
            format!("it ended with {ended} and says: {words:?}")
        }
        (message, "") => message.to_owned(),
        (message, details) => format!("{message}; {details}"),
    };
    Err(CniError::Plugin { plugin: plugin.to_owned(), command, code: error.code, message })
}

async fn run(
    program: &Path,
    folders: &[PathBuf],
    command: &'static str,
    environment: &Environment,
    configuration: &[u8],
) -> Result<(Option<i32>, Vec<u8>, Vec<u8>), CniError> {
    let named = || program.display().to_string();
    let mut child = tokio::process::Command::new(program)
        .env("CNI_COMMAND", command)
        .env("CNI_CONTAINERID", &environment.container)
        .env("CNI_NETNS", &environment.namespace)
        .env("CNI_IFNAME", &environment.interface)
        .env("CNI_ARGS", &environment.args)
        .env("CNI_PATH", joined(folders))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .map_err(failed(named()))?;
    let mut group = Group(child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw));
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let write = async {
        if let Some(mut stdin) = stdin {
            // A plugin need not read what it does not want.
            let _ = stdin.write_all(configuration).await;
        }
        Ok(())
    };
    let (_, out, words, status) =
        tokio::try_join!(write, read(stdout), read(stderr), child.wait()).map_err(failed(named()))?;
    group.0 = None;
    Ok((status.code(), out, words))
}
