//! The host's iptables, by its programs.

use std::io;
use std::process::Stdio;
use std::time::Duration;

use async_trait::async_trait;
use ports::iptables::{Family, Iptables, IptablesError};
use tokio::process::Command;

/// How long a call waits for the lock of others, in seconds.
const LOCK: &str = "5";
/// How long a call may take, its wait included.
const LIMIT: Duration = Duration::from_secs(15);
/// What is kept of a program's complaint, in bytes.
const MAX_WORDS: usize = 400;

/// `iptables` and `ip6tables` of the daemon's `PATH`, version 1.4.22 or newer (for `-w SECONDS`).
#[derive(Debug, Clone, Copy, Default)]
pub struct IptablesProgram;

#[async_trait]
impl Iptables for IptablesProgram {
    async fn run(&self, family: Family, args: &[&str]) -> Result<(), IptablesError> {
        let name = match family {
            Family::V4 => "iptables",
            Family::V6 => "ip6tables",
        };
        let mut call = Command::new(name);
        call.args(["-w", LOCK]).args(args).stdin(Stdio::null()).kill_on_drop(true);
        let failed = |why: String| IptablesError::Failed(format!("{name} {}: {why}", args.join(" ")));
        let done = match tokio::time::timeout(LIMIT, call.output()).await {
            Err(_) => return Err(failed(format!("no answer within {} s", LIMIT.as_secs()))),
            Ok(Err(e)) if e.kind() == io::ErrorKind::NotFound => return Err(IptablesError::Missing),
            Ok(Err(e)) => return Err(failed(e.to_string())),
            Ok(Ok(done)) => done,
        };
        let words = String::from_utf8_lossy(&done.stderr[..done.stderr.len().min(MAX_WORDS)]).trim().to_owned();
        match done.status.code() {
            Some(0) => Ok(()),
            Some(1) => Err(IptablesError::No(words)),
            _ => Err(failed(format!("{}: {words}", done.status))),
        }
    }
}
