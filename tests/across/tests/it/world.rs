//! A wiring with a stand-in for a manager in another process.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use actor::testing::spin_until;
use actor::{ActorRef, AskError, Kernel, Spec};
use contract::probe::{PodProbes, StartProbes, StopProbes};
use contract::seam::StandIn;
use contract::{ProbeManager, Wiring};
use fakes::MemoryJournal;
use model::PodUid;
use model::unix_address::UnixAddress;
use remote_manager::{Life, Link, Remote, Status, To, WhenAway};
use tempfile::TempDir;

/// A program that is killed when the test ends.
pub(crate) struct Program(pub(crate) Child);

impl Program {
    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.0);
        rustix::process::kill_process(pid, signal).unwrap();
    }

    pub(crate) fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _gone_already = self.0.kill();
        let _reaped = self.0.wait();
    }
}

pub(crate) struct World {
    pub(crate) kernel: Kernel,
    pub(crate) wiring: Wiring,
    pub(crate) link: Link,
    pub(crate) journal: Arc<MemoryJournal>,
    pub(crate) folder: TempDir,
}

impl World {
    pub(crate) fn new(kernel: Kernel) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
        World { kernel, wiring: Wiring::default(), link: Link::default(), journal: Arc::default(), folder }
    }

    /// The socket is there a moment before anybody listens at it.
    pub(crate) fn is_listened_to(&self) -> bool {
        UnixStream::connect(self.socket()).is_ok()
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.path().join("probes.sock")
    }

    pub(crate) fn honest(&self) -> Program {
        self.program(env!("CARGO_BIN_EXE_honest"))
    }

    pub(crate) fn statuses(&self) -> Program {
        self.program(env!("CARGO_BIN_EXE_statuses"))
    }

    fn program(&self, path: &str) -> Program {
        let mut command = Command::new(path);
        command.args(["--at", &format!("unix://{}", self.socket().display())]);
        Program(command.stderr(Stdio::null()).spawn().unwrap())
    }

    pub(crate) fn liar(&self, how: &str) -> Program {
        Program(Command::new(env!("CARGO_BIN_EXE_lies")).arg(self.socket()).arg(how).spawn().unwrap())
    }

    /// Pods of this node have UIDs that begin with a `u`.
    pub(crate) fn to(&self, when_away: WhenAway) -> To {
        To {
            address: UnixAddress::parse(&format!("unix://{}", self.socket().display())).unwrap(),
            when_away,
            link: self.link.clone(),
            is_here: Arc::new(|uid: &PodUid| uid.as_str().starts_with('u')),
            journal: Some(self.journal.clone()),
        }
    }

    /// Connects the stand-in, as a node does.
    pub(crate) fn connect(&self, when_away: WhenAway) -> ActorRef<StandIn<ProbeManager, Remote<ProbeManager>>> {
        let (to, crew) = (self.to(when_away), self.wiring.crew::<ProbeManager>());
        let stand_in =
            self.kernel.spawn(Spec::new("probe-manager"), move |_| Remote::stand_in(crew.succeed(), to.clone()));
        self.wiring.connect::<ProbeManager, _>(&stand_in);
        stand_in
    }

    pub(crate) async fn up(&self) {
        let life = self.link.life();
        spin_until("the other process is there", || matches!(*life.borrow(), Life::Up { .. })).await;
    }

    /// Why it is away, once the words are found in it.
    pub(crate) async fn away(&self, words: &str) {
        let life = self.link.life();
        spin_until(words, || matches!(&*life.borrow(), Life::Away(why) if why.contains(words))).await;
    }

    pub(crate) async fn start(&self, uid: &str, name: &str) -> Result<(), AskError> {
        let pod = serde_json::json!({"metadata": {"uid": uid, "name": name, "namespace": "n"}});
        self.wiring.ask(StartProbes { pod: serde_json::from_value(pod).unwrap() }).await
    }

    pub(crate) async fn stop(&self, uid: &str) -> Result<(), AskError> {
        self.wiring.ask(StopProbes { uid: uid.into(), keep_readiness: false }).await
    }

    /// What the manager has written into a pod's row.
    pub(crate) fn words(&self, uid: &str) -> Vec<String> {
        let row = self.wiring.board::<PodProbes>().get(&uid.into());
        row.map(|row| row.probes.keys().cloned().collect()).unwrap_or_default()
    }

    pub(crate) fn status(&self) -> Status {
        self.link.status()
    }
}
