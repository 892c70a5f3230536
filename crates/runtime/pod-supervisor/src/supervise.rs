//! `bosun-pod run`: the loop.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use cgroup_fork::{Processes, fork};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Pid;

use crate::cgroups::{Entrance, hierarchies_here};
use crate::helper::{self, again, at};
use crate::record::{PodPlan, read_record};
use crate::wire::Answer;
use crate::{CONFINES, PLAN, READY, SOCKET, hold};

mod attach;
mod begin;
mod client;
mod container;
mod ends;
mod entering;
mod leaving;
mod lines;
mod log;
mod oom;
mod requests;
mod tools;

use client::{Client, MAX_CLIENTS};
use container::{Container, Stage};
use entering::Entering;
use leaving::Leaving;
use oom::PodKills;
use tools::Tool;

/// How often strays are looked for: processes of containers without a PID namespace of their own whose parents died. Nothing
/// tells of their ends, and until then they cost no more than their number.
const STRAYS: Duration = Duration::from_secs(60);
/// Bytes of complaints on standard error.
const MAX_COMPLAINTS: usize = 64 << 10;

/// What a call of the OCI runtime is for.
#[derive(Debug)]
enum Purpose {
    Run { id: String, client: u64, pid_file: PathBuf },
    Exec { client: u64, pid_file: PathBuf },
    Signal { client: u64 },
    Delete,
}

/// A process in a container that is reaped when it ends.
#[derive(Debug)]
struct Exec {
    pid: Pid,
    ended: OwnedFd,
    /// Who waits for it.
    client: Option<u64>,
}

/// Whose turn it is.
#[derive(Clone, Debug)]
enum Turn {
    Listener,
    Client(u64),
    /// Something ended.
    Child,
    /// What is about to become a container or a command says something, or is one.
    Entering(Pid),
    Output(String, bool),
    Console(String),
    Input(String, u64),
}

/// The supervisor of one pod.
#[derive(Debug)]
struct Supervisor {
    run: PathBuf,
    plan: PodPlan,
    listener: UnixListener,
    clients: BTreeMap<u64, Client>,
    containers: BTreeMap<String, Container>,
    tools: Vec<(Tool, Purpose)>,
    /// Containers and commands that are about to begin without the OCI runtime.
    entering: Vec<Entering>,
    /// What ended ones leave behind.
    leaving: Vec<Leaving>,
    execs: Vec<Exec>,
    /// Ends of children that nobody asked about yet: an OCI runtime's process may end before its number is read.
    strays: VecDeque<(Pid, i32)>,
    /// Where containers' own counts of them go with their last process.
    kills: Option<PodKills>,
    /// Process 1 of the pod's PID namespace.
    init: Option<(Pid, OwnedFd)>,
    /// Numbers of clients and of files.
    next: u64,
    complained: usize,
    /// Who wants to know that this has ended.
    ending: Option<u64>,
}

/// Supervises the pod of `dir` until it is told to end. Whoever starts it closes its standard input when the plan is there.
///
/// # Errors
/// It cannot start; nothing is left of it then.
pub fn supervise(dir: &Path) -> io::Result<()> {
    // A copy of a helper looks for the container's program with all that it has open, which is to be nothing of who started this.
    helper::hand_nothing_on();
    io::copy(&mut io::stdin(), &mut io::sink())?;
    let mut plan: PodPlan = read_record(&dir.join(PLAN))?;
    if enter(dir, &plan)? {
        return Ok(());
    }
    if plan.hierarchies.is_empty() {
        plan.hierarchies = hierarchies_here()?;
    }
    // Not a group's leader, as it was started by a program; a terminal and its signals are left behind.
    rustix::process::setsid()?;
    std::env::set_current_dir("/")?;
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    if let Some(score) = plan.oom_score_adj {
        fs::write("/proc/self/oom_score_adj", score.to_string())?;
    }
    fs::File::create(dir.join(CONFINES))?;
    let socket = dir.join(SOCKET);
    match fs::remove_file(&socket) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
        _ => {}
    }
    let init = if plan.namespaces.any() { hold::make_namespaces(dir, &plan.namespaces)? } else { None };
    let started = Supervisor::start(dir, plan, init);
    let mut supervisor = match started {
        Ok(supervisor) => supervisor,
        Err(e) => {
            hold::release(dir);
            return Err(e);
        }
    };
    let mut out = io::stdout();
    // Whoever started this may be gone already: that is no reason to end.
    let _ = out.write_all(READY).and_then(|()| out.flush());
    supervisor.serve()
}

