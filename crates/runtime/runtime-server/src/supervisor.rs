//! Talks to the supervisors of pods, and starts them.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use pod_supervisor::wire::{Answer, MAX_ANSWER, MAX_REQUEST, Request, WireError, frame, unframe};
use pod_supervisor::{READY, fds};
use rustix::fs::{Mode, OFlags};
use rustix::mount::{MountFlags, UnmountFlags, mount_bind, mount_remount, unmount};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use tokio::io::{AsyncReadExt, Interest};
use tokio::net::UnixStream;

/// How long a supervisor may take to be there, namespaces included.
const START: Duration = Duration::from_secs(30);
/// Longer than it lets its OCI runtime take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(150);
/// For what it does without an OCI runtime.
const SOON: Duration = Duration::from_secs(10);

/// A supervisor that did not do what it was asked for.
#[derive(Debug, thiserror::Error)]
pub enum SupervisorError {
    /// It is not there: nobody listens on its socket.
    #[error("the pod's supervisor is gone")]
    Gone,
    /// It closed the connection; it may be there.
    #[error("the pod's supervisor closed the connection")]
    Closed,
    /// It says no.
    #[error("{0}")]
    Failed(String),
    /// It does not know the container.
    #[error("the pod's supervisor knows no container {0}")]
    Unknown(String),
    /// It does not answer.
    #[error("the pod's supervisor did not answer in time")]
    Late,
    /// It answers something else.
    #[error("the pod's supervisor answers strangely: {0}")]
    Strange(String),
    /// The socket.
    #[error("the pod's supervisor: {0}")]
    Io(#[from] io::Error),
}

impl From<WireError> for SupervisorError {
    fn from(e: WireError) -> Self {
        Self::Strange(e.to_string())
    }
}

/// A connection with a request on it.
#[derive(Debug)]
pub(crate) struct Line {
    stream: UnixStream,
    incoming: Vec<u8>,
}

impl Line {
    /// Connects to the supervisor of `socket` and asks; descriptors go along.
    pub(crate) async fn open(
        socket: &Path,
        request: &Request,
        passed: &[BorrowedFd<'_>],
    ) -> Result<Self, SupervisorError> {
        let stream = connect(socket).await?;
        let bytes = frame(request, MAX_REQUEST)?;
        let mut sent = 0;
        while sent < bytes.len() {
            stream.writable().await?;
            let along = if sent == 0 { passed } else { &[] };
            match stream.try_io(Interest::WRITABLE, || fds::send(&stream, &bytes[sent..], along)) {
                Ok(count) => sent += count,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                Err(e) => return Err(e.into()),
            }
        }
        Ok(Self { stream, incoming: Vec::new() })
    }

    /// The number of the supervisor.
    pub(crate) fn peer(&self) -> Option<u32> {
        self.stream.peer_cred().ok()?.pid()?.try_into().ok()
    }

    /// The next answer.
    pub(crate) async fn answer(&mut self) -> Result<Answer, SupervisorError> {
        loop {
            if let Some(answer) = unframe(&mut self.incoming, MAX_ANSWER)? {
                return Ok(answer);
            }
            match self.stream.read_buf(&mut self.incoming).await {
                Ok(0) => return Err(SupervisorError::Closed),
                Err(e) if e.kind() == io::ErrorKind::ConnectionReset => return Err(SupervisorError::Closed),
                Ok(_) => {}
                Err(e) => return Err(e.into()),
            }
        }
    }
}

/// A failure that was told is an error.
pub(crate) fn checked(id: &str, answer: Answer) -> Result<Answer, SupervisorError> {
    match answer {
        Answer::Failed { unknown: true, .. } => Err(SupervisorError::Unknown(id.to_owned())),
        Answer::Failed { why, .. } => Err(SupervisorError::Failed(why)),
        other => Ok(other),
    }
}

async fn connect(socket: &Path) -> Result<UnixStream, SupervisorError> {
    UnixStream::connect(socket).await.map_err(|e| match e.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => SupervisorError::Gone,
        _ => e.into(),
    })
}

/// Asks for something that has one answer, and that the OCI runtime may be needed for.
pub(crate) async fn ask(socket: &Path, id: &str, request: &Request) -> Result<Answer, SupervisorError> {
    ask_within(PATIENCE, socket, id, request).await
}

/// Asks for something that has one answer, at once.
pub(crate) async fn ask_soon(socket: &Path, id: &str, request: &Request) -> Result<Answer, SupervisorError> {
    ask_within(SOON, socket, id, request).await
}

async fn ask_within(limit: Duration, socket: &Path, id: &str, request: &Request) -> Result<Answer, SupervisorError> {
    let asked = async {
        let mut line = Line::open(socket, request, &[]).await?;
        match line.answer().await {
            Ok(answer) => checked(id, answer),
            // One that died while it was asked does not listen any more.
            Err(SupervisorError::Closed) => Err(connect(socket).await.err().unwrap_or(SupervisorError::Closed)),
            Err(e) => Err(e),
        }
    };
    tokio::time::timeout(limit, asked).await.map_err(|_| SupervisorError::Late)?
}

/// Kills a supervisor that listens and does not answer, and what it has started: it may be in no cgroup of its own.
pub(crate) async fn kill(socket: &Path) -> Result<(), SupervisorError> {
    let listens = match connect(socket).await {
        Err(SupervisorError::Gone) => return Ok(()),
        other => other?.peer_cred()?.pid(),
    };
    let pid = listens.ok_or(SupervisorError::Gone)?;
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    let all = std::iter::once(pid).chain(children.split_whitespace().filter_map(|child| child.parse().ok()));
    let open = |pid| pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok();
    // All before the first is killed: from then on numbers may be others'.
    for process in all.filter_map(open).collect::<Vec<_>>() {
        // An error means that it ended just now.
        let _ = pidfd_send_signal(process, Signal::KILL);
    }
    Ok(())
}

/// A supervisor that was begun and waits for its plan.
#[derive(Debug)]
pub(crate) struct Starting {
    child: tokio::process::Child,
    log: PathBuf,
}

/// The program of supervisors, by a read-only mount that is nowhere to be seen: it enters containers, where its file would be in reach of
/// whoever has a link to `/proc/self/exe` for a program (CVE-2019-5736). What is done to the file by such a link fails, as on any
/// read-only file system.
#[derive(Debug)]
pub(crate) struct Program {
    name: PathBuf,
    mounted: OwnedFd,
}

impl Program {
    /// `run` is where it is mounted for a moment.
    pub(crate) fn load(path: &Path, run: &Path) -> io::Result<Self> {
        let at = run.join("supervisor");
        // What a server left that died just here.
        let _ = unmount(&at, UnmountFlags::DETACH);
        fs::File::create(&at)?;
        mount_bind(path, &at)?;
        let flags = MountFlags::BIND | MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV;
        let mounted = mount_remount(&at, flags, "")
            .and_then(|()| rustix::fs::open(&at, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()));
        unmount(&at, UnmountFlags::DETACH)?;
        fs::remove_file(&at)?;
        Ok(Self { name: path.to_owned(), mounted: mounted? })
    }

