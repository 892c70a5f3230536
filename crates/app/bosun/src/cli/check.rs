//! `bosun check-config`: everything that would keep the node from starting, without starting it.

use std::path::Path;
use std::process::ExitCode;

use api_client::bootstrap::{self, Decision};
use api_client::kubeconfig::{self, Problem};
use node_config::flags::{self, Asked};
use node_config::{ConfigError, Flags, NodeConfig, Warning};
use pull_credentials::provider_config;
use serde::Serialize;

use console::show::{Output, print, structured, table};

use crate::own_runtime::OwnRuntime;

mod words;

const HELP: &str = "\
Says everything that is wrong with a configuration. Starts nothing, writes nothing.

Usage:
  bosun check-config [FILE] [flags of bosun run] [--env-file FILE]... [-o json|yaml]

  FILE              short for --config FILE
  --env-file FILE   takes the flags that an environment file of systemd holds (names that end with _ARGS)
  -o, --output      form of the answer; a table unless given

Examples:
  bosun check-config /etc/bosun/bosun.yaml
  bosun check-config --config /var/lib/kubelet/config.yaml --kubeconfig /etc/kubernetes/kubelet.conf \\
      --env-file /var/lib/kubelet/kubeadm-flags.env --env-file /etc/default/kubelet

Exit code 1 when the node would not start with it.";

/// One line of the answer.
#[derive(Debug, PartialEq, Serialize)]
struct Finding {
    /// `error` or `warning`.
    level: &'static str,
    /// File, or flag with its dashes.
    at: String,
    /// Key path in it; empty when the whole is meant.
    key: String,
    /// The value, where there is one to show.
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<String>,
    reason: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    allowed: Option<String>,
}

#[derive(Debug, Serialize)]
struct Answer {
    /// Whether the node would start.
    ok: bool,
    /// Files that were read.
    files: Vec<String>,
    findings: Vec<Finding>,
}

impl From<Warning> for Finding {
    fn from(w: Warning) -> Self {
        Self { level: "warning", at: w.origin, key: w.path, value: None, reason: w.reason, allowed: None }
    }
}

impl From<ConfigError> for Finding {
    fn from(e: ConfigError) -> Self {
        Self { level: "error", at: e.origin, key: e.path, value: e.value, reason: e.reason, allowed: e.allowed }
    }
}

impl From<Problem> for Finding {
    fn from(p: Problem) -> Self {
        // The daemon starts with a certificate that is over: it cares for the pods that are here.
        let level = if p.out_of_date { "warning" } else { "error" };
        Self {
            level,
            at: p.file.display().to_string(),
            key: p.path,
            value: p.value,
            reason: p.reason,
            allowed: p.allowed,
        }
    }
}

impl From<provider_config::ConfigError> for Finding {
    fn from(e: provider_config::ConfigError) -> Self {
        Self { key: e.key, ..Self::of_file(&e.file, e.reason) }
    }
}

impl Finding {
    fn of_file(file: &Path, reason: String) -> Self {
        Self { at: file.display().to_string(), ..Self::of_flags(reason, None) }
    }

    fn of_flags(reason: String, hint: Option<String>) -> Self {
        let at = "command line".to_owned();
        Self { level: "error", at, key: String::new(), value: None, reason, allowed: hint }
    }
}

