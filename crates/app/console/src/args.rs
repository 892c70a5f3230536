//! Words that several commands share.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::show::Output;

/// Where the daemon answers the command line.
pub const SOCKET: &str = "/run/bosun/bosun.sock";

/// Where to ask.
#[derive(Clone, Debug, Args)]
pub struct SocketArg {
    /// The daemon's socket.
    #[arg(long, default_value = SOCKET, global = true)]
    pub(crate) socket: PathBuf,
}

/// Which pod.
#[derive(Clone, Debug, Args)]
pub struct PodArg {
    /// Pod: its name (a static pod also without the node's name), `namespace/name`, or UID.
    pub(crate) pod: String,
    /// Namespace; needed only when several have a pod of that name.
    #[arg(short, long)]
    pub(crate) namespace: Option<String>,
}

/// What to show.
#[derive(Debug, Subcommand)]
pub enum Get {
    /// Every pod of this node.
    Pods(OutputArg),
    /// One pod: containers, conditions, events.
    Pod {
        #[command(flatten)]
        pod: PodArg,
        #[command(flatten)]
        output: OutputArg,
    },
    /// The crew: state, restarts, mailbox, last cause.
    Actors(OutputArg),
    /// Recent events.
    Events(OutputArg),
    /// The files of the manifest folder, accepted and refused.
    Manifests(OutputArg),
    /// Plugins that register themselves: CSI drivers, and what stands in a plugin's way.
    Plugins(OutputArg),
    /// Volumes of pods and of CSI drivers: how far each is, and what holds it up.
    Volumes(OutputArg),
    /// What may run short on the node: thresholds, since when they are crossed, what follows, what was tidied up and who was evicted last.
    Pressure(OutputArg),
    /// The node: runtime, API server, lease, conditions, capacity, certificates.
    Node(OutputArg),
}

/// Form of an answer.
#[derive(Debug, Args)]
pub struct OutputArg {
    /// Form of the answer; a table unless given.
    #[arg(short, long)]
    pub(crate) output: Option<Output>,
}