    /// A call of it, by its own name for whoever looks at processes.
    fn call(&self) -> tokio::process::Command {
        let mut call = tokio::process::Command::new(format!("/proc/self/fd/{}", self.mounted.as_raw_fd()));
        call.arg0(&self.name);
        call
    }
}

/// Begins the supervisor of the pod of `dir`, which is loaded while its plan is made. It is a process of its own session that stays
/// when this one ends; without a plan it ends by itself.
pub(crate) fn begin(program: &Program, dir: &Path) -> Result<Starting, SupervisorError> {
    let log = dir.join("supervisor.log");
    let words = fs::File::create(&log)?;
    // What systemd has for a service is for this process alone: `runc` would hand `NOTIFY_SOCKET` on to the container, and wait
    // for its word.
    let child = program
        .call()
        .arg("run")
        .arg(dir)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(words)
        .env_remove("NOTIFY_SOCKET")
        .kill_on_drop(false)
        .spawn()?;
    Ok(Starting { child, log })
}

impl Starting {
    /// Its number; `None`: it has ended.
    pub(crate) fn pid(&self) -> Option<u32> {
        self.child.id()
    }

    /// Tells it that the plan is there, and waits until it takes commands, or another process that goes on for it.
    pub(crate) async fn ready(&mut self) -> Result<(), SupervisorError> {
        drop(self.child.stdin.take());
        let mut out = self.child.stdout.take().ok_or(SupervisorError::Gone)?;
        let mut said = [0; READY.len()];
        match tokio::time::timeout(START, out.read_exact(&mut said)).await {
            Ok(Ok(_)) if said == *READY => Ok(()),
            Ok(_) => {
                let words = fs::read_to_string(&self.log).unwrap_or_default();
                Err(SupervisorError::Failed(format!("the pod's supervisor did not start: {}", words.trim())))
            }
            Err(_) => {
                self.child.start_kill()?;
                Err(SupervisorError::Late)
            }
        }
    }
}
