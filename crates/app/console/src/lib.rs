//! Console: the operator's side of the daemon's local socket.
//!
//! **Owns** the commands that ask a running daemon (`bosun get`, `why`, `timeline`, `logs`, `exec`, `attach`, `port-forward`, `top`, `manager`,
//! `fault`):
//! their arguments, their requests, what they print, their exit codes.
//! **Never** asks an API server or a runtime, never decides anything about a pod.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::Subcommand;

use args::{Get, SocketArg};
use exec::{AttachArgs, ExecArgs};
use logs::LogArgs;
use manager::ManagerArgs;
use port_forward::PortForwardArgs;
use show::Output;
use timeline::TimelineArgs;
use top::TopArgs;
use why::WhyArgs;

mod args;
mod client;
mod columns;
mod exec;
mod get;
mod logs;
mod manager;
mod port_forward;
pub mod show;
mod target;
mod timeline;
mod top;
mod why;

pub use args::SOCKET;
pub use columns::age;

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
    /// Where does a pod stand: what it waits for, who owns that, since when, and what was decided.
    Why(WhyArgs),
    /// The life of a pod as bars: scheduled, admitted, volumes, sandbox, pull, create, start, ready, restarts.
    Timeline(TimelineArgs),
    /// Print the log of a container, or follow it.
    Logs(LogArgs),
    /// Run a command in a container.
    Exec(ExecArgs),
    /// Connect to the streams of a container's own process.
    Attach(AttachArgs),
    /// Forward local ports to a pod.
    PortForward(PortForwardArgs),
    /// Pods and actors again and again; one table when the output is no terminal.
    Top(TopArgs),
    /// Who serves a manager's role: show it, give it to another process while pods run, or give it back.
    Manager(ManagerArgs),
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

/// Runs a command; mistakes are told on stderr.
#[must_use]
pub fn run(command: Command) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(e) => {
            eprintln!("bosun: {e}");
            return ExitCode::FAILURE;
        }
    };
    match runtime.block_on(dispatch(command)) {
        Ok(code) => code,
        Err(e) => {
            eprintln!("bosun: {e:#}");
            ExitCode::FAILURE
        }
    }
}

async fn dispatch(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Get { socket, what } => get::run(&socket.socket, what).await?,
        Command::Why(args) => why::run(&args).await?,
        Command::Timeline(args) => timeline::run(&args).await?,
        Command::Logs(args) => return logs::run(&args).await,
        Command::Exec(args) => return exec::exec(&args).await,
        Command::Attach(args) => return exec::attach(&args).await,
        Command::PortForward(args) => return port_forward::run(&args).await,
        Command::Top(args) => top::run(&args).await?,
        Command::Manager(args) => manager::run(&args).await?,
        Command::Fault { socket, rules, clear, output } => get::fault(&socket.socket, &rules, clear, output).await?,
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests;
