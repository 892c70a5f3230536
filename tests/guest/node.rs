//! A guest with a daemon in it, and short words for what tests do with them.

use std::time::Duration;

use serde_json::{Value, json};
use testbed::{BUSYBOX_IMAGES, Guest, GuestOptions, Image, RuntimeKind, let_pass, wait_until};

/// A pod start takes 5 to 16 s, and other guests may run beside this one.
pub(crate) const SOON: Duration = Duration::from_secs(150);

/// Between two looks.
const LOOKS: Duration = Duration::from_millis(700);

/// Where the node keeps its pods.
pub(crate) const PODS: &str = "/var/lib/kubelet/pods";

pub(crate) struct Node {
    pub(crate) guest: Guest,
}

impl Node {
    /// A guest with a container runtime and bosun, which answers.
    pub(crate) fn start() -> Self {
        let node = Node::without_services();
        node.up();
        node
    }

    pub(crate) fn without_services() -> Self {
        Node::with_memory(GuestOptions::default().memory_mib)
    }

    /// One without services, with so much memory.
    pub(crate) fn with_memory(memory_mib: u32) -> Self {
        let options = GuestOptions { memory_mib, ..GuestOptions::default() };
        let node = Node { guest: Guest::boot(options).unwrap_or_else(|e| panic!("{e}")) };
        if has_own_runtime() {
            node.take_own_runtime();
        }
        node
    }

    /// A guest of systemd, which makes the cgroups, with bosun as the service that nodes have and on its own runtime; it answers.
    pub(crate) fn of_systemd() -> Self {
        let options = GuestOptions { systemd: true, ..GuestOptions::default() };
        let node = Node { guest: Guest::boot(options).unwrap_or_else(|e| panic!("{e}")) };
        node.take_own_runtime();
        node.configure(&json!({"cgroupDriver": "systemd", "podPidsLimit": 200}));
        node.sh("systemctl start bosun");
        node.wait_answer();
        node
    }

    /// The daemon is to run pods by itself, on these images; containerd has them on the guest's disk.
    fn take_own_runtime(&self) {
        for image in Image::of_pods().expect("images") {
            image.write_archive(&self.guest.share_dir()).unwrap_or_else(|e| panic!("{e}"));
        }
        self.sh("set -e; for image in /share/*.tar; do bosun image import $image; done");
        self.configure(&json!({"containerRuntimeEndpoint": "embedded://"}));
    }

    /// Starts the runtime and bosun, and waits for bosun.
    pub(crate) fn up(&self) {
        self.up_with("");
    }

    /// As [`Node::up`], with flags of the daemon.
    pub(crate) fn up_with(&self, flags: &str) {
        let runtime = if has_own_runtime() { "" } else { "svc containerd; " };
        self.sh(&format!("{runtime}svc bosun {flags}"));
        self.wait_answer();
    }

    /// Lays fields over the daemon's configuration, which is on the disk when this returns.
    pub(crate) fn configure(&self, fields: &Value) {
        let path = "/etc/kubernetes/kubelet.json";
        let mut all: Value = serde_json::from_str(&self.sh(&format!("cat {path}"))).expect("JSON");
        let fields = fields.as_object().expect("an object").clone();
        all.as_object_mut().expect("an object").extend(fields);
        self.guest.put(path, &all.to_string()).unwrap_or_else(|e| panic!("{e}"));
        self.sh(&format!("sync {path} /etc/kubernetes"));
    }

    /// `kill -9` of the daemon alone, and another one.
    pub(crate) fn restart_bosun(&self) {
        self.sh("svc kill bosun; svc bosun");
        self.wait_answer();
    }

    pub(crate) fn wait_answer(&self) {
        self.wait("bosun to answer", || self.ask("actors").map(drop));
    }

    /// Power off and on; the services are up again when this returns.
    pub(crate) fn cut_power(&mut self) {
        self.guest.power_on().unwrap_or_else(|e| panic!("{e}"));
        self.up();
    }

    /// Copies a program of ours to `/share` in the guest.
    pub(crate) fn bring(&self, program: &str) -> String {
        let name = program.rsplit_once('/').map_or(program, |(_, name)| name);
        std::fs::copy(program, self.guest.share_dir().join(name)).unwrap_or_else(|e| panic!("{program}: {e}"));
        format!("/share/{name}")
    }

    pub(crate) fn sh(&self, script: &str) -> String {
        self.guest.sh(script).unwrap_or_else(|e| panic!("{e}\n{}", self.log()))
    }