/// Puts this process into its cgroup, or answers that another one goes on, which has begun there. A scope is made with it by whoever started it.
fn enter(dir: &Path, plan: &PodPlan) -> io::Result<bool> {
    let pid = std::process::id().to_string();
    let mut outside = Vec::new();
    for procs in plan.cgroup_procs.iter().filter(|_| !plan.systemd_cgroup) {
        // One that is gone was taken away, and the pod with it.
        let inside = fs::read_to_string(procs).map_err(at(procs))?;
        outside.extend(procs.parent().filter(|_| inside.lines().all(|one| one != pid)));
    }
    let entrance = Entrance::to(outside);
    if let Some(folder) = entrance.begins_in() {
        let folder = OwnedFd::from(fs::File::open(folder).map_err(at(folder))?);
        let goes_on = || drop(writeln!(io::stderr(), "bosun-pod: {}", again("run").arg(dir).exec()));
        if fork(Some(folder), Processes::Shared, goes_on).is_ok() {
            return Ok(true);
        }
    }
    // Who cannot begin there waits.
    entrance.begun_elsewhere().open()?.enter().map(|()| false)
}

/// `memory.events` of the supervisor's own cgroup.
fn own_oom_file(plan: &PodPlan) -> Option<PathBuf> {
    plan.cgroup_procs.first().map(|procs| procs.with_file_name("memory.events"))
}

impl Supervisor {
    fn start(dir: &Path, plan: PodPlan, init: Option<Pid>) -> io::Result<Self> {
        let listener = UnixListener::bind(dir.join(SOCKET))?;
        listener.set_nonblocking(true)?;
        let init = init.map(|pid| tools::watched(pid.as_raw_nonzero().get())).transpose()?;
        Ok(Self {
            run: dir.to_owned(),
            kills: plan.oom_file.clone().map(|file| PodKills::new(file, own_oom_file(&plan))),
            plan,
            listener,
            clients: BTreeMap::new(),
            containers: BTreeMap::new(),
            tools: Vec::new(),
            entering: Vec::new(),
            leaving: Vec::new(),
            execs: Vec::new(),
            strays: VecDeque::new(),
            init,
            next: 0,
            complained: 0,
            ending: None,
        })
    }

    fn serve(&mut self) -> io::Result<()> {
        // What the OCI runtime is at is ended first: nobody else would look after it.
        while self.ending.is_none() || !self.tools.is_empty() || !self.leaving.is_empty() {
            let turns = self.wait()?;
            for turn in turns {
                self.take(turn);
            }
            self.end_late();
            self.reap();
            self.leave();
        }
        if let Some((pid, _)) = &self.init {
            hold::end_init(*pid)?;
        }
        hold::release(&self.run);
        fs::remove_file(self.run.join(SOCKET))?;
        if let Some(client) = self.ending {
            self.tell(client, &Answer::Done);
        }
        Ok(())
    }

