//! The daemon under test: `bosun run` on the bed's manifest folder, and its command line.

use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::bed::tail;
use crate::error::file;
use crate::process::ProcessId;
use crate::{BedError, TestBed, command, socket, wait_until};

/// How the daemon is started.
#[derive(Debug, Clone)]
pub struct BosunOptions {
    /// The program. Default: `$BOSUN_BIN`.
    pub program: PathBuf,
    /// Node name; ends the names of static pods.
    pub hostname: String,
    /// Starts with `--enable-faults`.
    pub faults: bool,
    /// Fields laid over the bed's KubeletConfiguration.
    pub config: Value,
    /// What the daemon logs (`--log`).
    pub log: String,
    /// More of its command line.
    pub flags: Vec<String>,
    /// More of its environment.
    pub env: Vec<(String, String)>,
}

impl Default for BosunOptions {
    fn default() -> Self {
        BosunOptions {
            program: std::env::var_os("BOSUN_BIN").map_or_else(|| "bosun".into(), PathBuf::from),
            hostname: "bed".into(),
            faults: false,
            config: Value::Null,
            log: "info".into(),
            flags: Vec::new(),
            env: Vec::new(),
        }
    }
}

/// What the daemon looks for in its folder of kernel parameters.
const FRESH_SYSCTLS: [(&str, &str); 6] = [
    ("vm/overcommit_memory", "0"),
    ("vm/panic_on_oom", "0"),
    ("kernel/panic", "0"),
    ("kernel/panic_on_oops", "0"),
    ("kernel/keys/root_maxkeys", "200"),
    ("kernel/keys/root_maxbytes", "20000"),
];

/// A daemon that runs, or ran, in a bed.
pub struct Bosun {
    options: BosunOptions,
    dir: PathBuf,
    child: Option<Child>,
    kept: bool,
}

impl Bosun {
    /// Starts the daemon and waits until its socket answers.
    ///
    /// # Errors
    /// When it ends or does not answer within 20 s; the end of its log is in the error.
    pub fn start(bed: &mut TestBed, options: BosunOptions) -> Result<Self, BedError> {
        let text = kubelet(bed, &options.config);
        bed.write("kubelet.yaml", &text)?;
        let mut bosun = Bosun { options, dir: bed.dir().to_owned(), child: None, kept: false };
        bosun.start_again(bed)?;
        Ok(bosun)
    }

    /// Starts the daemon after it ended or was killed.
    ///
    /// # Errors
    /// As [`Bosun::start`].
    pub fn start_again(&mut self, bed: &mut TestBed) -> Result<(), BedError> {
        self.launch(bed)?;
        wait_until("bosun to answer on its socket", Duration::from_secs(20), || {
            if let Some(Ok(Some(status))) = self.child.as_mut().map(Child::try_wait) {
                return Err(format!("it ended with {status}"));
            }
            self.get("actors").map(drop).map_err(|e| e.to_string())
        })
        .map_err(|e| self.with_log(e))
    }

    /// Starts the daemon and does not wait.
    ///
    /// # Errors
    /// When the program cannot be started.
    pub fn launch(&mut self, bed: &mut TestBed) -> Result<(), BedError> {
        let mut start = Command::new(&self.options.program);
        start.arg("run").arg("--config").arg(self.dir.join("kubelet.yaml"));
        start.arg("--root-dir").arg(self.dir.join("node")).arg("--socket").arg(self.socket());
        start.args(["--hostname-override", &self.options.hostname, "--node-ip", &bed.node_ip()]);
        start.args(["--log", &self.options.log]);
        start.arg("--sysctl-dir").arg(self.sysctls()?);
        start.arg("--container-logs-dir").arg(self.dir.join("container-logs"));
        if self.options.faults {
            start.arg("--enable-faults");
        }
        start.args(&self.options.flags);
        start.envs(self.options.env.iter().map(|(name, value)| (name, value)));
        self.child = Some(bed.spawn_logged(&mut start, &self.log_path())?);
        Ok(())
    }

    /// How it is started; changes count from the next start on.
    pub fn options_mut(&mut self) -> &mut BosunOptions {
        &mut self.options
    }

