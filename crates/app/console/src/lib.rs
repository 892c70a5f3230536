//! Console: the operator's side of the daemon's local socket.
//!
//! **Owns** the commands that ask a running daemon (`bosun get`, `logs`, `exec`, `attach`, `port-forward`, `top`, `fault`):
//! their arguments, their requests, what they print, their exit codes.
//! **Never** asks an API server or a runtime, never decides anything about a pod.

#![forbid(unsafe_code)]

use std::process::ExitCode;

mod args;
mod client;
mod columns;
mod exec;
mod get;
mod logs;
mod port_forward;
pub mod show;
mod target;
mod top;

pub use args::{Command, SOCKET};

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
        Command::Logs(args) => return logs::run(&args).await,
        Command::Exec(args) => return exec::exec(&args).await,
        Command::Attach(args) => return exec::attach(&args).await,
        Command::PortForward(args) => return port_forward::run(&args).await,
        Command::Top(args) => return top::run(&args).await,
        Command::Fault { socket, rules, clear, output } => get::fault(&socket.socket, &rules, clear, output).await?,
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests;
