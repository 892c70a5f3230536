//! What a pod of a scenario looks like, and what its programs do: as much of a pod as a generator varies.

use std::time::Duration;

use fakes::runtime::{OnTerm, Program};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// A pod.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Shape {
    /// Name, as in its manifest; no two pods of a scenario have the same.
    pub name: String,
    /// Restart policy.
    pub restart: Restart,
    /// Seconds that it has to end.
    pub grace_s: i64,
    /// Priority; absent: 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<i32>,
    /// On the network of the host.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub host_network: bool,
    /// Init containers, sidecars among them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub init: Vec<Part>,
    /// Containers.
    pub containers: Vec<Part>,
    /// Volumes, which all containers have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub volumes: Vec<Volume>,
}

/// Restart policies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "named as in a pod")]
pub enum Restart {
    Always,
    OnFailure,
    Never,
}

/// A container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Part {
    /// Name; no two containers of a scenario have the same, for the runtime finds their programs by it.
    pub name: String,
    /// Image.
    pub image: String,
    /// An init container that goes on running.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sidecar: bool,
    /// What the n-th attempt does, and the last one for all later attempts; none: it runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub does: Vec<Does>,
    /// What its processes do when they are told to end.
    #[serde(default, skip_serializing_if = "Stop::is_prompt")]
    pub stop: Stop,
    /// Requested processor, in thousandths of a core.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cpu_m: u32,
    /// Limit of memory, in MiB; 0: none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub memory_mi: u32,
    /// Probes: kind (`liveness`, `readiness`, `startup`) and means (`exec`, `http`, `tcp`, `grpc`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub probes: Vec<(ProbeKind, Means)>,
    /// It has a hook after its start.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub post_start: bool,
    /// It has a hook before its stop.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pre_stop: bool,
}

/// Life of one attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum Does {
    /// It runs until it is stopped.
    Runs,
    /// It ends by itself.
    #[serde(rename_all = "camelCase")]
    Exits {
        /// After so many milliseconds.
        after_ms: u64,
        /// With this code.
        code: i32,
    },
    /// It cannot be started, and has ended by that.
    Fails,
    /// It cannot be started, and stays as it was created.
    Refused,
}

/// What a stop signal does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Stop {
    /// Ends it at once.
    #[default]
    Prompt,
    /// Ends it after three seconds with 143.
    Slow,
    /// Nothing.
    Ignored,
}

impl Stop {
    #[allow(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
    fn is_prompt(&self) -> bool {
        *self == Self::Prompt
    }
}

/// Kinds of probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs, reason = "named as in a pod")]
pub enum ProbeKind {
    Liveness,
    Readiness,
    Startup,
}

/// How a probe looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs, reason = "named as in a pod")]
pub enum Means {
    Exec,
    Http,
    Tcp,
    Grpc,
}

/// Kinds of volumes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs, reason = "named as in a pod")]
pub enum Volume {
    EmptyDir,
    Memory,
    HostPath,
    ConfigMap,
    Secret,
    Token,
    DownwardApi,
    Claim,
}

impl Volume {
    /// It is made of an object of the API server, which a static pod may not name.
    #[must_use]
    pub fn is_of_api(self) -> bool {
        matches!(self, Self::ConfigMap | Self::Secret | Self::Token | Self::Claim)
    }

