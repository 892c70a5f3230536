//! Commands that the supervisor runs itself: begun, and ended before they have.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::time::Instant;

use rustix::process::Pid;

use super::client::MAX_STREAMS;
use super::entering::{Entering, Told};
use super::tools::TIME_LIMIT;
use super::{Exec, Supervisor};
use crate::clock;
use crate::command::Order;
use crate::wire::{Answer, MAX_FDS};

impl Supervisor {
    /// Begins a command in a container.
    pub(super) fn enter(
        &mut self,
        client: u64,
        id: &str,
        process: PathBuf,
        mut streams: Vec<OwnedFd>,
    ) -> io::Result<Option<Answer>> {
        if self.entering.len() >= MAX_STREAMS {
            return Ok(Some(Answer::failed("too many commands begin at a time in this pod")));
        }
        while streams.len() < MAX_FDS {
            streams.push(OpenOptions::new().read(true).write(true).open("/dev/null")?.into());
        }
        let (pid, first) = match self.running(id) {
            Ok(first) => first,
            Err(answer) => return Ok(Some(answer)),
        };
        // Read while nobody has reaped it: its number is its own.
        let cgroups = fs::read_to_string(format!("/proc/{}/cgroup", pid.as_raw_nonzero()))?;
        let mut passed: Vec<BorrowedFd<'_>> = streams.iter().map(AsFd::as_fd).collect();
        passed.push(first.as_fd());
        let entering = Entering::start(client, &Order { id: id.to_owned(), process, cgroups }, &passed)?;
        self.entering.push(entering);
        Ok(None)
    }

    /// What is about to become a command says something, has become one, or has failed.
    pub(super) fn entered(&mut self, helper: Pid) {
        let Some(at) = self.entering.iter().position(|e| e.helper == helper) else { return };
        let Some(told) = self.entering[at].told() else { return };
        let client = self.entering.swap_remove(at).client;
        match told {
            Told::Failed(why) => self.tell(client, &Answer::failed(why)),
            Told::Began(pid) => match self.child(pid) {
                Ok((pid, ended)) => {
                    self.tell(client, &Answer::Started { pid: pid.as_raw_nonzero().get(), started_at: clock::now() });
                    self.execs.push(Exec { pid, ended, client });
                }
                Err(e) => self.tell(client, &Answer::failed(e)),
            },
        }
    }

    /// Ends those whose time is over.
    pub(super) fn end_late(&mut self) {
        let now = Instant::now();
        for late in self.entering.extract_if(.., |e| e.deadline <= now).collect::<Vec<_>>() {
            let client = late.client;
            self.await_end(late);
            self.tell(client, &Answer::failed(format!("the command did not begin within {TIME_LIMIT:?}")));
        }
    }

    /// Ends those whose client is gone.
    pub(super) fn end_of_client(&mut self, client: u64) {
        for gone in self.entering.extract_if(.., |e| e.client == client).collect::<Vec<_>>() {
            self.await_end(gone);
        }
    }

    fn await_end(&mut self, entering: Entering) {
        let client = entering.client;
        self.execs.extend(entering.end().map(|(pid, ended)| Exec { pid, ended, client }));
    }
}
