//! Children that ended, and what follows.

use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, pidfd_send_signal};

use super::container::{Container, Stage};
use super::leaving::Leaving;
use super::requests::unknown;
use super::tools::{self, Streams, Tool};
use super::{Exec, Purpose, Supervisor};
use crate::clock;
use crate::record::{ExitRecord, write_record};
use crate::wire::Answer;

/// Ends that are remembered for who asks later.
const MAX_STRAYS: usize = 256;
/// Name of the record of an end.
const EXIT: &str = "exit.json";

/// As a shell has it.
fn code(status: WaitStatus) -> i32 {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => code,
        (None, Some(signal)) => 128 + signal,
        (None, None) => 255,
    }
}

impl Supervisor {
    /// Takes all children that have ended. Calls of the OCI runtime come first: they say which of the others are whose.
    pub(super) fn reap(&mut self) {
        loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) => self.strays.push_back((pid, code(status))),
                Err(rustix::io::Errno::INTR) => {}
                // None has ended, or there are none.
                Ok(None) | Err(_) => break,
            }
        }
        while let Some(at) = self.tools.iter().position(|(tool, _)| self.strays.iter().any(|(pid, _)| *pid == tool.pid))
        {
            let (tool, purpose) = self.tools.swap_remove(at);
            let code = self.end_of(tool.pid).unwrap_or_default();
            self.call_ended(&tool, purpose, code);
        }
        // Those that only begin containers and commands say all there is to say themselves.
        let helpers: Vec<Pid> = self.entering.iter().map(|e| e.helper).collect();
        self.strays.retain(|(pid, _)| !helpers.contains(pid));
        self.execs_ended();
        self.containers_ended();
        if let Some((pid, _)) = &self.init
            && self.strays.iter().any(|(stray, _)| stray == pid)
        {
            self.complain(Some("process 1 of the pod has ended, and all of its PID namespace with it".into()));
            self.init = None;
        }
        // Processes of containers whose parents died; and, while a call is under way, those whose numbers it will tell.
        let keep = if self.tools.is_empty() && self.entering.is_empty() { 0 } else { MAX_STRAYS };
        let excess = self.strays.len().saturating_sub(keep);
        self.strays.drain(..excess);
    }

    /// The end of a child, if it ended.
    fn end_of(&mut self, pid: Pid) -> Option<i32> {
        let at = self.strays.iter().position(|(stray, _)| *stray == pid)?;
        self.strays.remove(at).map(|(_, code)| code)
    }

    fn call_ended(&mut self, tool: &Tool, purpose: Purpose, code: i32) {
        let verdict = tool.verdict(code);
        match purpose {
            Purpose::Run { id, client, pid_file } => {
                let known = |e: io::Error| e.to_string();
                let pid = verdict.and_then(|()| tools::read_pid(&pid_file).map_err(known));
                let started = pid.and_then(|pid| self.child(pid).map_err(known));
                let answer = self.ran(&id, started);
                self.tell(client, &answer);
            }
            Purpose::Exec { client, pid_file } => match self.executed(client, verdict, &pid_file) {
                Ok(answer) => self.tell(client, &answer),
                Err(why) => self.tell(client, &Answer::failed(why)),
            },
            Purpose::Signal { client } => {
                self.tell(client, &verdict.map_or_else(Answer::failed, |()| Answer::Done));
            }
            Purpose::Delete => self.complain(verdict.err().map(|why| format!("delete: {why}"))),
        }
    }

    /// A container has been started, or could not be.
    pub(super) fn ran(&mut self, id: &str, started: Result<(Pid, OwnedFd), String>) -> Answer {
        let now = clock::now();
        let Some(container) = self.containers.get_mut(id) else { return Answer::failed("the container is gone") };
        let killers = std::mem::take(&mut container.killers);
        let (answer, to_killers) = match started {
            Ok((pid, ended)) => {
                if !killers.is_empty() {
                    // An error means that it ended just now.
                    let _ = pidfd_send_signal(&ended, Signal::KILL);
                }
                container.started_at = now;
                container.stage = Stage::Running { pid, ended };
                let pid = pid.as_raw_nonzero().get();
                self.tell_watchers(&Answer::Began { id: id.to_owned(), pid, started_at: now });
                (Answer::Started { pid, started_at: now }, Answer::Done)
            }
            Err(why) => {
                let failed = self.containers.remove(id);
                let own = failed.as_ref().and_then(Container::oom_kills);
                let is_oom = self.kills_in(id, own) > 0;
                let why =
                    if is_oom { format!("{why}: the kernel killed for lack of memory (limit too low?)") } else { why };
                self.delete(id, failed.and_then(|c| c.plan.cgroup.clone()));
                (Answer::failed(why), unknown(id))
            }
        };
        for client in killers {
            self.tell(client, &to_killers);
        }
        answer
    }

    fn tell_watchers(&mut self, answer: &Answer) {
        let watching: Vec<u64> = self.clients.iter().filter(|(_, c)| c.watches).map(|(n, _)| *n).collect();
        for client in watching {
            self.tell(client, answer);
        }
    }

    /// A child of ours and what tells of its end. One that ended stays until it is reaped, but that may have been just before, and its number
    /// somebody else's by now.
    pub(super) fn child(&mut self, pid: i32) -> io::Result<(Pid, OwnedFd)> {
        let (pid, ended) = match tools::watched(pid) {
            Ok(found) => found,
            Err(e) => return self.gone_already(pid).ok_or(e),
        };
        // One that has ended may be no child any more, and its number the next one's. Until who began it has ended it is a child of that.
        let mut over = [PollFd::new(&ended, PollFlags::IN)];
        let is_over = rustix::event::poll(&mut over, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }))? > 0;
        if is_over && let Some(gone) = self.gone_already(pid.as_raw_nonzero().get()) {
            return Ok(gone);
        }
        // Of those who had the number before nobody has asked.
        self.strays.retain(|(stray, _)| *stray != pid);
        Ok((pid, ended))
    }

    /// A process that was reaped before its number was read: any descriptor that is ready at once will do.
    fn gone_already(&self, pid: i32) -> Option<(Pid, OwnedFd)> {
        let pid = Pid::from_raw(pid)?;
        self.strays.iter().any(|(stray, _)| *stray == pid).then_some(())?;
        let (reader, _writer) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).ok()?;
        Some((pid, reader))
    }

    fn executed(&mut self, client: u64, verdict: Result<(), String>, pid_file: &Path) -> Result<Answer, String> {
        verdict?;
        let known = |e: io::Error| e.to_string();
        let pid = tools::read_pid(pid_file).map_err(known)?;
        let (pid, ended) = self.child(pid).map_err(known)?;
        if !self.clients.contains_key(&client) {
            // An error means that it ended just now.
            let _ = pidfd_send_signal(&ended, Signal::KILL);
        }
        self.execs.push(Exec { pid, ended, client: Some(client) });
        Ok(Answer::Started { pid: pid.as_raw_nonzero().get(), started_at: clock::now() })
    }

    fn execs_ended(&mut self) {
        while let Some(at) = self.execs.iter().position(|e| self.strays.iter().any(|(pid, _)| *pid == e.pid)) {
            let exec = self.execs.swap_remove(at);
            let exit_code = self.end_of(exec.pid).unwrap_or_default();
            if let Some(client) = exec.client {
                self.tell(client, &Answer::Exited { exit_code });
            }
        }
    }

    fn containers_ended(&mut self) {
        let ended = |s: &Self| {
            s.containers.iter().find_map(|(id, c)| match &c.stage {
                Stage::Running { pid, .. } if s.strays.iter().any(|(stray, _)| stray == pid) => {
                    Some((id.clone(), *pid))
                }
                _ => None,
            })
        };
        while let Some((id, pid)) = ended(self) {
            let code = self.end_of(pid).unwrap_or_default();
            self.container_ended(&id, code);
        }
    }

    /// The last output, the record on the disk, then who wants to know.
    fn container_ended(&mut self, id: &str, exit_code: i32) {
        let Some(container) = self.containers.get_mut(id) else { return };
        let complaints = [container.pump(false), container.pump(true)];
        let own = container.oom_kills();
        let oom = self.kills_in(id, own) > 0;
        let Some(container) = self.containers.get_mut(id) else { return };
        let exit = ExitRecord { exit_code, started_at: container.started_at, finished_at: clock::now(), oom };
        let cgroup = container.plan.cgroup.clone();
        let attached: Vec<u64> = container.attached.drain(..).map(|a| a.client).collect();
        container.stdin = None;
        container.stage = Stage::Ended(exit.clone());
        for complaint in complaints {
            self.complain(complaint);
        }
        // Not written: it is told all the same, and kept in memory as long as this process is there.
        let written = write_record(&self.plan.state.join(id).join(EXIT), &exit);
        self.complain(written.err().map(|e| format!("{EXIT} of {id}: {e}")));
        for client in attached {
            self.tell(client, &Answer::Exited { exit_code });
        }
        let event = Answer::Event { id: id.to_owned(), exit };
        self.tell_watchers(&event);
        self.delete(id, cgroup);
    }

    /// How often the kernel killed in a container that has ended. `own`: what its own file says.
    fn kills_in(&mut self, id: &str, own: Option<u64>) -> u64 {
        let is_other = |of: &str, c: &Container| of != id && !matches!(c.stage, Stage::Ended(_));
        let others = self.containers.iter().filter(|(of, c)| is_other(of, c)).filter_map(|(_, c)| c.oom_kills()).sum();
        self.kills.as_mut().map_or(own.unwrap_or_default(), |kills| kills.of_ended(own, others))
    }

    /// What is left of it: its cgroup, or what the OCI runtime still keeps, processes among it.
    pub(super) fn delete(&mut self, id: &str, cgroup: Option<String>) {
        if let Some(cgroup) = cgroup {
            match Leaving::new(cgroup, &self.plan.hierarchies) {
                Ok(leaving) => self.leaving.push(leaving),
                Err(e) => self.complain(Some(format!("what is left of {id}: {e}"))),
            }
            return self.leave();
        }
        self.next += 1;
        let name = format!("delete{}", self.next);
        let args = [OsStr::new("delete"), OsStr::new("--force"), OsStr::new(id)];
        match Tool::start(&self.run, &self.plan, &name, &args, Streams::default()) {
            Ok(tool) => self.tools.push((tool, Purpose::Delete)),
            Err(e) => self.complain(Some(format!("delete {id}: {e}"))),
        }
    }

    /// Removes cgroups of containers that have ended. The last process of one may be on its way out yet, or hang in a call of the kernel's.
    pub(super) fn leave(&mut self) {
        let (now, is_ending) = (Instant::now(), self.ending.is_some());
        for one in std::mem::take(&mut self.leaving) {
            match one.attempt(now, is_ending) {
                Ok(left) => self.leaving.extend(left),
                Err(e) => self.complain(Some(format!("a cgroup stays: {e}"))),
            }
        }
    }
}
