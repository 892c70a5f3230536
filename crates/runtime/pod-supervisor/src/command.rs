//! `bosun-pod exec`: a command in a container, as an OCI runtime would make it, which a start of such a program takes several
//! times as long for.
//!
//! Only where nothing is asked for that an OCI runtime has to do: no users of the pod's own, no label
//! of SELinux (`runtime-server` decides that, and the supervisor's [`crate::wire::Request::Exec`] says it). A seccomp profile is there as the filter
//! that the server made of it. What is left is what `runc exec`
//! does: cgroups, session keyring, namespaces, terminal, limits, user, capabilities, program. The supervisor waits for none of it: it starts `exec`, which
//! is a process of the node's until its end, and reaps what becomes of its copy ([`Command`]).
//!
//! Nothing of the container is trusted: its mounts are entered last, and from then on no program is started but the command, no library of it
//! is loaded (`/etc/passwd` is read here, and not by the C library, which would load what `/etc/nsswitch.conf` names), and descriptors
//! that lead out are closed with the start of the command.

use std::convert::Infallible;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use cgroup_fork::Processes;
use rustix::thread::ThreadNameSpaceType;
use seccomp_filter::Filter;
use serde::{Deserialize, Serialize};

use crate::cgroups::{self, Entrance, Hierarchy, has_all, hierarchies_here};
use crate::helper::{self, Own, at, receive};
use crate::next::{self, Way};
use crate::null;
use crate::process::{self, Process};
use crate::terminal::Terminal;

/// What it is in the words for what went wrong.
pub(crate) const WHAT: &str = "exec";

/// What the supervisor tells; the command's three streams, a descriptor of the container's first process, and the socket that waits for the
/// terminal, if there is to be one, come along.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    /// The container's id.
    pub(crate) id: String,
    /// A file with the `process` of an OCI spec.
    pub(crate) process: PathBuf,
    /// `/proc/PID/cgroup` of the container's first process.
    pub(crate) cgroups: String,
    /// Where those are.
    pub(crate) hierarchies: Vec<Hierarchy>,
}

/// Begins the command that its standard input, a socket, tells of: what is to be done on the node's side, and all namespaces of the container but
/// those of mounts and cgroups. A PID namespace is for children, so a copy of this process goes on ([`Command`]); the number of that is told.
///
/// # Errors
/// What it is was told over the socket, in the words of `runc`.
pub fn exec() -> io::Result<()> {
    helper::begin(WHAT, begin)
}

/// All that is done on the node's side; what is done here goes over to the second process.
fn begin(told: &UnixStream) -> io::Result<()> {
    let (order, passed): (Order, _) = receive(told)?;
    let file = File::open(&order.process).map_err(at(&order.process))?;
    let process: Process = process::read(file).map_err(at(&order.process))?;
    let ([input, output, error, container], terminal) = helper::split(passed, process.terminal)?;
    let entrance = entrance(&order)?;
    if let Some(score) = process.oom_score_adj {
        fs::write("/proc/self/oom_score_adj", score.to_string())?;
    }
    helper::join_keyring(&order.id, false)?;
    let filter = process.seccomp_filter.as_deref().map(process::read_filter).transpose()?;
    let last_capability = helper::last_capability()?;
    // Not its mounts: this program's file is among those of the node. Nor its cgroups: who has those as the top moves nobody into them (`nsdelegate`).
    let namespaces = ThreadNameSpaceType::INTER_PROCESS_COMMUNICATION
        | ThreadNameSpaceType::HOST_NAME_AND_NIS_DOMAIN_NAME
        | ThreadNameSpaceType::NETWORK
        | ThreadNameSpaceType::PROCESS_ID;
    rustix::thread::move_into_thread_name_spaces(container.as_fd(), namespaces)?;
    let command = Command { process, filter, last_capability, container, streams: [input, output, error], terminal };
    next::go_on(WHAT, Processes::Shared, told, entrance, |way| command.becomes(told, way))
}

/// How the command gets into the container's cgroups. One of a hierarchy that was mounted after the server had looked is among them.
fn entrance(order: &Order) -> io::Result<Entrance> {
    match has_all(&order.cgroups, &order.hierarchies) {
        true => cgroups::entrance(&order.cgroups, &order.hierarchies),
        false => cgroups::entrance(&order.cgroups, &hierarchies_here()?),
    }
}

/// What a command is made of.
struct Command {
    process: Process,
    filter: Option<Filter>,
    last_capability: u32,
    /// The container's first process.
    container: OwnedFd,
    streams: [OwnedFd; 3],
    /// The socket that waits for its terminal.
    terminal: Option<OwnedFd>,
}

impl Command {
    /// Becomes the command: mounts, user, capabilities, program. Nothing of it is to be said on streams, which may be the command's.
    fn becomes(self, told: &UnixStream, way: Way<'_>) -> io::Result<Infallible> {
        let Self { process, filter, last_capability, container, mut streams, terminal } = self;
        let own = Own::new()?;
        // By names of the node's, which are not to be seen from here on.
        let gate = way.open()?;
        rustix::thread::move_into_thread_name_spaces(container.as_fd(), ThreadNameSpaceType::MOUNT)?;
        // Whoever started the supervisor may have had it otherwise.
        rustix::process::setsid()?;
        if let Some(waits) = terminal {
            streams = Terminal::open(&own, process.user.uid)?.give(&own, &waits)?;
        }
        if let Some(profile) = &process.apparmor_profile {
            own.confine(profile)?;
        }
        null::replace(&mut streams, null::own)?;
        own.close()?;
        // Before it is the command: from then on whoever ends the container ends it, too.
        gate.pass()?;
        rustix::thread::move_into_thread_name_spaces(container.as_fd(), ThreadNameSpaceType::CONTROL_GROUP)?;
        process::become_process(&process, last_capability, streams, told, filter.as_ref())
    }
}
