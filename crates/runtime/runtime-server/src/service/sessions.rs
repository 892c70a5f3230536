//! URLs of streams.

use cri_api::v1;

use crate::error::{Done, RuntimeError};
use crate::exec;
use crate::records::PodStage;
use crate::runtime::Runtime;
use crate::sessions::{Command, Forward, Session};

/// As the CRI demands: something to do, and no stream of errors beside a terminal.
fn checked(tty: bool, stdin: bool, stdout: bool, stderr: bool) -> Done<()> {
    if tty && stderr {
        return Err(RuntimeError::Refused("tty and stderr cannot both be true".into()));
    }
    if !stdin && !stdout && !stderr {
        return Err(RuntimeError::Refused("one of stdin, stdout, or stderr must be set".into()));
    }
    Ok(())
}

/// A command in a container.
pub(super) fn exec(rt: &Runtime, r: v1::ExecRequest) -> Done<String> {
    exec::running(rt, &r.container_id)?;
    checked(r.tty, r.stdin, r.stdout, r.stderr)?;
    if r.cmd.is_empty() {
        return Err(RuntimeError::Refused("no command specified".into()));
    }
    let (container, words) = (r.container_id, Some(r.cmd));
    let command = Command { container, words, stdin: r.stdin, stdout: r.stdout, stderr: r.stderr, tty: r.tty };
    rt.streams.offer("exec", Session::Command(command))
}

/// The streams of a container itself. Whether they are a terminal's is the container's own matter.
pub(super) fn attach(rt: &Runtime, r: v1::AttachRequest) -> Done<String> {
    let (_, record) = exec::running(rt, &r.container_id)?;
    checked(r.tty, r.stdin, r.stdout, r.stderr)?;
    let command = Command {
        container: r.container_id,
        words: None,
        stdin: r.stdin,
        stdout: r.stdout,
        stderr: r.stderr && !record.config.tty,
        tty: r.tty,
    };
    rt.streams.offer("attach", Session::Command(command))
}

/// Ports of a pod.
pub(super) fn port_forward(rt: &Runtime, r: v1::PortForwardRequest) -> Done<String> {
    let pod = rt.pod(&r.pod_sandbox_id)?;
    if pod.record().stage != PodStage::Ready {
        return Err(RuntimeError::Refused(format!("sandbox {:?} is not ready", pod.id)));
    }
    rt.streams.offer("portforward", Session::Forward(Forward { pod: r.pod_sandbox_id }))
}
