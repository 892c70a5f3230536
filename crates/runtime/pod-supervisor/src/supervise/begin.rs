//! Containers and commands that the supervisor starts itself: begun, and ended before they have.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Instant;

use rustix::fs::{Mode, OFlags};
use rustix::process::Pid;

use super::client::MAX_STREAMS;
use super::container::Container;
use super::entering::{Becomes, Entering, Told};
use super::tools::TIME_LIMIT;
use super::{Exec, Supervisor};
use crate::record::ContainerPlan;
use crate::wire::{Answer, MAX_FDS};
use crate::{OWN, clock, command, container};

impl Supervisor {
    /// Begins a container.
    pub(super) fn begin(&mut self, client: u64, plan: ContainerPlan, cgroup: String) -> io::Result<()> {
        if self.leaving.iter().any(|one| one.cgroup == cgroup) {
            return Err(io::Error::other(format!("cgroup {cgroup} of a start that failed is not gone yet")));
        }
        self.next += 1;
        let hierarchies = self.plan.hierarchies.clone();
        let order = container::Order { id: plan.id.clone(), bundle: plan.bundle.clone(), cgroup, hierarchies };
        let (container, streams) = Container::prepare(plan, &self.run, self.next)?;
        let waits = container.console.as_ref().map(|(_, path)| handle(path)).transpose()?;
        let streams = [streams.stdin, streams.stdout, streams.stderr].into_iter();
        let streams = streams.map(|s| s.map_or_else(null, Ok)).collect::<io::Result<Vec<_>>>()?;
        let passed: Vec<BorrowedFd<'_>> = streams.iter().chain(&waits).map(AsFd::as_fd).collect();
        // By it others know who started the container; what has it is gone after a boot.
        File::create(order.bundle.join(OWN))?;
        let becomes = Becomes::Container { id: order.id.clone(), client };
        match Entering::start(becomes, &order, &passed) {
            Ok(entering) => {
                self.entering.push(entering);
                self.containers.insert(order.id, container);
                Ok(())
            }
            Err(e) => {
                self.delete(&order.id, Some(order.cgroup));
                Err(e)
            }
        }
    }

    /// Begins a command in a container.
    pub(super) fn enter(
        &mut self,
        client: u64,
        id: &str,
        process: PathBuf,
        console: Option<&Path>,
        mut streams: Vec<OwnedFd>,
    ) -> io::Result<Option<Answer>> {
        if self.entering.len() >= MAX_STREAMS {
            return Ok(Some(Answer::failed("too many commands begin at a time in this pod")));
        }
        while streams.len() < MAX_FDS {
            streams.push(null()?);
        }
        let (pid, first) = match self.running(id) {
            Ok(first) => first,
            Err(answer) => return Ok(Some(answer)),
        };
        // Read while nobody has reaped it: its number is its own.
        let cgroups = fs::read_to_string(format!("/proc/{}/cgroup", pid.as_raw_nonzero()))?;
        let waits = console.map(handle).transpose()?;
        let mut passed: Vec<BorrowedFd<'_>> = streams.iter().map(AsFd::as_fd).collect();
        passed.push(first.as_fd());
        passed.extend(waits.as_ref().map(AsFd::as_fd));
        let order = command::Order { id: id.to_owned(), process, cgroups, hierarchies: self.plan.hierarchies.clone() };
        let entering = Entering::start(Becomes::Command { client }, &order, &passed)?;
        self.entering.push(entering);
        Ok(None)
    }

    /// What is about to begin says something, has begun, or has failed.
    pub(super) fn entered(&mut self, helper: Pid) {
        let Some(at) = self.entering.iter().position(|e| e.helper == helper) else { return };
        let Some(told) = self.entering[at].told() else { return };
        let started = match told {
            Told::Failed { why, pid } => {
                let process = pid.and_then(|pid| self.child(pid).ok());
                self.await_end(process);
                Err(why)
            }
            Told::Began(pid) => self.child(pid).map_err(|e| e.to_string()),
        };
        let becomes = self.entering.swap_remove(at).becomes;
        self.begun(becomes, started);
    }

    /// Tells who waits for it that something has begun, or has failed.
    fn begun(&mut self, becomes: Becomes, started: Result<(Pid, OwnedFd), String>) {
        match becomes {
            Becomes::Container { id, client } => {
                let answer = self.ran(&id, started);
                self.tell(client, &answer);
            }
            Becomes::Command { client } => match started {
                Ok((pid, ended)) => {
                    self.tell(client, &Answer::Started { pid: pid.as_raw_nonzero().get(), started_at: clock::now() });
                    self.execs.push(Exec { pid, ended, client: Some(client) });
                }
                Err(why) => self.tell(client, &Answer::failed(why)),
            },
        }
    }

    /// Ends those whose time is over.
    pub(super) fn end_late(&mut self) {
        let now = Instant::now();
        for late in self.entering.extract_if(.., |e| e.deadline <= now).collect::<Vec<_>>() {
            let becomes = late.becomes.clone();
            self.await_end(late.end());
            let why = format!("the {} did not begin within {TIME_LIMIT:?}", becomes.name());
            self.begun(becomes, Err(why));
        }
    }

    /// Ends commands whose client is gone.
    pub(super) fn end_of_client(&mut self, client: u64) {
        for gone in self.entering.extract_if(.., |e| e.becomes.is_command_of(client)).collect::<Vec<_>>() {
            self.await_end(gone.end());
        }
    }

    /// Waits for what is not to begin any more. What was to become a command is in the container's PID namespace, whose first process does not end,
    /// killed or not, until all others in it are reaped.
    fn await_end(&mut self, process: Option<(Pid, OwnedFd)>) {
        self.execs.extend(process.map(|(pid, ended)| Exec { pid, ended, client: None }));
    }
}

fn null() -> io::Result<OwnedFd> {
    Ok(OpenOptions::new().read(true).write(true).open("/dev/null")?.into())
}

/// A socket that somebody listens on, for who cannot reach its path.
fn handle(socket: &Path) -> io::Result<OwnedFd> {
    Ok(rustix::fs::open(socket, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?)
}
