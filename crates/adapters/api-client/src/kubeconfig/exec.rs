//! `users[].user.exec`: a program that hands out credentials.

use std::path::PathBuf;

use serde_json::Value;

use super::fields::Field;
use super::problem::Problem;

/// Version of `client.authentication.k8s.io` that is spoken with the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "named after the versions")]
pub enum ExecVersion {
    V1,
    V1Beta1,
}

impl ExecVersion {
    /// As it is written.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V1 => "client.authentication.k8s.io/v1",
            Self::V1Beta1 => "client.authentication.k8s.io/v1beta1",
        }
    }
}

/// The program and how it is called.
#[derive(Clone, PartialEq, Eq)]
pub struct ExecPlugin {
    /// API version.
    pub version: ExecVersion,
    /// Absolute, or a name that is looked up in `PATH`.
    pub command: PathBuf,
    /// Arguments.
    pub args: Vec<String>,
    /// Added to the environment.
    pub env: Vec<(String, String)>,
    /// Told when the program is not there.
    pub install_hint: String,
    /// `spec.cluster` of the question, when the program wants to know the cluster.
    pub cluster: Option<Value>,
}

impl std::fmt::Debug for ExecPlugin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Neither arguments nor environment: people put secrets there.
        f.debug_struct("ExecPlugin").field("command", &self.command).finish_non_exhaustive()
    }
}

/// Reads `exec`; `cluster` is the cluster as the program would be told of it.
pub(super) fn read(field: &Field<'_>, cluster: Value, problems: &mut Vec<Problem>) -> Option<ExecPlugin> {
    let before = problems.len();
    if !field.value.is_object() {
        problems.push(field.problem("is not a mapping"));
        return None;
    }
    let version = version(field, problems);
    let command = field.text("command", problems).filter(|c| !c.is_empty());
    if command.is_none() && problems.len() == before {
        problems.push(field.missing("command"));
    }
    let mode = field.text("interactiveMode", problems);
    match (mode.as_deref(), version) {
        (None | Some(""), Some(ExecVersion::V1)) => {
            problems.push(field.missing("interactiveMode").allowed("Never, IfAvailable"));
        }
        (Some("Always"), _) => {
            let problem = field.child("interactiveMode").problem("a daemon has no terminal to ask on");
            problems.push(problem.value("Always").allowed("Never, IfAvailable"));
        }
        (None | Some("" | "Never" | "IfAvailable"), _) => {}
        (Some(other), _) => {
            let problem = field.child("interactiveMode").problem("is not a mode");
            problems.push(problem.value(other).allowed("Never, IfAvailable"));
        }
    }
    let args = field.child("args").texts(problems);
    let env = env(&field.child("env"), problems);
    let told = field.flag("provideClusterInfo", problems);
    let install_hint = field.text("installHint", problems).unwrap_or_default();
    if problems.len() > before {
        return None;
    }
    let command = command?;
    // A name with a slash is relative to the kubeconfig, a plain name is looked up.
    let command = if command.contains('/') { field.beside(&command) } else { PathBuf::from(command) };
    Some(ExecPlugin { version: version?, command, args, env, install_hint, cluster: told.then_some(cluster) })
}

fn version(field: &Field<'_>, problems: &mut Vec<Problem>) -> Option<ExecVersion> {
    const ALLOWED: &str = "client.authentication.k8s.io/v1, client.authentication.k8s.io/v1beta1";
    match field.text("apiVersion", problems).as_deref() {
        Some("client.authentication.k8s.io/v1") => Some(ExecVersion::V1),
        Some("client.authentication.k8s.io/v1beta1") => Some(ExecVersion::V1Beta1),
        None | Some("") => {
            problems.push(field.missing("apiVersion").allowed(ALLOWED));
            None
        }
        Some(other) => {
            let problem = field.child("apiVersion").problem("is not a version that is spoken");
            problems.push(problem.value(other).allowed(ALLOWED));
            None
        }
    }
}

fn env(field: &Field<'_>, problems: &mut Vec<Problem>) -> Vec<(String, String)> {
    let mut env = Vec::new();
    for entry in field.elements(problems) {
        match entry.text("name", problems) {
            Some(name) if !name.is_empty() && !name.contains(['=', '\0']) => {
                env.push((name, entry.text("value", problems).unwrap_or_default()));
            }
            Some(name) if !name.is_empty() => {
                problems.push(entry.child("name").problem("is not the name of a variable").value(name));
            }
            _ => problems.push(entry.missing("name")),
        }
    }
    env
}