    pub(crate) fn log(&self) -> String {
        let logs = "tail -n 40 /var/log/bosun.log /var/log/kubelet.log 2>&1; journalctl -qn 40 -u bosun 2>&1";
        let ran = self.guest.run(logs, Duration::from_secs(20));
        ran.map_or_else(|e| e.to_string(), |r| r.output)
    }

    pub(crate) fn wait<T>(&self, what: &str, mut good: impl FnMut() -> Result<T, String>) -> T {
        // Each look takes the guest's only processor from those who are waited for.
        let look = || good().inspect_err(|_| let_pass(LOOKS));
        wait_until(what, SOON, look).unwrap_or_else(|e| panic!("{e}\n{}", self.log()))
    }

    /// `GET /v1/WHAT` on the daemon's socket.
    pub(crate) fn ask(&self, what: &str) -> Result<Value, String> {
        let script = format!("curl -sSf --max-time 20 --unix-socket /run/bosun/bosun.sock http://bosun/v1/{what}");
        let text = self.guest.sh(&script).map_err(|e| e.to_string())?;
        serde_json::from_str(&text).map_err(|e| format!("{e}: {text}"))
    }

    /// Puts a pod into the folder: `spec` is the YAML below `spec:`, indented by two.
    pub(crate) fn put(&self, name: &str, spec: &str) {
        let manifest = format!(
            "apiVersion: v1\nkind: Pod\nmetadata:\n  name: {name}\nspec:\n  terminationGracePeriodSeconds: 1\n{spec}"
        );
        let path = format!("/etc/kubernetes/manifests/{name}.yaml");
        self.guest.put(&path, &manifest).unwrap_or_else(|e| panic!("{e}"));
    }

    pub(crate) fn remove(&self, name: &str) {
        self.sh(&format!("rm /etc/kubernetes/manifests/{name}.yaml"));
    }

    pub(crate) fn pod(&self, name: &str) -> Result<Option<Value>, String> {
        let full = format!("{name}-guest");
        let list = self.ask("pods")?;
        let items = list["items"].as_array().or(list.as_array()).ok_or("no list of pods")?;
        Ok(items.iter().find(|p| p["metadata"]["name"] == full.as_str()).cloned())
    }

    /// Waits until each container runs; answers the pod.
    pub(crate) fn wait_running(&self, name: &str) -> Value {
        self.wait(&format!("pod {name} to run"), || {
            let pod = self.pod(name)?.ok_or("no such pod")?;
            let all = pod["status"]["containerStatuses"].as_array().cloned().unwrap_or_default();
            let runs = !all.is_empty() && all.iter().all(|c| c["state"]["running"].is_object());
            if runs && pod["status"]["phase"] == "Running" { Ok(pod) } else { Err(pod["status"].to_string()) }
        })
    }

    pub(crate) fn wait_gone(&self, name: &str) {
        self.wait(&format!("pod {name} to go"), || match self.pod(name)? {
            None => Ok(()),
            Some(pod) => Err(pod["status"].to_string()),
        });
    }

    /// Waits until the newest events about a pod hold this text.
    pub(crate) fn wait_event(&self, pod: &str, reason: &str, text: &str) {
        let full = format!("{pod}-guest");
        self.wait(&format!("event {reason} of {pod} with {text:?}"), || {
            let events = self.ask("events")?;
            let all = events.as_array().or(events["items"].as_array()).cloned().unwrap_or_default();
            let hit = all.iter().any(|e| {
                let e = e.to_string();
                e.contains(&full) && e.contains(reason) && e.contains(text)
            });
            if hit { Ok(()) } else { Err(events.to_string()) }
        });
    }
}

/// Whether pods run on bosun's own runtime, within the daemon.
pub(crate) fn has_own_runtime() -> bool {
    RuntimeKind::of_environment() != RuntimeKind::Containerd
}

/// The UID of a pod.
pub(crate) fn uid(pod: &Value) -> &str {
    pod["metadata"]["uid"].as_str().expect("a UID")
}

/// Containers with busybox's shell; `extra` lines are YAML fields of the container, already indented by four.
pub(crate) fn shell(name: &str, script: &str, extra: &str) -> String {
    let script = Value::from(script);
    format!("  - name: {name}\n    image: {}\n    command: [\"sh\", \"-c\", {script}]\n{extra}", BUSYBOX_IMAGES[0])
}