    /// The daemon's own socket.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.dir.join("bosun.sock")
    }

    /// Where its log goes.
    #[must_use]
    pub fn log_path(&self) -> PathBuf {
        self.dir.join("bosun.log")
    }

    /// Kernel parameters for the daemon alone, as a fresh kernel has them; the machine's own stay as they are.
    ///
    /// # Errors
    /// When the folder cannot be made.
    pub fn sysctls(&self) -> Result<PathBuf, BedError> {
        let dir = self.dir.join("sysctl");
        for (name, value) in FRESH_SYSCTLS {
            let path = dir.join(name);
            if !path.exists() {
                let folder = path.parent().unwrap_or(&dir);
                file("mkdir", folder, std::fs::create_dir_all(folder))?;
                file("write", &path, std::fs::write(&path, value))?;
            }
        }
        Ok(dir)
    }

    /// The last lines of its log.
    #[must_use]
    pub fn log(&self) -> String {
        tail(&self.log_path(), 40)
    }

    fn with_log(&self, error: BedError) -> BedError {
        match error {
            BedError::Timeout { what, limit, detail } => {
                BedError::Timeout { what, limit, detail: format!("{detail}\n{}", self.log()) }
            }
            e => e,
        }
    }

    /// Pid while it runs.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// The manifest folder.
    #[must_use]
    pub fn manifests(&self) -> PathBuf {
        self.dir.join("manifests")
    }

    /// Puts a manifest into the folder as a careful user does: complete at once.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn put(&self, name: &str, manifest: &str) -> Result<(), BedError> {
        let hidden = self.manifests().join(format!(".{name}.new"));
        let path = self.manifests().join(name);
        file("write", &hidden, std::fs::write(&hidden, manifest))?;
        file("rename", &path, std::fs::rename(&hidden, &path))
    }

    /// Removes a manifest from the folder.
    ///
    /// # Errors
    /// When it is not there.
    pub fn remove(&self, name: &str) -> Result<(), BedError> {
        let path = self.manifests().join(name);
        file("remove", &path, std::fs::remove_file(&path))
    }

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

    /// Leaves the daemon running when this is dropped (for a bed with [`crate::Options::keep`]).
    pub fn keep(&mut self) {
        self.kept = true;
    }

    /// `kill -9`.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// SIGTERM, then waits for the end.
    ///
    /// # Errors
    /// When it does not end in time; it is killed then.
    pub fn terminate(&mut self, limit: Duration) -> Result<std::process::ExitStatus, BedError> {
        if let Some(p) = self.pid().and_then(|pid| i32::try_from(pid).ok()).and_then(ProcessId::of) {
            p.signal(Signal::TERM);
        }
        self.ended(limit)
    }

    /// Waits until it has ended, by itself or as it was asked to.
    ///
    /// # Errors
    /// When it does not end in time; it is killed then.
    pub fn ended(&mut self, limit: Duration) -> Result<std::process::ExitStatus, BedError> {
        let Some(mut child) = self.child.take() else {
            return Err(BedError::Answer { from: "bosun".into(), detail: "it does not run".into() });
        };
        let ended = wait_until("bosun to end", limit, || match child.try_wait() {
            Ok(Some(status)) => Ok(status),
            Ok(None) => Err("it still runs".into()),
            Err(e) => Err(e.to_string()),
        });
        if ended.is_err() {
            let _ = child.kill();
            let _ = child.wait();
        }
        ended.map_err(|e| self.with_log(e))
    }
}

impl Drop for Bosun {
    fn drop(&mut self) {
        if !self.kept {
            self.kill();
        }
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

/// The KubeletConfiguration of the daemon under test. `extra` fields are laid over the bed's own.
fn kubelet(bed: &TestBed, extra: &Value) -> String {
    let (dir, cgroup_root, socket) = (bed.dir(), bed.cgroup_root(), bed.socket());
    let mut config = json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "staticPodPath": dir.join("manifests"),
        "containerRuntimeEndpoint": format!("unix://{}", socket.display()),
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": cgroup_root,
        "cgroupsPerQOS": true,
        "enforceNodeAllocatable": ["none"],
        "podLogsDir": dir.join("logs"),
        "failSwapOn": false,
        "failCgroupV1": false,
        "maxPods": 250,
        // Each bed has an address of its own, and no cluster to ask who may do what.
        "address": bed.node_ip(),
        "authentication": {"anonymous": {"enabled": true}, "webhook": {"enabled": false}},
        "authorization": {"mode": "AlwaysAllow"},
        // How full the machine's disk is is no matter of a test.
        "imageGCHighThresholdPercent": 100,
        // File name and line of resolv.conf are the host's business; pods of the bed need no names.
        "resolvConf": dir.join("resolv.conf"),
        // The machine's own rules are not the bed's; a test that wants the chains has a network of its own.
        "makeIPTablesUtilChains": false,
    });
    if let (Some(own), Some(extra)) = (config.as_object_mut(), extra.as_object()) {
        own.extend(extra.iter().map(|(k, v)| (k.clone(), v.clone())));
    }
    serde_json::to_string_pretty(&config).unwrap_or_default()
}
