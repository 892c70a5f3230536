//! A bed with a daemon in it, and short words for what tests do with them.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;
use testbed::{Bosun, BosunOptions, Cri, Options, TestBed, wait_until};
pub(crate) use testbed::{identity, state};

/// Longer than anything that is not broken takes on two busy cores.
pub(crate) const SOON: Duration = Duration::from_secs(30);

/// Field order is drop order: the daemon ends before its bed.
pub(crate) struct Node {
    pub(crate) bosun: Bosun,
    pub(crate) bed: TestBed,
}

impl Node {
    pub(crate) fn start() -> Self {
        Node::with(BosunOptions::default())
    }

    pub(crate) fn with(options: BosunOptions) -> Self {
        let mut bed = TestBed::start(Options::default()).expect("a bed");
        let bosun = Bosun::start(&mut bed, options).expect("bosun starts");
        Node { bosun, bed }
    }

    /// A node whose runtime is a process of its own, also where others have it within the daemon.
    pub(crate) fn beside_its_runtime() -> Self {
        let mut bed = TestBed::start(Options::default()).expect("a bed");
        let config = serde_json::json!({"containerRuntimeEndpoint": format!("unix://{}", bed.socket().display())});
        let bosun = Bosun::start(&mut bed, BosunOptions { config, ..BosunOptions::default() }).expect("bosun starts");
        Node { bosun, bed }
    }

    /// Puts a pod into the folder: `spec` is the YAML below `spec:`, indented by two.
    pub(crate) fn put(&self, name: &str, spec: &str) {
        self.bosun.put(&format!("{name}.yaml"), &pod(name, spec)).expect("written");
    }

    pub(crate) fn remove(&self, name: &str) {
        self.bosun.remove(&format!("{name}.yaml")).expect("removed");
    }

    /// A folder of the host that containers may mount to leave traces in.
    pub(crate) fn traces(&self) -> PathBuf {
        let dir = self.bed.dir().join("traces");
        std::fs::create_dir_all(&dir).expect("created");
        dir
    }

    /// Words of the file `trace` in the traces folder.
    pub(crate) fn trace(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.traces().join("trace")).unwrap_or_default();
        text.split_whitespace().map(str::to_owned).collect()
    }

    pub(crate) fn wait_trace(&self, what: &str, good: impl Fn(&[String]) -> bool) -> Vec<String> {
        wait_until(what, SOON, || {
            let trace = self.trace();
            if good(&trace) { Ok(trace) } else { Err(format!("{trace:?}\n{}", self.bosun.log())) }
        })
        .unwrap_or_else(|e| panic!("{e}"))
    }

    pub(crate) fn wait<T>(&self, name: &str, what: &str, good: impl FnMut(&Value) -> Option<T>) -> T {
        self.bosun.wait_pod(name, what, SOON, good).unwrap_or_else(|e| panic!("{e}"))
    }

    pub(crate) fn wait_phase(&self, name: &str, phase: &str) -> Value {
        self.wait(name, &format!("to be {phase}"), |p| (p["status"]["phase"] == phase).then(|| p.clone()))
    }

    /// Waits until each container runs; answers the pod.
    pub(crate) fn wait_running(&self, name: &str) -> Value {
        self.wait(name, "to run", |p| {
            let all = p["status"]["containerStatuses"].as_array()?;
            let runs = !all.is_empty() && all.iter().all(|c| c["state"]["running"].is_object());
            (runs && p["status"]["phase"] == "Running").then(|| p.clone())
        })
    }

    /// Waits until neither the daemon shows the pod nor the runtime has anything of it.
    pub(crate) fn wait_gone(&self, name: &str) {
        let full = format!("{name}-bed");
        wait_until(&format!("pod {name} to be gone"), SOON, || {
            if let Some(pod) = self.bosun.pod(name).map_err(|e| e.to_string())? {
                return Err(format!("{}\n{}", pod["status"], self.bosun.log()));
            }
            let left = self.bed.sandboxes().map_err(|e| e.to_string())?.contains(&full);
            if left { Err(format!("its sandbox is left\n{}", self.bosun.log())) } else { Ok(()) }
        })
        .unwrap_or_else(|e| panic!("{e}"));
    }

    /// A connection of its own to the runtime; must be made inside of [`block`].
    pub(crate) fn cri(&self) -> Cri {
        Cri::new(&self.bed.socket(), self.bed.cgroup_root(), &self.bed.dir().join("logs"))
    }

    /// What the runtime itself says: containers by pod and name, with attempt and state (1 = running).
    pub(crate) fn runtime(&self) -> Vec<(String, String, u32, i32)> {
        self.bed.containers().unwrap_or_else(|e| panic!("{e}"))
    }
}

/// Runs one call to its end; its connection dies with it.
pub(crate) fn block<F: Future>(work: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(work)
}

/// A manifest: `spec` is the YAML below `spec:`, indented by two.
pub(crate) fn pod(name: &str, spec: &str) -> String {
    format!("apiVersion: v1\nkind: Pod\nmetadata:\n  name: {name}\nspec:\n{spec}")
}

/// Containers with busybox's shell; `extra` lines are YAML fields of the container, already indented by four.
pub(crate) fn shell(name: &str, script: &str, extra: &str) -> String {
    let image = testbed::BUSYBOX_IMAGES[0];
    let script = serde_json::Value::from(script);
    format!("  - name: {name}\n    image: {image}\n    command: [\"sh\", \"-c\", {script}]\n{extra}")
}
