//! The words of the commands.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::exec::{AttachArgs, ExecArgs};
use crate::logs::LogArgs;
use crate::port_forward::PortForwardArgs;
use crate::show::Output;
use crate::top::TopArgs;

/// Where the daemon answers the command line.
pub const SOCKET: &str = "/run/bosun/bosun.sock";

/// Commands that ask the running daemon.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show pods, actors and more of the running daemon.
    Get {
        #[command(flatten)]
        socket: SocketArg,
        #[command(subcommand)]
        what: Get,
    },
    /// Print the log of a container, or follow it.
    Logs(LogArgs),
    /// Run a command in a container.
    Exec(ExecArgs),
    /// Connect to the streams of a container's own process.
    Attach(AttachArgs),
    /// Forward local ports to a pod.
    PortForward(PortForwardArgs),
    /// Live view of pods and actors; one table when the output is no terminal.
    Top(TopArgs),
    /// Inject faults into actors of a daemon that was started with --enable-faults; without arguments: list points and log.
    #[command(after_help = "Rules: ACTOR: ACTION@POINT[#WHEN][; ...]\n  \
        ACTION  panic | kill | stall(30s) | delay(200ms) | drop | duplicate\n  \
        POINT   turn:MESSAGE, or a named point of the actor (`bosun fault` lists them)\n  \
        WHEN    #2 the second time, #%3 every third, #p0.1 by chance, none: every time\n\n\
        Example:\n  bosun fault 'status-manager: panic@turn:SetPodStatus#1'")]
    Fault {
        #[command(flatten)]
        socket: SocketArg,
        /// Rules to add.
        rules: Vec<String>,
        /// Forget all rules first.
        #[arg(long)]
        clear: bool,
        /// Form of the list.
        #[arg(short, long)]
        output: Option<Output>,
    },
}

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
