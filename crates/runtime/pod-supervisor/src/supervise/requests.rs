//! What is asked for.

use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::Command;

use rustix::process::{Pid, Signal, pidfd_send_signal};

use super::attach::{Attached, Moved};
use super::client::{Heard, MAX_STREAMS, MAX_WATCHERS};
use super::container::{Container, Stage};
use super::tools::{Streams, Tool};
use super::{Purpose, Supervisor};
use crate::record::ContainerPlan;
use crate::wire::{Answer, Request};

/// Containers of a pod, ended ones among them.
const MAX_CONTAINERS: usize = 512;

impl Supervisor {
    /// A connection has something, or ended.
    pub(super) fn hear(&mut self, number: u64) {
        let Some(client) = self.clients.get_mut(&number) else { return };
        match client.read() {
            Heard::Nothing => {}
            Heard::Gone => self.drop_client(number),
            Heard::Request(request) => {
                let fds = std::mem::take(&mut client.fds);
                if let Some(answer) = self.request(number, request, fds).unwrap_or_else(|e| Some(Answer::failed(e))) {
                    self.tell(number, &answer);
                }
            }
        }
    }

    /// Carries a request out; `None`: the answer comes later.
    fn request(&mut self, client: u64, request: Request, fds: Vec<OwnedFd>) -> io::Result<Option<Answer>> {
        let answer = match request {
            Request::Run { container } => return self.run(client, container).map(|()| None),
            Request::Exec { .. } | Request::Attach { .. } if !self.may_stream(client) => {
                Answer::failed("too many commands and attachments at a time in this pod")
            }
            Request::Exec { id, process, console, direct: true } => {
                return self.enter(client, &id, process, console.as_deref(), fds);
            }
            Request::Exec { id, process, console, .. } => {
                return self.exec(client, &id, &process, console.as_deref(), fds);
            }
            Request::Signal { id, signal } => return self.signal(client, &id, signal),
            Request::Attach { id, stdin, stdout, stderr } => self.attach(client, &id, [stdin, stdout, stderr], fds)?,
            Request::Resize { id, width, height } => match self.containers.get(&id) {
                Some(container) => container.resize(width, height).map(|()| Answer::Done)?,
                None => unknown(&id),
            },
            Request::Reopen { id } => match self.containers.get_mut(&id) {
                Some(Container { stage: Stage::Ended(_), .. }) => Answer::failed("container is not running"),
                Some(container) => container.reopen().map(|()| Answer::Done)?,
                None => unknown(&id),
            },
            Request::Forget { id } => self.forget(&id),
            Request::State => self.state(),
            Request::Watch => {
                self.make_room_for_watcher();
                if let Some(client) = self.clients.get_mut(&client) {
                    client.watches = true;
                }
                self.state()
            }
            Request::End => return Ok(self.end(client)),
        };
        Ok(Some(answer))
    }

    /// Notes that a connection is there for a command or an attachment, unless too many are.
    fn may_stream(&mut self, client: u64) -> bool {
        let free = self.clients.values().filter(|c| c.streams).count() < MAX_STREAMS;
        if let Some(client) = self.clients.get_mut(&client) {
            client.streams = free;
        }
        free
    }

    /// Whoever followed the pod first is the one that is gone, or has been replaced.
    fn make_room_for_watcher(&mut self) {
        let watching: Vec<u64> = self.clients.iter().filter(|(_, c)| c.watches).map(|(n, _)| *n).collect();
        if let Some(oldest) = watching.first().filter(|_| watching.len() >= MAX_WATCHERS) {
            self.drop_client(*oldest);
        }
    }

    fn state(&self) -> Answer {
        Answer::State { containers: self.containers.values().map(Container::held).collect() }
    }

    fn end(&mut self, client: u64) -> Option<Answer> {
        if self.containers.values().any(|c| !matches!(c.stage, Stage::Ended(_))) {
            return Some(Answer::failed("containers of the pod run"));
        }
        self.ending = Some(client);
        None
    }

    fn forget(&mut self, id: &str) -> Answer {
        match self.containers.get(id).map(|c| &c.stage) {
            Some(Stage::Ended(_)) => {
                self.containers.remove(id);
                Answer::Done
            }
            Some(_) => Answer::failed("container is running"),
            None => unknown(id),
        }
    }

    fn run(&mut self, client: u64, plan: ContainerPlan) -> io::Result<()> {
        if self.containers.contains_key(&plan.id) || self.containers.len() >= MAX_CONTAINERS {
            return Err(io::Error::other("the container was started already, or there are too many"));
        }
        if self.ending.is_some() {
            return Err(io::Error::other("the pod is ending"));
        }
        if let Some(cgroup) = plan.cgroup.clone() {
            return self.begin(client, plan, cgroup);
        }
        self.next += 1;
        let number = self.next;
        let pid_file = self.run.join(format!("pid{number}"));
        let (id, bundle) = (plan.id.clone(), plan.bundle.clone());
        let (container, streams) = Container::prepare(plan, &self.run, number)?;
        let console = container.console.as_ref().map(|(_, path)| path.clone());
        let mut args = words(&["run", "--detach", "--bundle"]);
        args.extend([bundle.as_os_str(), OsStr::new("--pid-file"), pid_file.as_os_str()]);
        args.extend(console.iter().flat_map(|path| [OsStr::new("--console-socket"), path.as_os_str()]));
        args.push(OsStr::new(&id));
        let tool = Tool::start(&self.run, &self.plan, &format!("run{number}"), &args, streams)?;
        self.containers.insert(id.clone(), container);
        self.tools.push((tool, Purpose::Run { id, client, pid_file: pid_file.clone() }));
        Ok(())
    }

