//! Who serves the pods of a bed: its runtime by itself, the daemon, or for a moment whoever asks.

use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

use rustix::process::Signal;

use super::{TestBed, tail};
use crate::process::{self, ProcessId};
use crate::runtime::RuntimeKind;
use crate::{BedError, command, cri, wait_until};

/// Longer than a runtime takes to serve on a busy machine.
const START: Duration = Duration::from_secs(30);
/// Longer than `bosun runtime` lets calls go on when it is to end.
const END: Duration = Duration::from_secs(15);

/// `bosun runtime` where nobody else serves the pods of a bed; it ends when this is dropped.
pub(crate) struct Meanwhile(Option<Child>);

impl Drop for Meanwhile {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            end(child);
        }
    }
}

/// SIGTERM, and SIGKILL where that does not help.
fn end(child: &mut Child) {
    if let Some(own) = i32::try_from(child.id()).ok().and_then(ProcessId::of) {
        own.signal(Signal::TERM);
        if !process::wait_gone(&[own].into(), END) {
            own.signal(Signal::KILL);
        }
    }
    let _ = child.wait();
}

impl TestBed {
    /// Starts the runtime (again) and waits until it answers.
    ///
    /// # Errors
    /// When it does not answer within 30 s; the end of its log is in the error.
    pub fn start_runtime(&mut self) -> Result<(), BedError> {
        let mut start = match &self.options.runtime {
            RuntimeKind::Containerd => self.containerd(),
            RuntimeKind::Own(program) => self.own(program),
        };
        let log = self.options.runtime.log(&self.dir);
        let child = self.spawn_logged(&mut start, &log)?;
        self.runtime = Some(child);
        let answers = |bed: &mut Self| match bed.runtime.as_mut().map(Child::try_wait) {
            Some(Ok(Some(status))) => Err(format!("it ended with {status}")),
            _ => cri::ready(&bed.socket()),
        };
        let served = wait_until("the container runtime to serve", START, || answers(self));
        served.map_err(|e| match e {
            BedError::Timeout { what, limit, detail } => {
                BedError::Timeout { what, limit, detail: format!("{detail}\n{}", tail(&log, 15)) }
            }
            e => e,
        })
    }

    fn containerd(&self) -> Command {
        let mut start = Command::new(&self.options.containerd);
        start.arg("--config").arg(self.dir.join("containerd.toml"));
        if let Some(first) = &self.options.path {
            let rest = std::env::var_os("PATH").unwrap_or_default();
            let mut path = first.clone().into_os_string();
            path.push(":");
            path.push(rest);
            start.env("PATH", path);
        }
        if let Some(collector) = &self.options.collector {
            start.env("OTEL_EXPORTER_OTLP_ENDPOINT", collector).env("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc");
            // Milliseconds: a test waits for it.
            start.env("OTEL_BSP_SCHEDULE_DELAY", "500");
        }
        start
    }

    fn own(&self, program: &Path) -> Command {
        let mut start = Command::new(program);
        start.arg("runtime").arg("--config").arg(self.own_file());
        start
    }

    /// The file of bosun's own runtime.
    pub(crate) fn own_file(&self) -> PathBuf {
        self.dir.join("runtime.toml")
    }

    /// What the daemon is told of the runtime.
    pub(crate) fn endpoint(&self) -> String {
        match &self.options.runtime {
            RuntimeKind::Containerd => format!("unix://{}", self.socket().display()),
            RuntimeKind::Own(_) => format!("embedded://{}", self.own_file().display()),
        }
    }

    /// How ids of containers and the version of the runtime begin in what a node says.
    #[must_use]
    pub fn scheme(&self) -> &'static str {
        if self.has_own_runtime() { "bosun://" } else { "containerd://" }
    }

    /// Whether the runtime is bosun's own.
    #[must_use]
    pub fn has_own_runtime(&self) -> bool {
        self.options.runtime != RuntimeKind::Containerd
    }

    /// Ends `bosun runtime`: the daemon will serve the pods itself.
    pub(crate) fn hand_over(&mut self) {
        if self.has_own_runtime()
            && let Some(mut child) = self.runtime.take()
        {
            end(&mut child);
        }
    }

    /// Has the pods of a bed served as long as nobody else does: its daemon was killed, for one.
    pub(crate) fn meanwhile(&self) -> Result<Meanwhile, BedError> {
        let RuntimeKind::Own(program) = &self.options.runtime else { return Ok(Meanwhile(None)) };
        let socket = self.socket();
        if std::os::unix::net::UnixStream::connect(&socket).is_ok() {
            return Ok(Meanwhile(None));
        }
        let child = command::start(&mut self.own(program), &self.dir.join("meanwhile.log"))?;
        let guard = Meanwhile(Some(child));
        // Also where it ended at once, as a daemon has come meanwhile: that one answers.
        wait_until("bosun runtime to serve", START, || cri::ready(&socket))?;
        Ok(guard)
    }

    /// Kills the runtime as `kill -9` does; containers go on. One within the daemon goes with that alone.
    pub fn kill_runtime(&mut self) {
        if let Some(mut child) = self.runtime.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Pid of the runtime while it runs in a process of its own.
    #[must_use]
    pub fn runtime_pid(&self) -> Option<u32> {
        self.runtime.as_ref().map(Child::id)
    }

    /// The processes that the runtime keeps beside each pod: shims of containerd, supervisors of bosun's own.
    #[must_use]
    pub fn keepers(&self) -> Vec<i32> {
        let pids =
            if self.has_own_runtime() { process::supervisors_of(&self.dir) } else { process::shims_of(&self.socket()) };
        pids.into_iter().collect()
    }
}
