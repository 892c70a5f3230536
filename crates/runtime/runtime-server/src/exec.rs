//! Commands in containers.

use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use cri_api::v1;
use oci_spec::runtime::{Process, Spec};
use pod_supervisor::wire::{Answer, Request};
use rustix::pipe::PipeFlags;
use serde::Serialize;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;

use crate::blocking::Class;
use crate::bundle;
use crate::error::{At, Done, RuntimeError};
use crate::records::ContainerRecord;
use crate::runtime::{Container, Runtime, new_id};
use crate::supervisor::{Line, SupervisorError, checked};

/// Bytes of each stream that an answer holds (containerd's limit). The rest is read and thrown away.
const MAX_OUTPUT: usize = 16 << 20;
/// How long output is waited for after the command ended: something that it left behind may hold the stream.
const DRAIN: Duration = Duration::from_secs(1);

/// What a supervisor is told of a command that it runs itself: the OCI's process, and what becomes it is held to.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Command {
    #[serde(flatten)]
    process: Process,
    #[serde(skip_serializing_if = "Option::is_none")]
    seccomp_filter: Option<PathBuf>,
}

/// The process of a command: the container's own, with other words; and whether it takes nothing of an OCI runtime, which `may` be so.
fn process(
    bundle: &Path,
    command: &[String],
    terminal: bool,
    may: impl FnOnce(&Spec) -> bool,
) -> Done<(Command, bool)> {
    let spec = bundle::spec(bundle)?;
    let missing = || RuntimeError::Refused("the container has no process".into());
    let mut process = spec.process().clone().ok_or_else(missing)?;
    process.set_args(Some(command.to_vec())).set_terminal(Some(terminal));
    let is_guarded = spec.linux().as_ref().is_some_and(|l| l.seccomp().is_some());
    let filter = if is_guarded { bundle::filter(bundle) } else { None };
    let direct = may(&spec) && filter.is_some() == is_guarded && container_spec::is_plain_command(&spec, &process);
    Ok((Command { process, seccomp_filter: filter.filter(|_| direct) }, direct))
}

/// A command that can be asked for.
pub(crate) struct Prepared {
    /// The file with its process.
    pub(crate) file: Scratch,
    direct: bool,
}

impl Prepared {
    /// Asks for it in a container.
    pub(crate) fn request(&self, container: &str, console: Option<PathBuf>) -> Request {
        Request::Exec { id: container.to_owned(), process: self.file.0.clone(), console, direct: self.direct }
    }
}

/// A file that goes with its owner.
pub(crate) struct Scratch(pub(crate) PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        // It lies in a folder that goes with the pod.
        let _ = fs::remove_file(&self.0);
    }
}

pub(crate) async fn prepare(
    rt: &Arc<Runtime>,
    record: &ContainerRecord,
    command: Vec<String>,
    terminal: bool,
) -> Done<Prepared> {
    let bundle = rt.options.bundle(&record.pod, &record.id);
    let (may, confined) = (may_be_direct(rt, record)?, rt.options.confines(&record.pod));
    let file = Scratch(bundle.join(format!("exec-{}.json", &new_id()[..16])));
    let path = file.0.clone();
    let written = move || {
        let (process, direct) =
            process(&bundle, &command, terminal, |spec| may && (confined || !container_spec::has_profile(spec)))?;
        let text = serde_json::to_vec(&process).map_err(io::Error::from).at("write", &path)?;
        crate::options::private_file(&path, &text)?;
        Ok(direct)
    };
    let direct = rt.blocking.run(Class::State, written).await?;
    Ok(Prepared { file, direct })
}

/// Whether the supervisor may run commands in a container: it has started it, or what did makes the same.
fn may_be_direct(rt: &Runtime, record: &ContainerRecord) -> Done<bool> {
    let handler = rt.pod(&record.pod)?.record().runtime_handler;
    Ok(rt.options.is_own_start(&record.pod, &record.id) || rt.handlers.leaves_commands(&handler))
}

fn output() -> Done<(pipe::Receiver, OwnedFd)> {
    let named = Path::new("pipe");
    let (ours, theirs) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC).at("make", named)?;
    rustix::io::ioctl_fionbio(&ours, true).at("make", named)?;
    Ok((pipe::Receiver::from_owned_fd(ours).at("make", named)?, theirs))
}

/// Reads to the end into `to`, as much as an answer holds.
async fn collect(mut from: pipe::Receiver, to: &mut Vec<u8>) -> io::Result<()> {
    let mut piece = vec![0; 32 << 10];
    loop {
        let count = from.read(&mut piece).await?;
        if count == 0 {
            return Ok(());
        }
        let room = MAX_OUTPUT.saturating_sub(to.len());
        to.extend_from_slice(&piece[..count.min(room)]);
    }
}

/// A running container.
pub(crate) fn running(rt: &Runtime, id: &str) -> Done<(Arc<Container>, ContainerRecord)> {
    let container = rt.container(id)?;
    let record = container.record();
    if record.state() != v1::ContainerState::ContainerRunning {
        return Err(RuntimeError::Refused(format!("container {id:?} is not running")));
    }
    Ok((container, record))
}

/// Runs a command and answers what it wrote. `limit` zero: as long as it takes. Out of time it is killed.
pub(crate) async fn sync(rt: &Arc<Runtime>, request: v1::ExecSyncRequest) -> Done<v1::ExecSyncResponse> {
    let (_, record) = running(rt, &request.container_id)?;
    if request.cmd.is_empty() {
        return Err(RuntimeError::Refused("no command specified".into()));
    }
    let limit = u64::try_from(request.timeout).ok().filter(|s| *s > 0).map(Duration::from_secs);
    let command = prepare(rt, &record, request.cmd.clone(), false).await?;
    let done = run(rt, &record, &command);
    match limit {
        None => done.await,
        Some(limit) => tokio::time::timeout(limit, done)
            .await
            .map_err(|_| RuntimeError::Late(format!("timeout {limit:?} exceeded: {:?}", request.cmd)))?,
    }
}

async fn run(rt: &Arc<Runtime>, record: &ContainerRecord, command: &Prepared) -> Done<v1::ExecSyncResponse> {
    let (stdout, theirs) = output()?;
    let (stderr, theirs_too) = output()?;
    let null = fs::File::open("/dev/null").at("open", Path::new("/dev/null"))?;
    let exec = command.request(&record.id, None);
    let passed = [null.as_fd(), theirs.as_fd(), theirs_too.as_fd()];
    // The command ends with this connection, so also when whoever asked goes away.
    let mut line = Line::open(&rt.socket(&record.pod), &exec, &passed).await?;
    drop((null, theirs, theirs_too));
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let exit_code = {
        let reading = async { tokio::try_join!(collect(stdout, &mut out), collect(stderr, &mut err)) };
        tokio::pin!(reading);
        let mut read = None;
        let exit_code = loop {
            tokio::select! {
                done = &mut reading, if read.is_none() => read = Some(done),
                answer = line.answer() => match checked(&record.id, answer?)? {
                    Answer::Started { .. } => {}
                    Answer::Exited { exit_code } => break exit_code,
                    other => return Err(SupervisorError::Strange(format!("{other:?}")).into()),
                },
            }
        };
        if read.is_none() {
            read = tokio::time::timeout(DRAIN, reading).await.ok();
        }
        if let Some(read) = read {
            read.at("read", Path::new("pipe"))?;
        }
        exit_code
    };
    Ok(v1::ExecSyncResponse { stdout: out, stderr: err, exit_code })
}