    /// `claim`: the name of its claim, if it has one.
    fn source(self, claim: &str) -> Value {
        match self {
            Self::Claim => json!({ "persistentVolumeClaim": { "claimName": claim } }),
            Self::EmptyDir => json!({ "emptyDir": {} }),
            Self::Memory => json!({ "emptyDir": { "medium": "Memory" } }),
            Self::HostPath => json!({ "hostPath": { "path": "/tmp" } }),
            Self::ConfigMap => json!({ "configMap": { "name": "settings", "defaultMode": 0o644 } }),
            Self::Secret => json!({ "secret": { "secretName": "keys", "defaultMode": 0o644 } }),
            Self::Token => {
                let token = json!({ "serviceAccountToken": { "path": "token", "expirationSeconds": 3600 } });
                json!({ "projected": { "sources": [token], "defaultMode": 0o644 } })
            }
            Self::DownwardApi => {
                let name = json!({ "path": "name", "fieldRef": { "fieldPath": "metadata.name" } });
                json!({ "downwardAPI": { "items": [name], "defaultMode": 0o644 } })
            }
        }
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_zero(n: &u32) -> bool {
    *n == 0
}

/// The claim of a pod's n-th volume.
fn claim(pod: &str, n: usize) -> String {
    format!("{pod}-v{n}")
}

/// The port by which the network's probes find a container: of its name, so that it is the same in every run.
#[must_use]
pub(crate) fn port(container: &str) -> u16 {
    let sum = container.bytes().fold(0_u16, |sum, b| sum.wrapping_mul(31).wrapping_add(b.into()));
    1024 + sum % 40_000
}

impl Part {
    /// What the fake runtime has its attempts do.
    #[must_use]
    pub fn programs(&self) -> Vec<Program> {
        let on_term = match self.stop {
            Stop::Prompt => OnTerm::Exit(Duration::ZERO, 0),
            Stop::Slow => OnTerm::Exit(Duration::from_secs(3), 143),
            Stop::Ignored => OnTerm::Ignore,
        };
        let one = |does: &Does| match *does {
            Does::Runs => Program::forever().on_term(on_term),
            Does::Exits { after_ms, code } => Program::exits(Duration::from_millis(after_ms), code).on_term(on_term),
            Does::Fails => Program::cannot_start("exec: no such file"),
            Does::Refused => Program::is_refused("the runtime is not ready for it"),
        };
        if self.does.is_empty() { vec![one(&Does::Runs)] } else { self.does.iter().map(one).collect() }
    }

    /// What becomes of it if it is started again after failures only.
    fn after_failures(&self) -> Rest {
        let last = |does: &&Does| matches!(does, Does::Runs | Does::Exits { code: 0, .. });
        match self.does.iter().find(last) {
            Some(Does::Exits { .. }) => Rest::Over,
            Some(_) => Rest::Ready,
            None if self.does.is_empty() => Rest::Ready,
            None => Rest::Open,
        }
    }

    /// What its attempts do in the end.
    #[must_use]
    pub fn at_last(&self) -> Does {
        self.does.last().copied().unwrap_or(Does::Runs)
    }

    fn spec(&self, volumes: usize) -> Value {
        let mut spec = json!({ "name": self.name, "image": self.image, "imagePullPolicy": "IfNotPresent" });
        if self.sidecar {
            spec["restartPolicy"] = "Always".into();
        }
        if self.cpu_m > 0 {
            spec["resources"]["requests"]["cpu"] = format!("{}m", self.cpu_m).into();
        }
        if self.memory_mi > 0 {
            let memory = format!("{}Mi", self.memory_mi);
            spec["resources"]["limits"]["memory"] = memory.clone().into();
            spec["resources"]["requests"]["memory"] = memory.into();
        }
        let mounts: Vec<Value> =
            (0..volumes).map(|n| json!({ "name": format!("v{n}"), "mountPath": format!("/v{n}") })).collect();
        if !mounts.is_empty() {
            spec["volumeMounts"] = mounts.into();
        }
        let port = port(&self.name);
        for (kind, means) in &self.probes {
            let mut probe = match means {
                Means::Exec => json!({ "exec": { "command": ["look"] } }),
                Means::Http => json!({ "httpGet": { "port": port, "path": "/", "scheme": "HTTP" } }),
                Means::Tcp => json!({ "tcpSocket": { "port": port } }),
                Means::Grpc => json!({ "grpc": { "port": port, "service": "" } }),
            };
            let defaults =
                [("periodSeconds", 5), ("timeoutSeconds", 1), ("successThreshold", 1), ("failureThreshold", 3)];
            for (field, value) in defaults {
                probe[field] = value.into();
            }
            let field = match kind {
                ProbeKind::Liveness => "livenessProbe",
                ProbeKind::Readiness => "readinessProbe",
                ProbeKind::Startup => "startupProbe",
            };
            spec[field] = probe;
        }
        if self.post_start {
            spec["lifecycle"]["postStart"] = json!({ "exec": { "command": ["hi"] } });
        }
        if self.pre_stop {
            spec["lifecycle"]["preStop"] = json!({ "exec": { "command": ["bye"] } });
        }
        spec
    }
}

impl Shape {
    /// All containers, in the order in which they start.
    pub fn parts(&self) -> impl Iterator<Item = &Part> {
        self.init.iter().chain(&self.containers)
    }

    /// The specification, as JSON.
    #[must_use]
    pub fn spec(&self) -> Value {
        let all = |parts: &[Part]| parts.iter().map(|p| p.spec(self.volumes.len())).collect::<Vec<_>>();
        let mut spec = json!({
            "restartPolicy": self.restart,
            "terminationGracePeriodSeconds": self.grace_s,
            "containers": all(&self.containers),
        });
        if !self.init.is_empty() {
            spec["initContainers"] = all(&self.init).into();
        }
        if let Some(priority) = self.priority {
            spec["priority"] = priority.into();
        }
        if self.host_network {
            spec["hostNetwork"] = true.into();
        }
        let volume = |(n, volume): (usize, &Volume)| {
            let mut source = volume.source(&claim(&self.name, n));
            source["name"] = format!("v{n}").into();
            source
        };
        let volumes: Vec<Value> = self.volumes.iter().enumerate().map(volume).collect();
        if !volumes.is_empty() {
            spec["volumes"] = volumes.into();
        }
        spec
    }

    /// The manifest of it as a static pod.
    #[must_use]
    pub fn manifest(&self) -> String {
        let pod = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": self.name }, "spec": self.spec() });
        pod.to_string()
    }

    /// Names of the claims of its volumes.
    pub fn claims(&self) -> impl Iterator<Item = String> {
        let volumes = self.volumes.iter().enumerate();
        volumes.filter(|(_, volume)| **volume == Volume::Claim).map(|(n, _)| claim(&self.name, n))
    }

    /// What it requests of the processor, in thousandths: the most that it needs at one time, sidecars beside containers.
    #[must_use]
    pub fn cpu_m(&self) -> u32 {
        let (mut beside, mut most) = (0, 0);
        for part in &self.init {
            if part.sidecar {
                beside += part.cpu_m;
                most = most.max(beside);
            } else {
                most = most.max(beside + part.cpu_m);
            }
        }
        most.max(beside + self.containers.iter().map(|p| p.cpu_m).sum::<u32>())
    }
}

/// What becomes of a pod that is left alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// All its containers run and are ready.
    Ready,
    /// It ends.
    Over,
    /// Neither can be said: something of it fails again and again, or waits.
    Open,
}

impl Shape {
    /// What becomes of it, if nobody ends its containers.
    #[must_use]
    pub fn rest(&self) -> Rest {
        let missing = self.parts().any(|p| p.image.starts_with("missing"));
        let held_up = self.init.iter().any(|p| !p.sidecar && !matches!(p.at_last(), Does::Exits { code: 0, .. }));
        let weak = self.init.iter().any(|p| p.sidecar && p.at_last() != Does::Runs);
        if missing || held_up || weak {
            return Rest::Open;
        }
        let all = |is: fn(Does) -> bool| self.containers.iter().all(|p| is(p.at_last()));
        let runs = all(|does| does == Does::Runs);
        match self.restart {
            // An attempt before the last one that ends well is not followed by another.
            Restart::Always if runs => Rest::Ready,
            Restart::Never if self.parts().all(|p| p.does.len() <= 1) => match () {
                () if runs => Rest::Ready,
                () if all(|does| matches!(does, Does::Exits { .. })) => Rest::Over,
                () => Rest::Open,
            },
            Restart::OnFailure => {
                let first = self.containers.first().map_or(Rest::Open, Part::after_failures);
                if self.containers.iter().all(|p| p.after_failures() == first) { first } else { Rest::Open }
            }
            _ => Rest::Open,
        }
    }
}