pub(crate) fn check(words: &[String]) -> ExitCode {
    let (output, answer) = match words::split(words) {
        Err(e) => {
            eprintln!("Error: {e}");
            return ExitCode::FAILURE;
        }
        Ok(words::Words { help: true, .. }) => {
            print(HELP);
            return ExitCode::SUCCESS;
        }
        Ok(words) => (words.output, judge(&words.flags)),
    };
    show(output, &answer);
    if answer.ok { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn judge(words: &[String]) -> Answer {
    match flags::parse(words) {
        Ok(Asked::Run(flags)) => judge_flags(&flags),
        Ok(_) => Answer { ok: true, files: Vec::new(), findings: Vec::new() },
        Err(e) => {
            let finding = Finding::of_flags(e.to_string(), e.hint);
            Answer { ok: false, files: Vec::new(), findings: vec![finding] }
        }
    }
}

fn judge_flags(flags: &Flags) -> Answer {
    let mut findings = Vec::new();
    let mut files: Vec<String> = Vec::new();
    match node_config::configure(flags) {
        Ok(configured) => {
            files.extend(configured.files.iter().map(|f| f.display().to_string()));
            findings.extend(configured.warnings.into_iter().map(Finding::from));
            own_runtime(&configured.config, &mut files, &mut findings);
        }
        Err(refused) => {
            findings.extend(refused.errors.into_iter().map(Finding::from));
            findings.extend(refused.warnings.into_iter().map(Finding::from));
        }
    }
    match crate::providers::load(flags) {
        Ok(_) => files.extend(flags.image_credential_provider_config.iter().map(|f| f.display().to_string())),
        Err(errors) => findings.extend(errors.into_iter().map(Finding::from)),
    }
    kubeconfigs(flags, &mut files, &mut findings);
    findings.sort_by_key(|f| f.level);
    Answer { ok: findings.iter().all(|f| f.level != "error"), files, findings }
}

/// Its file and its programs, where the daemon is to serve the runtime itself.
fn own_runtime(config: &NodeConfig, files: &mut Vec<String>, findings: &mut Vec<Finding>) {
    let file = config.runtime.embedded().and_then(|own| own.file);
    files.extend(file.as_ref().map(|f| f.display().to_string()));
    if let Err(e) = OwnRuntime::of_daemon(config) {
        let at = config.runtime.container_runtime_endpoint.clone();
        findings.push(Finding { at, ..Finding::of_flags(format!("{e:#}"), None) });
    }
}

/// What the daemon would do with its kubeconfigs now.
fn kubeconfigs(flags: &Flags, files: &mut Vec<String>, findings: &mut Vec<Finding>) {
    let Some(path) = &flags.kubeconfig else {
        if flags.bootstrap_kubeconfig.is_some() {
            let reason = "needs --kubeconfig: the file that the bootstrap writes".to_owned();
            findings.push(Finding { at: "--bootstrap-kubeconfig".to_owned(), ..Finding::of_flags(reason, None) });
        }
        return;
    };
    let now = jiff::Timestamp::now();
    let decision = bootstrap::decide(path, flags.bootstrap_kubeconfig.as_deref(), now);
    let problems = match (decision, &flags.bootstrap_kubeconfig) {
        (Decision::Bootstrap { why }, Some(begin)) => {
            let reason = format!("is not used yet, the node would ask for a certificate: {why}");
            findings.push(Finding { level: "warning", ..Finding::of_file(path, reason) });
            files.push(begin.display().to_string());
            bootstrap::read_bootstrap(begin).err()
        }
        _ => {
            files.push(path.display().to_string());
            kubeconfig::read(path).err()
        }
    };
    findings.extend(problems.into_iter().flatten().map(Finding::from));
}

fn show(output: Option<Output>, answer: &Answer) {
    match structured(output, answer) {
        Ok(true) => return,
        Ok(false) => {}
        Err(e) => eprintln!("bosun: {e:#}"),
    }
    if !answer.findings.is_empty() {
        let rows = answer.findings.iter().map(|f| {
            let what = match &f.allowed {
                Some(allowed) => format!("{} (allowed: {allowed})", f.reason),
                None => f.reason.clone(),
            };
            vec![f.level.to_owned(), f.at.clone(), f.key.clone(), f.value.clone().unwrap_or_default(), what]
        });
        table(&["LEVEL", "WHERE", "KEY", "VALUE", "WHAT"], rows.collect());
    }
    let count = |level| answer.findings.iter().filter(|f| f.level == level).count();
    let verdict = if answer.ok { "fine" } else { "refused" };
    print(&format!("{verdict}: {} error(s), {} warning(s)", count("error"), count("warning")));
}

#[cfg(test)]
mod tests;
