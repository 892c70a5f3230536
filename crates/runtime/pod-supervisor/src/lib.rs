//! `bosun-pod`: one small process per pod that its containers outlive everything else by.
//!
//! It makes the pod's namespaces, starts containers and commands in them itself, or by an OCI runtime (`runc`, `crun`) where something is
//! asked for that it does not know ([`ContainerPlan::cgroup`], [`wire::Request::Exec`]), holds their standard streams, writes their
//! logs in the CRI's format, reaps them (it is their subreaper) and writes to disk how they ended. Whoever serves the CRI tells it
//! what to do over a unix socket ([`wire`]), may die at any moment, and asks the next one for [`wire::Request::State`].
//!
//! One thread, one `poll` loop, no runtime: it sleeps unless something happens, and every buffer has a bound. What it keeps:
//!
//! * `RUN/pod.json` ([`PodPlan`]): what it is started with; `RUN/pod.sock`: its socket; `RUN/ns/`: the pod's namespaces, held by
//!   bind mounts, so that no process has to hold them (but process 1 of a PID namespace that containers share);
//! * `STATE/<container>/exit.json` ([`ExitRecord`]): written before anybody is told, and kept until the container is removed.
//!
//! If it is killed, its containers go on without streams or reaper: whoever serves the CRI sees the connection end (or finds no
//! socket when it starts) and kills their cgroups (`docs/decisions/0028-own-runtime.md`).

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod capabilities;
pub mod cgroups;
mod clock;
mod command;
mod container;
pub mod fds;
mod helper;
mod hold;
mod loopback;
mod next;
mod null;
mod process;
pub mod record;
mod supervise;
mod terminal;
pub mod wire;

pub use capabilities::CAPABILITIES;
pub use clock::now;
pub use command::exec;
pub use container::start;
pub use hold::{hold, init};
pub use record::{ContainerPlan, ExitRecord, Held, IdRange, NamespacePlan, PodPlan};
pub use supervise::supervise;

/// Name of the socket in the folder of a pod.
pub const SOCKET: &str = "pod.sock";
/// Name of the plan in the folder of a pod.
pub const PLAN: &str = "pod.json";
/// Name of the folder of namespaces in the folder of a pod.
pub const NAMESPACES: &str = "ns";
/// Names of the files in that folder, each a mount of a namespace, where the pod has it of its own.
pub const NAMESPACE_FILES: [&str; 5] = ["net", "ipc", "uts", "user", "pid"];
/// Name of an empty file in the bundle of a container that the supervisor started itself.
pub const OWN: &str = "own";
/// Name of the file in the bundle of a container with the filter of its seccomp profile (`seccomp_filter::Filter`).
pub const FILTER: &str = "seccomp.json";
/// Name of an empty file in the folder of a pod whose supervisor loads such filters and takes AppArmor profiles on: one of a version before that does neither.
pub const CONFINES: &str = "confines";
/// What the supervisor says on its standard output when it takes commands.
pub const READY: &[u8] = b"ready\n";