    fn exec(
        &mut self,
        client: u64,
        id: &str,
        process: &Path,
        console: Option<&Path>,
        fds: Vec<OwnedFd>,
    ) -> io::Result<Option<Answer>> {
        if let Err(answer) = self.running(id) {
            return Ok(Some(answer));
        }
        self.next += 1;
        let pid_file = self.run.join(format!("pid{}", self.next));
        let mut fds = fds.into_iter();
        let streams = Streams { stdin: fds.next(), stdout: fds.next(), stderr: fds.next() };
        let mut args = words(&["exec", "--detach", "--pid-file"]);
        args.extend([pid_file.as_os_str(), OsStr::new("--process"), process.as_os_str()]);
        args.extend(console.into_iter().flat_map(|path| [OsStr::new("--console-socket"), path.as_os_str()]));
        args.push(OsStr::new(id));
        let tool = Tool::start(&self.run, &self.plan, &format!("exec{}", self.next), &args, streams)?;
        self.tools.push((tool, Purpose::Exec { client, pid_file: pid_file.clone() }));
        Ok(None)
    }

    /// The first process of a container that runs.
    pub(super) fn running(&self, id: &str) -> Result<(Pid, &OwnedFd), Answer> {
        match self.containers.get(id).map(|c| &c.stage) {
            Some(Stage::Running { pid, ended }) => Ok((*pid, ended)),
            Some(_) => Err(Answer::failed("container is not running")),
            None => Err(unknown(id)),
        }
    }

    fn signal(&mut self, client: u64, id: &str, signal: i32) -> io::Result<Option<Answer>> {
        if let Some(starting) = self.containers.get_mut(id).filter(|c| matches!(c.stage, Stage::Starting))
            && signal == Signal::KILL.as_raw()
        {
            starting.killers.push(client);
            return Ok(None);
        }
        let Some(container) = self.containers.get(id) else { return Ok(Some(unknown(id))) };
        let (pid, ended) = match &container.stage {
            Stage::Running { pid, ended } => (*pid, ended),
            Stage::Starting => return Ok(Some(Answer::failed("container is starting"))),
            Stage::Ended(_) => return Ok(Some(Answer::Done)),
        };
        if let Some(signal) = Signal::from_named_raw(signal) {
            return match pidfd_send_signal(ended, signal) {
                Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(Some(Answer::Done)),
                Err(e) => Err(e.into()),
            };
        }
        // Real-time signals have no names: others send them.
        let (number, is_own) = (signal.to_string(), container.plan.cgroup.is_some());
        self.next += 1;
        let name = format!("kill{}", self.next);
        let tool = if is_own {
            // By its number, which could be another's if it ended and was reaped before the shell is there: libraries take signals by name alone.
            let mut shell = Command::new("/bin/sh");
            shell.args(["-c", "kill -\"$0\" \"$1\"", &number, &pid.as_raw_nonzero().to_string()]);
            Tool::call(shell, self.run.join(format!("{name}.log")), Streams::default())?
        } else {
            let mut args = words(&["kill"]);
            args.extend([OsStr::new(id), OsStr::new(&number)]);
            Tool::start(&self.run, &self.plan, &name, &args, Streams::default())?
        };
        self.tools.push((tool, Purpose::Signal { client }));
        Ok(None)
    }

    fn attach(&mut self, client: u64, id: &str, wanted: [bool; 3], fds: Vec<OwnedFd>) -> io::Result<Answer> {
        let Some(container) = self.containers.get_mut(id) else { return Ok(unknown(id)) };
        if !matches!(container.stage, Stage::Running { .. }) {
            return Ok(Answer::failed("container is not running"));
        }
        let mut fds = fds.into_iter();
        let mut next = |wanted: bool| if wanted { fds.next() } else { None };
        let [input, stdout, stderr] = wanted.map(&mut next);
        // Without a place to go, input would be read and lost.
        let input = input.filter(|_| container.stdin.is_some());
        container.attached.push(Attached::new(client, input, stdout, stderr)?);
        Ok(Answer::Done)
    }

    /// Somebody who is attached has input for a container.
    pub(super) fn feed(&mut self, id: &str, client: u64) {
        let Some(container) = self.containers.get_mut(id) else { return };
        let Some(to) = &container.stdin else { return };
        let Some(from) = container.attached.iter_mut().find(|a| a.client == client) else { return };
        if from.feed(to) == Moved::Ended {
            (from.input, from.pending) = (None, Vec::new());
            container.input_ended();
        }
    }

    /// A connection ended: what hangs on it ends too.
    pub(super) fn drop_client(&mut self, number: u64) {
        self.clients.remove(&number);
        for container in self.containers.values_mut() {
            container.detach(number);
        }
        self.end_of_client(number);
        for exec in self.execs.iter().filter(|e| e.client == Some(number)) {
            // An error means that it ended just now.
            let _ = pidfd_send_signal(&exec.ended, Signal::KILL);
        }
    }
}

fn words<'a>(all: &[&'a str]) -> Vec<&'a OsStr> {
    all.iter().copied().map(OsStr::new).collect()
}

pub(super) fn unknown(id: &str) -> Answer {
    Answer::Failed { why: format!("no container {id}"), unknown: true }
}