    /// Sleeps until something happens.
    fn wait(&self) -> io::Result<Vec<Turn>> {
        let (turns, mut fds) = self.watched();
        let now = Instant::now();
        let calls = self.tools.iter().map(|(tool, _)| tool.time_left(now).unwrap_or(Duration::from_millis(100)));
        let calls = calls.chain(self.entering.iter().map(|e| e.time_left(now)));
        let strays = self.containers.values().any(|c| matches!(c.stage, Stage::Running { .. })).then_some(STRAYS);
        let leaving = self.leaving.iter().map(|one| one.wait(now, self.ending.is_some()));
        let shortest = calls.chain(strays).chain(leaving).min();
        let shortest = shortest.and_then(|d| Timespec::try_from(d).ok());
        match poll(&mut fds, shortest.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
        let ready = turns.into_iter().zip(&fds).filter(|(_, fd)| !fd.revents().is_empty());
        Ok(ready.map(|(turn, _)| turn).collect())
    }

    fn watched(&self) -> (Vec<Turn>, Vec<PollFd<'_>>) {
        let mut all: Vec<(Turn, BorrowedFd<'_>, PollFlags)> = Vec::new();
        let read = PollFlags::IN;
        all.push((Turn::Listener, self.listener.as_fd(), read));
        all.extend(self.clients.iter().map(|(n, c)| (Turn::Client(*n), c.stream.as_fd(), read)));
        all.extend(self.tools.iter().map(|(tool, _)| (Turn::Child, tool.ended.as_fd(), read)));
        all.extend(self.entering.iter().map(|e| (Turn::Entering(e.helper), e.told.as_fd(), read)));
        all.extend(self.execs.iter().map(|e| (Turn::Child, e.ended.as_fd(), read)));
        all.extend(self.init.iter().map(|(_, ended)| (Turn::Child, ended.as_fd(), read)));
        for (id, c) in &self.containers {
            if let Stage::Running { ended, .. } = &c.stage {
                all.push((Turn::Child, ended.as_fd(), read));
            }
            all.extend(c.stdout.iter().map(|o| (Turn::Output(id.clone(), false), o.fd.as_fd(), read)));
            all.extend(c.stderr.iter().map(|o| (Turn::Output(id.clone(), true), o.fd.as_fd(), read)));
            all.extend(c.console.iter().map(|(l, _)| (Turn::Console(id.clone()), l.as_fd(), read)));
            let Some(to) = &c.stdin else { continue };
            for a in &c.attached {
                let turn = Turn::Input(id.clone(), a.client);
                match &a.input {
                    _ if !a.pending.is_empty() => all.push((turn, to.as_fd(), PollFlags::OUT)),
                    Some(from) => all.push((turn, from.as_fd(), read)),
                    None => {}
                }
            }
        }
        all.into_iter().map(|(turn, fd, flags)| (turn, PollFd::from_borrowed_fd(fd, flags))).unzip()
    }

    fn take(&mut self, turn: Turn) {
        match turn {
            Turn::Listener => self.accept(),
            Turn::Client(number) => self.hear(number),
            // Reaped after all turns.
            Turn::Child => {}
            Turn::Entering(pid) => self.entered(pid),
            Turn::Output(id, error) => {
                let complaint = self.containers.get_mut(&id).and_then(|c| c.pump(error));
                self.complain(complaint);
            }
            Turn::Console(id) => {
                let taken = self.containers.get_mut(&id).map_or(Ok(()), Container::take_console);
                self.complain(taken.err().map(|e| format!("terminal of {id}: {e}")));
            }
            Turn::Input(id, client) => self.feed(&id, client),
        }
    }

    fn accept(&mut self) {
        match Client::accept(&self.listener) {
            Ok(Some(client)) => {
                if self.clients.len() >= MAX_CLIENTS {
                    let Some(idle) = self.clients.iter().find(|(_, c)| !c.busy).map(|(n, _)| *n) else { return };
                    self.drop_client(idle);
                }
                self.next += 1;
                self.clients.insert(self.next, client);
            }
            Ok(_) => {}
            Err(e) => self.complain(Some(format!("a connection: {e}"))),
        }
    }

    /// Answers; who cannot be answered is cut.
    fn tell(&mut self, client: u64, answer: &Answer) {
        let told = self.clients.get_mut(&client).is_none_or(|c| c.tell(answer));
        if !told {
            self.drop_client(client);
        }
    }

    /// Says something to the log of this process, within bounds.
    fn complain(&mut self, words: Option<String>) {
        let Some(words) = words.filter(|_| self.complained < MAX_COMPLAINTS) else { return };
        self.complained += words.len();
        // Nobody may read it.
        let _ = writeln!(io::stderr(), "bosun-pod {}: {words}", self.plan.id);
    }
}
