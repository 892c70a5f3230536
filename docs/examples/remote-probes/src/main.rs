//! bosun's own ProbeManager in a process of its own: `remote-probes --at unix:///run/acme/probes.sock`, and a node with
//! `--manager probes=unix:///run/acme/probes.sock`. `docs/replace-a-manager.md` explains it.

#![forbid(unsafe_code)]

use std::process::ExitCode;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use model::Timestamp;
use net_prober::Prober;
use probe_manager::{Config, Deps, ProbeManager};

fn main() -> ExitCode {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let config = Config::new(Timestamp(i64::try_from(since_1970.as_nanos()).unwrap_or(i64::MAX)));
    // Which pods are probed is kept here, while nodes come and go and the actor crashes.
    let deps = Deps::new(Arc::new(Prober::new()));
    bosun_manager_sdk::main(move |crew, outside| {
        let mut deps = deps.clone();
        deps.journal = Some(outside.journal.clone());
        ProbeManager::new(crew, deps, config.clone())
    })
}
