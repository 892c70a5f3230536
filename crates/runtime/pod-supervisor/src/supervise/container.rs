//! One container: its process, its streams, its log.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::pipe::PipeFlags;
use rustix::process::Pid;

use super::attach::Attached;
use super::lines::Lines;
use super::log::Log;
use super::oom;
use super::tools::Streams;
use crate::clock;
use crate::record::{ContainerPlan, ExitRecord, Held};

/// Bytes that are read from a stream at a time.
const PIECE: usize = 16 << 10;
/// Pieces that are read of one stream before the others have their turn, and after the container's end.
const TURN: usize = 8;

/// One output stream.
#[derive(Debug)]
pub(super) struct Output {
    pub(super) fd: OwnedFd,
    lines: Lines,
}

/// Where a container stands.
#[derive(Debug)]
pub(super) enum Stage {
    /// Who starts it is at it.
    Starting,
    /// It runs.
    Running {
        /// First process.
        pid: Pid,
        /// Tells of its end.
        ended: OwnedFd,
    },
    /// It has ended, and its record is on the disk.
    Ended(ExitRecord),
}

impl Drop for Container {
    /// Nobody will come to it any more.
    fn drop(&mut self) {
        if let Some((_, path)) = &self.console {
            let _ = fs::remove_file(path);
        }
    }
}

/// A container.
#[derive(Debug)]
pub(super) struct Container {
    pub(super) plan: ContainerPlan,
    pub(super) stage: Stage,
    pub(super) started_at: i64,
    pub(super) stdout: Option<Output>,
    pub(super) stderr: Option<Output>,
    /// The container's input (the terminal, with one).
    pub(super) stdin: Option<OwnedFd>,
    /// Waits for the terminal.
    pub(super) console: Option<(UnixListener, PathBuf)>,
    pub(super) attached: Vec<Attached>,
    /// Who wants it killed as soon as it is started.
    pub(super) killers: Vec<u64>,
    log: Log,
}

impl Container {
    /// Opens log and streams; answers the streams that the container gets.
    pub(super) fn prepare(plan: ContainerPlan, run: &Path, number: u64) -> io::Result<(Self, Streams)> {
        let log =
            Log::open(&plan.log).map_err(|e| io::Error::new(e.kind(), format!("log {}: {e}", plan.log.display())))?;
        let mut container = Self {
            plan,
            stage: Stage::Starting,
            started_at: 0,
            stdout: None,
            stderr: None,
            stdin: None,
            console: None,
            attached: Vec::new(),
            killers: Vec::new(),
            log,
        };
        let mut streams = Streams::default();
        if container.plan.tty {
            let path = run.join(format!("tty{number}"));
            let listener = UnixListener::bind(&path)?;
            listener.set_nonblocking(true)?;
            container.console = Some((listener, path));
            return Ok((container, streams));
        }
        let (stdout, theirs) = output("stdout")?;
        streams.stdout = Some(theirs);
        let (stderr, theirs) = output("stderr")?;
        streams.stderr = Some(theirs);
        (container.stdout, container.stderr) = (Some(stdout), Some(stderr));
        if container.plan.stdin {
            let (theirs, ours) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
            rustix::io::ioctl_fionbio(&ours, true)?;
            streams.stdin = Some(theirs);
            container.stdin = Some(ours);
        }
        Ok((container, streams))
    }

    /// Who starts it passes the terminal.
    pub(super) fn take_console(&mut self) -> io::Result<()> {
        let Some((listener, path)) = &self.console else { return Ok(()) };
        let (stream, _) = listener.accept()?;
        let mut fds = Vec::new();
        // The sender writes at once after it connected.
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(std::time::Duration::from_secs(5)))?;
        crate::fds::receive(&stream, &mut [0; 4096], &mut fds)?;
        fs::remove_file(path)?;
        self.console = None;
        let terminal = fds.pop().ok_or_else(|| io::Error::other("no terminal came"))?;
        rustix::io::ioctl_fionbio(&terminal, true)?;
        self.stdin = Some(terminal.try_clone()?);
        self.stdout = Some(Output { fd: terminal, lines: Lines::of("stdout") });
        Ok(())
    }

    /// Reads what a stream has, into the log and to who is attached. Answers what to complain about.
    pub(super) fn pump(&mut self, error: bool) -> Option<String> {
        let slot = if error { &mut self.stderr } else { &mut self.stdout };
        let output = slot.as_mut()?;
        let mut buffer = [0; PIECE];
        let mut out = Vec::new();
        let mut complaint = None;
        for _ in 0..TURN {
            let stamp = clock::stamp(clock::now());
            match rustix::io::read(&output.fd, &mut buffer) {
                Ok(count) if count > 0 => {
                    let piece = &buffer[..count];
                    output.lines.cut(piece, &stamp, &mut out);
                    self.attached.retain_mut(|a| a.copy(piece, error));
                }
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => continue,
                // The end; of a terminal it is an I/O error.
                Ok(_) | Err(_) => {
                    output.lines.finish(&stamp, &mut out);
                    *slot = None;
                    break;
                }
            }
            complaint = self.log.write(&out).or(complaint);
            out.clear();
        }
        self.log.write(&out).or(complaint)
    }

    /// One who was attached is gone: what input is left of it is taken, as far as the container takes it at once.
    pub(super) fn detach(&mut self, client: u64) {
        let Some(at) = self.attached.iter().position(|a| a.client == client) else { return };
        let mut gone = self.attached.swap_remove(at);
        if gone.input.is_none() {
            return;
        }
        if let Some(to) = &self.stdin {
            gone.feed(to);
        }
        self.input_ended();
    }

    /// The input of one who was attached is over. The first such end may be that of the container's own.
    pub(super) fn input_ended(&mut self) {
        if self.plan.stdin_once && !self.plan.tty {
            self.stdin = None;
        }
    }

    /// The log was renamed.
    pub(super) fn reopen(&mut self) -> io::Result<()> {
        self.log.reopen()
    }

    /// The size of the terminal.
    pub(super) fn resize(&self, width: u16, height: u16) -> io::Result<()> {
        let terminal = self.stdout.as_ref().filter(|_| self.plan.tty);
        let terminal = terminal.ok_or_else(|| io::Error::other("the container has no terminal"))?;
        let size = rustix::termios::Winsize { ws_row: height, ws_col: width, ws_xpixel: 0, ws_ypixel: 0 };
        Ok(rustix::termios::tcsetwinsize(&terminal.fd, size)?)
    }

    /// What is told of it.
    pub(super) fn held(&self) -> Held {
        let (pid, exit) = match &self.stage {
            Stage::Starting => (0, None),
            Stage::Running { pid, .. } => (pid.as_raw_nonzero().get(), None),
            Stage::Ended(exit) => (0, Some(exit.clone())),
        };
        Held { id: self.plan.id.clone(), pid, started_at: self.started_at, exit }
    }

    /// How often the kernel killed in its cgroup; `None`: that cannot be read any more.
    pub(super) fn oom_kills(&self) -> Option<u64> {
        oom::kills(self.plan.oom_file.as_ref()?)
    }
}

fn output(name: &'static str) -> io::Result<(Output, OwnedFd)> {
    let (ours, theirs) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
    rustix::io::ioctl_fionbio(&ours, true)?;
    Ok((Output { fd: ours, lines: Lines::of(name) }, theirs))
}
