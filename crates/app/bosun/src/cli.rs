//! The command line.

use std::path::Path;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use console::show;
use node_config::flags::{self, Asked};

use crate::node::Builder;

mod check;

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
        bosun logs web -c app -f --tail 20            a container's log, and what comes\n  \
        bosun exec -it web -- sh                      a shell in a container\n  \
        bosun port-forward web 8080:80                a pod's port, here\n  \
        bosun top                                     live view of pods and actors\n\n\
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
    #[command(flatten)]
    Ask(console::Command),
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
    dispatch(Cli::parse().command, customise)
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

fn dispatch(command: Command, customise: impl FnOnce(Builder) -> Builder) -> ExitCode {
    match command {
        Command::Run { words } => run(&words, "bosun run", customise),
        Command::CheckConfig { words } => check::check(&words),
        Command::Ask(command) => console::run(command),
    }
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
