//! The daemon under test: `bosun run` on the bed's manifest folder, and its command line.

use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use crate::bed::tail;
use crate::error::file;
use crate::process::ProcessId;
use crate::{BedError, TestBed, program_under_test, wait_until};

mod asks;
mod config;

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
            program: program_under_test(),
            hostname: "bed".into(),
            faults: false,
            config: Value::Null,
            log: "info".into(),
            flags: Vec::new(),
            env: Vec::new(),
        }
    }
}

/// A daemon that runs, or ran, in a bed.
pub struct Bosun {
    options: BosunOptions,
    dir: PathBuf,
    child: Option<Child>,
    kept: bool,
    /// The runtime is within it.
    serves_pods: bool,
}

impl Bosun {
    /// Starts the daemon and waits until its socket answers.
    ///
    /// # Errors
    /// When it ends or does not answer within 20 s; the end of its log is in the error.
    pub fn start(bed: &mut TestBed, options: BosunOptions) -> Result<Self, BedError> {
        let text = config::kubelet(bed, &options.config);
        bed.write("kubelet.yaml", &text)?;
        let serves_pods = text.contains("\"embedded://");
        let mut bosun = Bosun { options, dir: bed.dir().to_owned(), child: None, kept: false, serves_pods };
        bosun.start_again(bed)?;
        Ok(bosun)
    }

    /// Starts the daemon after it ended or was killed.
    ///
    /// # Errors
    /// As [`Bosun::start`].
    pub fn start_again(&mut self, bed: &mut TestBed) -> Result<(), BedError> {
        self.launch(bed)?;
        let ended = wait_until("bosun to answer on its socket", Duration::from_secs(20), || {
            if let Some(Ok(Some(status))) = self.child.as_mut().map(Child::try_wait) {
                return Ok(Some(status));
            }
            self.get("actors").map(|_| None).map_err(|e| e.to_string())
        });
        match ended {
            Ok(None) => Ok(()),
            Ok(Some(status)) => {
                let command = format!("{} run", self.options.program.display());
                Err(BedError::Command { command, output: format!("{status}\n{}", self.log()) })
            }
            Err(e) => Err(self.with_log(e)),
        }
    }

    /// Starts the daemon and does not wait.
    ///
    /// # Errors
    /// When the program cannot be started.
    pub fn launch(&mut self, bed: &mut TestBed) -> Result<(), BedError> {
        if self.serves_pods {
            bed.hand_over();
        }
        let mut start = Command::new(&self.options.program);
        start.arg("run");
        self.tell(&mut start, bed)?;
        self.child = Some(bed.spawn_logged(&mut start, &self.log_path())?);
        Ok(())
    }

    /// The flags of the daemon, and its environment.
    fn tell(&self, start: &mut Command, bed: &TestBed) -> Result<(), BedError> {
        start.arg("--config").arg(self.dir.join("kubelet.yaml"));
        start.arg("--root-dir").arg(self.dir.join("node")).arg("--socket").arg(self.socket());
        start.args(["--hostname-override", &self.options.hostname, "--node-ip", &bed.node_ip()]);
        start.args(["--log", &self.options.log]);
        start.arg("--sysctl-dir").arg(self.sysctls()?);
        start.arg("--container-logs-dir").arg(self.dir.join("container-logs"));
        if self.options.faults {
            start.arg("--enable-faults");
        }
        start.args(&self.options.flags);
        // As its unit has it.
        start.env("MALLOC_ARENA_MAX", "2");
        start.envs(self.options.env.iter().map(|(name, value)| (name, value)));
        Ok(())
    }

    /// Starts a process that serves `manager` to this daemon at the address `at`, with the daemon's own flags, and does not wait.
    /// What it logs goes to [`Bosun::serve_log`].
    ///
    /// # Errors
    /// When the program cannot be started.
    pub fn serve(&self, bed: &mut TestBed, manager: &str, at: &str) -> Result<Child, BedError> {
        let mut start = Command::new(&self.options.program);
        start.args(["serve", manager, "--at", at]);
        self.tell(&mut start, bed)?;
        bed.spawn_logged(&mut start, &self.serve_log(manager))
    }

    /// Where the log of [`Bosun::serve`] goes.
    #[must_use]
    pub fn serve_log(&self, manager: &str) -> PathBuf {
        self.dir.join(format!("serve-{manager}.log"))
    }

    /// Starts a Go kubelet in its place, on the same folders and with the same configuration, and does not wait. `kill` and
    /// `log` are about it then, until the daemon is started again.
    ///
    /// # Errors
    /// When the program cannot be started.
    pub fn launch_kubelet(&mut self, bed: &mut TestBed, program: &Path) -> Result<(), BedError> {
        let mut start = Command::new(program);
        start.arg("--config").arg(self.dir.join("kubelet.yaml")).arg("--root-dir").arg(self.dir.join("node"));
        start.args(["--hostname-override", &self.options.hostname, "--node-ip", &bed.node_ip(), "--v=2"]);
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
        config::sysctls(&dir)?;
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
