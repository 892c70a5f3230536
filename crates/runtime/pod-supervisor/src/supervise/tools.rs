//! Calls of the OCI runtime's program. None is waited for: the loop goes on and sees it end.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::{FileType, Gid, Uid, fchown, fstat};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::record::PodPlan;

/// How long a call may take before it is killed.
pub(super) const TIME_LIMIT: Duration = Duration::from_secs(120);
/// Bytes of its log that are looked at.
const LOG_TAIL: usize = 16 << 10;

/// Standard streams; none: `/dev/null`.
#[derive(Default)]
pub(super) struct Streams {
    pub(super) stdin: Option<OwnedFd>,
    pub(super) stdout: Option<OwnedFd>,
    pub(super) stderr: Option<OwnedFd>,
}

impl Streams {
    /// Gives pipes to the root of a pod that has users of its own: of nobody it knows, none of its programs could open them anew, as
    /// `/dev/stdout` is. The OCI runtime gives them on to who a container runs as.
    fn give(&self, root: Option<(u32, u32)>) -> io::Result<()> {
        let Some((uid, gid)) = root else { return Ok(()) };
        for fd in [&self.stdin, &self.stdout, &self.stderr].into_iter().flatten() {
            if FileType::from_raw_mode(fstat(fd)?.st_mode) == FileType::Fifo {
                fchown(fd, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)))?;
            }
        }
        Ok(())
    }
}

/// A call under way.
#[derive(Debug)]
pub(super) struct Tool {
    pub(super) pid: Pid,
    pub(super) ended: OwnedFd,
    /// Where it writes what went wrong.
    log: PathBuf,
    deadline: Instant,
}

impl Tool {
    /// Starts the runtime's program with `args`. Its log is `RUN/<name>.log`.
    pub(super) fn start(
        run: &Path,
        plan: &PodPlan,
        name: &str,
        args: &[&std::ffi::OsStr],
        streams: Streams,
    ) -> io::Result<Self> {
        streams.give(plan.namespaces.root())?;
        let log = run.join(format!("{name}.log"));
        let mut command = Command::new(&plan.runtime);
        command.arg("--root").arg(&plan.runtime_root).arg("--log").arg(&log).args(["--log-format", "json"]);
        if plan.systemd_cgroup {
            command.arg("--systemd-cgroup");
        }
        command.args(args);
        Self::call(command, log, streams)
    }

    /// Starts a program.
    pub(super) fn call(mut command: Command, log: PathBuf, streams: Streams) -> io::Result<Self> {
        let stdio = |stream: Option<OwnedFd>| stream.map_or_else(Stdio::null, Stdio::from);
        command.stdin(stdio(streams.stdin)).stdout(stdio(streams.stdout)).stderr(stdio(streams.stderr));
        let program = command.get_program().to_string_lossy().into_owned();
        let child = command.spawn().map_err(|e| io::Error::new(e.kind(), format!("{program}: {e}")))?;
        let (pid, ended) = watched(i32::try_from(child.id()).unwrap_or_default())?;
        Ok(Self { pid, ended, log, deadline: Instant::now() + TIME_LIMIT })
    }

    /// How long it still has; `None`: no longer, and it is killed.
    pub(super) fn time_left(&self, now: Instant) -> Option<Duration> {
        let left = self.deadline.checked_duration_since(now).filter(|l| !l.is_zero());
        if left.is_none() {
            // An error means that it ended just now, which the loop sees.
            let _ = pidfd_send_signal(&self.ended, Signal::KILL);
        }
        left
    }

    /// What went wrong, by its log; the log goes.
    pub(super) fn verdict(&self, code: i32) -> Result<(), String> {
        let text = fs::read(&self.log).unwrap_or_default();
        // It may not have made one.
        let _ = fs::remove_file(&self.log);
        if code == 0 {
            return Ok(());
        }
        let tail = String::from_utf8_lossy(&text[text.len().saturating_sub(LOG_TAIL)..]).into_owned();
        Err(last_error(&tail).unwrap_or_else(|| format!("the OCI runtime ended with {code} and no words")))
    }
}

/// The last message of level error; else the last line.
fn last_error(log: &str) -> Option<String> {
    let message = |line: &str| {
        let line: serde_json::Value = serde_json::from_str(line).ok()?;
        let is_error = matches!(line["level"].as_str(), Some("error" | "fatal"));
        line["msg"].as_str().filter(|_| is_error).map(str::to_owned)
    };
    log.lines().rev().find_map(message).or_else(|| log.lines().last().map(str::to_owned))
}

/// A child and a descriptor that tells of its end.
pub(super) fn watched(pid: i32) -> io::Result<(Pid, OwnedFd)> {
    let pid = Pid::from_raw(pid).ok_or_else(|| io::Error::other("no process"))?;
    Ok((pid, pidfd_open(pid, PidfdFlags::empty())?))
}

/// The number that a call has written for the process that it left behind; the file goes.
pub(super) fn read_pid(file: &Path) -> io::Result<i32> {
    let text = fs::read_to_string(file)?;
    fs::remove_file(file)?;
    text.trim().parse().map_err(|_| io::Error::other(format!("{}: no process number", file.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pipes_are_given_to_the_root_of_a_pod_and_devices_stay() {
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: only root can give files away");
            return;
        }
        let null = || fs::File::open("/dev/null").expect("null").into();
        let (reader, writer) = rustix::pipe::pipe().expect("pipe");
        let before = fs::metadata("/dev/null").map(|m| std::os::unix::fs::MetadataExt::uid(&m)).expect("null");
        let streams = Streams { stdin: Some(null()), stdout: Some(writer), stderr: None };
        let owner = || fstat(&reader).map(|facts| (facts.st_uid, facts.st_gid)).expect("pipe");
        let own = owner();
        streams.give(None).expect("nothing to do");
        assert_eq!(owner(), own);
        streams.give(Some((700_000, 800_000))).expect("given");
        assert_eq!(owner(), (700_000, 800_000));
        assert_eq!(fs::metadata("/dev/null").map(|m| std::os::unix::fs::MetadataExt::uid(&m)).expect("null"), before);
    }

    #[test]
    fn the_runtimes_last_error_is_told() {
        let log = concat!(
            "{\"level\":\"error\",\"msg\":\"first\",\"time\":\"t\"}\n",
            "{\"level\":\"error\",\"msg\":\"exec: \\\"x\\\": not found\",\"time\":\"t\"}\n",
            "{\"level\":\"warning\",\"msg\":\"later\",\"time\":\"t\"}\n",
        );
        assert_eq!(last_error(log).as_deref(), Some("exec: \"x\": not found"));
        assert_eq!(last_error("plain words\n").as_deref(), Some("plain words"));
        assert_eq!(last_error(""), None);
    }
}
