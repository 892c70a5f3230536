//! `bosun-pod start`: a container, as an OCI runtime would start it, which a start of such a program takes several times as long for.
//!
//! Only where nothing is asked for that an OCI runtime has to do (`container_spec::is_plain_container` decides that): no label of SELinux, no users of the pod's own, a PID namespace of the container's own. A seccomp profile is there as the filter that the server made of it. What is left is what
//! `runc run` does. The supervisor waits for none of it: it starts `start`, which is a process of the node's until its end: it makes the
//! cgroup, with its limits, joins the pod's namespaces, and copies itself ([`First`]), as process 1 of a PID namespace, which makes the container's mounts around
//! itself, enters the cgroup, and then becomes its program.
//!
//! Files of the image, and of volumes that other containers write to at the same time, are not trusted: sources of mounts are opened on the node's side,
//! then the container's root becomes the root, and from then on no path leads out of it, as nothing that this process has open does ([`Own`]); what is
//! made is made in folders that were found one by one ([`place`]).

use std::convert::Infallible;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use cgroup_fork::Processes;
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space};
use serde::{Deserialize, Serialize};

use crate::cgroups::{Groups, Hierarchy};
use crate::helper::{self, Own, at, receive};
use crate::hold;
use crate::next::{self, Way};
use crate::process::become_process;
use crate::terminal::Terminal;

mod devices;
mod hide;
mod joined;
mod mounts;
mod place;
mod root;
mod spec;

use joined::Joined;
use spec::Spec;

/// What it is in the words for what went wrong.
pub(crate) const WHAT: &str = "container start";
/// As a login shell of root has it.
const UMASK: u32 = 0o022;

/// What the supervisor tells; the container's three streams, and the socket that waits for its terminal, if it is to have one, come along.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    /// The container's id.
    pub(crate) id: String,
    /// Folder with `config.json` and the root file system.
    pub(crate) bundle: PathBuf,
    /// Its cgroup, which is not there yet.
    pub(crate) cgroup: String,
    /// Where it is.
    pub(crate) hierarchies: Vec<Hierarchy>,
}

/// Begins the container that its standard input, a socket, tells of: what is to be done on the node's side. The number of its first process is
/// told, which goes on as a copy of this process ([`First`]).
///
/// # Errors
/// What it is was told over the socket, in the words of `runc`.
pub fn start() -> io::Result<()> {
    helper::begin(WHAT, begin)
}

fn begin(told: &UnixStream) -> io::Result<()> {
    let (order, passed): (Order, _) = receive(told)?;
    let spec = Spec::read(&order.bundle)?;
    let (streams, terminal) = helper::split(passed, spec.process.terminal)?;
    let last_capability = helper::last_capability()?;
    let groups = Groups::of(&order.cgroup, &order.hierarchies)?;
    groups.make()?;
    groups.limit(&spec.linux.resources)?;
    groups.allow(&spec.linux.resources)?;
    if let Some(score) = spec.process.oom_score_adj {
        fs::write("/proc/self/oom_score_adj", score.to_string())?;
    }
    helper::join_keyring(&order.id, true)?;
    for (kind, path) in spec.linux.joined()? {
        join(kind, path)?;
    }
    let entrance = groups.entrance();
    let first = First { bundle: order.bundle, spec, groups, last_capability, streams, terminal };
    next::go_on(WHAT, Processes::Own, told, entrance, |way| first.becomes(told, way))
}

/// Joins a namespace of the pod's.
fn join(kind: LinkNameSpaceType, path: &Path) -> io::Result<()> {
    let namespace = File::open(path).map_err(at(path))?;
    move_into_link_name_space(namespace.as_fd(), Some(kind)).map_err(io::Error::from).map_err(at(path))
}

/// What process 1 of the new PID namespace is made of.
struct First {
    bundle: PathBuf,
    spec: Spec,
    groups: Groups,
    last_capability: u32,
    streams: [OwnedFd; 3],
    /// The socket that waits for its terminal.
    terminal: Option<OwnedFd>,
}

impl First {
    /// Becomes the container's first process: mounts, user, capabilities, program. Nothing of it is to be said on streams, which may be the container's.
    fn becomes(self, told: &UnixStream, way: Way<'_>) -> io::Result<Infallible> {
        let Self { bundle, spec, groups, last_capability, mut streams, terminal } = self;
        let filter = spec.filter(&bundle)?;
        let own = Own::new()?;
        rustix::process::setsid()?;
        hold::leave(UnshareFlags::NEWNS)?;
        // By names of the node's, which are not to be seen later.
        let mut joined = Joined::new(way.open()?, spec.linux.own_cgroups());
        let has_dev = root::make(&own, &bundle, &spec, &groups, &mut joined)?;
        if let Some(waits) = terminal {
            let terminal = Terminal::open(&own, spec.process.user.uid)?;
            devices::console(&terminal.slave)?;
            streams = terminal.give(&own, &waits)?;
        }
        if has_dev {
            devices::own_null(&own, &mut streams)?;
        }
        // Before nothing can be made any more.
        place::folders(&spec.process.cwd)?;
        root::finish(&own, &spec)?;
        if let Some(profile) = &spec.process.apparmor_profile {
            own.confine(profile)?;
        }
        own.close()?;
        joined.enter()?;
        rustix::process::umask(rustix::fs::Mode::from_bits_truncate(UMASK));
        become_process(&spec.process, last_capability, streams, told, filter.as_ref())
    }
}
