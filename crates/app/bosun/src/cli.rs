//! The command line.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Parser, Subcommand};
use node_config::flags::{self, Asked};

use crate::node::Builder;

mod check;
mod client;
mod columns;
mod get;
mod show;

use show::Output;

/// Where the daemon answers the CLI.
pub(crate) const SOCKET: &str = "/run/bosun/bosun.sock";

#[derive(Debug, Parser)]
#[command(
    name = "bosun",
    version,
    about = "A Kubernetes node daemon: keeps the pods of this node running on a CRI runtime",
    after_help = "Called as `kubelet` (ln -s bosun /usr/bin/kubelet) it takes a kubelet's command line and files.\n\n\
        Examples:\n  \
        bosun check-config /etc/bosun/bosun.yaml      say everything that is wrong with a configuration\n  \
        bosun run --config /etc/bosun/bosun.yaml      run the node in the foreground\n  \
        bosun get pods -o wide                        what runs here\n  \
        bosun get pod web                             one pod with containers, conditions, events\n  \
        bosun get manifests                           which files were refused, and why\n  \
        bosun logs web -c app --tail 20               a container's log\n\n\
        All but `run` and `check-config` talk to the running daemon over a socket that only root may open."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the node in the foreground until SIGTERM; pods go on running afterwards. Takes the flags of a kubelet: `bosun run
    /// --help` lists them.
    #[command(disable_help_flag = true)]
    Run {
        /// Flags.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "FLAGS")]
        words: Vec<String>,
    },
    /// Say everything that is wrong with a configuration: file, drop-ins, flags and the files that they name. Starts nothing,
    /// writes nothing. Exit code 1 when it would be refused.
    #[command(disable_help_flag = true)]
    CheckConfig {
        /// A file, and flags as for `bosun run`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "FILE | FLAGS")]
        words: Vec<String>,
    },
    /// Show pods, actors and more of the running daemon.
    Get {
        #[command(flatten)]
        socket: SocketArg,
        #[command(subcommand)]
        what: Get,
    },
    /// Print the log of a container.
    Logs {
        #[command(flatten)]
        socket: SocketArg,
        /// Pod: its name (a static pod also without the node's name), `namespace/name`, or UID.
        pod: String,
        /// Container; the first one of the pod unless given.
        #[arg(short, long)]
        container: Option<String>,
        /// The instance before the latest restart.
        #[arg(short, long)]
        previous: bool,
        /// Only the last lines.
        #[arg(long, value_name = "LINES")]
        tail: Option<usize>,
    },
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

#[derive(Debug, Args)]
struct SocketArg {
    /// The daemon's socket.
    #[arg(long, default_value = SOCKET, global = true)]
    socket: PathBuf,
}

#[derive(Debug, Subcommand)]
enum Get {
    /// Every pod of this node.
    Pods(OutputArg),
    /// One pod: containers, conditions, events.
    Pod {
        /// Its name (a static pod also without the node's name), `namespace/name`, or UID.
        name: String,
        #[command(flatten)]
        output: OutputArg,
    },
    /// The crew: state, restarts, mailbox, last cause.
    Actors(OutputArg),
    /// Recent events.
    Events(OutputArg),
    /// The files of the manifest folder, accepted and refused.
    Manifests(OutputArg),
    /// The node and its runtime.
    Node(OutputArg),
}

#[derive(Debug, Args)]
struct OutputArg {
    /// Form of the answer; a table unless given.
    #[arg(short, long)]
    output: Option<Output>,
}

/// Runs the program with the managers of this repository.
#[must_use]
pub fn main() -> ExitCode {
    main_with(|builder| builder)
}

/// Runs the program with the crew that `customise` makes of the usual one. An operator's own `main` is this one call.
/// Called by the name `kubelet` it is one, with a kubelet's command line.
#[must_use]
pub fn main_with(customise: impl FnOnce(Builder) -> Builder) -> ExitCode {
    let mut words = std::env::args_os();
    let program = words.next().unwrap_or_default();
    if Path::new(&program).file_name().is_some_and(|name| name == "kubelet") {
        let words: Vec<String> = words.map(|w| w.to_string_lossy().into_owned()).collect();
        return run(&words, "kubelet", customise);
    }
    match dispatch(Cli::parse().command, customise) {
        Ok(code) => code,
        Err(e) => {
            eprintln!("bosun: {e:#}");
            ExitCode::FAILURE
        }
    }
}

/// The daemon; errors are told as a kubelet tells them, with exit code 1.
fn run(words: &[String], program: &str, customise: impl FnOnce(Builder) -> Builder) -> ExitCode {
    let flags = match flags::parse(words) {
        Ok(Asked::Run(flags)) => flags,
        Ok(Asked::Help) => {
            show::print(&flags::help::text(program));
            return ExitCode::SUCCESS;
        }
        Ok(Asked::Version(line)) => {
            show::print(&line);
            return ExitCode::SUCCESS;
        }
        Err(e) => {
            eprintln!("Error: {e}");
            let hint = e.hint.as_deref().map(|h| format!("{h}\n")).unwrap_or_default();
            eprintln!("{hint}`{program} --help` lists all flags");
            return ExitCode::FAILURE;
        }
    };
    match crate::run::run(*flags, customise) {
        Ok(code) => code,
        Err(e) => {
            eprintln!("Error: {e:#}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(command: Command, customise: impl FnOnce(Builder) -> Builder) -> Result<ExitCode> {
    match command {
        Command::Run { words } => Ok(run(&words, "bosun run", customise)),
        Command::CheckConfig { words } => Ok(check::check(&words)),
        Command::Get { socket, what } => ask(async move {
            let s = &socket.socket;
            match what {
                Get::Pods(o) => get::pods(s, o.output).await,
                Get::Pod { name, output } => get::pod(s, &name, output.output).await,
                Get::Actors(o) => get::actors(s, o.output).await,
                Get::Events(o) => get::events(s, o.output).await,
                Get::Manifests(o) => get::manifests(s, o.output).await,
                Get::Node(o) => get::node(s, o.output).await,
            }
        }),
        Command::Logs { socket, pod, container, previous, tail } => {
            ask(async move { get::logs(&socket.socket, &pod, container.as_deref(), previous, tail).await })
        }
        Command::Fault { socket, rules, clear, output } => {
            ask(async move { get::fault(&socket.socket, &rules, clear, output).await })
        }
    }
}

fn ask(work: impl Future<Output = Result<()>>) -> Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(work).map(|()| ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
