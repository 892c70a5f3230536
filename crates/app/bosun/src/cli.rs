//! The command line.

use std::path::Path;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use console::show;
use model::unix_address::UnixAddress;
use node_config::Flags;
use node_config::flags::{self, Asked};

use crate::node::Builder;
use crate::node::elsewhere::Served;

mod check;
mod image;
mod runtime;

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
        bosun top                                     live view of pods and actors\n  \
        bosun image pull busybox:1.36                 an image for bosun's own runtime\n\n\
        All but `run`, `serve`, `runtime`, `check-config` and `image` talk to the running daemon over a socket that only root may open."
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
    /// Serve one of bosun's own managers to the daemon of this machine, in this process, until SIGTERM. The daemon is told by
    /// `bosun manager swap MANAGER --to ADDRESS`, or by its configuration. Takes the flags of the daemon, which say what the node is like.
    #[command(after_help = "`bosun run --help` lists the flags.")]
    Serve {
        /// Which one.
        manager: Served,
        /// Where it listens. Nobody but root may enter the folder, which is made where it is missing.
        #[arg(long, value_name = "unix:///PATH", value_parser = UnixAddress::parse)]
        at: UnixAddress,
        /// Flags as for `bosun run`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "FLAGS")]
        words: Vec<String>,
    },
    /// Images of bosun's own runtime: pull, list, remove, import. No daemon is needed.
    Image {
        #[command(subcommand)]
        command: image::ImageCommand,
    },
    /// Serve the container runtime interface (CRI) with a runtime of our own, in the foreground until SIGTERM; pods go on running
    /// afterwards. Needs `runc` or `crun` and the program `bosun-pod`, nothing else.
    Runtime(runtime::Args),
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
        return run(&words, "kubelet", |flags| crate::run::run(&flags, customise));
    }
    dispatch(Cli::parse().command, customise)
}

/// What runs with a daemon's flags; errors are told as a kubelet tells them, with exit code 1.
fn run(words: &[String], program: &str, process: impl FnOnce(Flags) -> anyhow::Result<ExitCode>) -> ExitCode {
    let flags = match flags::parse(words) {
        Ok(Asked::Run(flags)) => flags,
        Ok(Asked::Help) => {
            show::print(&help(program));
            return ExitCode::SUCCESS;
        }
        Ok(Asked::Version(line)) => {
            show::print(&line);
            return ExitCode::SUCCESS;
        }
        Err(e) => {
            eprintln!("Error: {e}");
            let hint = e.hint.as_deref().map(|h| format!("{h}\n")).unwrap_or_default();
            eprintln!("{hint}{}", where_listed(program));
            return ExitCode::FAILURE;
        }
    };
    match process(*flags) {
        Ok(code) => code,
        Err(e) => {
            eprintln!("Error: {e:#}");
            ExitCode::FAILURE
        }
    }
}

/// How `bosun serve` is called.
const SERVE: &str = "bosun serve MANAGER --at ADDRESS";
/// Whose its flags are.
const OF_THE_DAEMON: &str = "The flags are those of the daemon, which say what the node is like";

fn help(program: &str) -> String {
    let text = flags::help::text(program);
    if program == SERVE { format!("{OF_THE_DAEMON}.\n\n{text}") } else { text }
}

/// The last line of what is said of a mistake.
fn where_listed(program: &str) -> String {
    match program {
        SERVE => format!("{OF_THE_DAEMON}: `bosun run --help` lists them"),
        _ => format!("`{program} --help` lists all flags"),
    }
}

fn dispatch(command: Command, customise: impl FnOnce(Builder) -> Builder) -> ExitCode {
    match command {
        Command::Run { words } => run(&words, "bosun run", |flags| crate::run::run(&flags, customise)),
        Command::Serve { manager, at, words } => {
            run(&words, SERVE, |flags| crate::run::elsewhere::run(manager, &at, &flags))
        }
        Command::CheckConfig { words } => check::check(&words),
        Command::Image { command } => image::run(&command),
        Command::Runtime(args) => runtime::run(&args),
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

    #[test]
    fn a_manager_is_served_with_the_flags_of_the_daemon() {
        let words = ["bosun", "serve", "images", "--at", "unix:///run/a/b.sock", "--config", "/c", "--at", "x"];
        let Command::Serve { manager, at, words } = Cli::try_parse_from(words).unwrap().command else { panic!() };
        assert_eq!((manager, at.to_string().as_str()), (Served::Images, "unix:///run/a/b.sock"));
        assert_eq!(words, ["--config", "/c", "--at", "x"], "what follows is the daemon's");
        for (wrong, why) in [
            (&["pods", "--at", "unix:///a"][..], "invalid value 'pods'"),
            (&["images", "--at", "/a"], "only unix sockets"),
            (&["images", "--config", "/c"], "--at <unix:///PATH>"),
        ] {
            let error = Cli::try_parse_from([&["bosun", "serve"], wrong].concat()).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn help_for_a_served_manager_says_whose_the_flags_are() {
        let served = help(SERVE);
        assert!(served.starts_with(OF_THE_DAEMON) && served.contains("bosun serve MANAGER --at ADDRESS [flags]"));
        assert!(where_listed(SERVE).ends_with("`bosun run --help` lists them"));
        assert_eq!(where_listed("kubelet"), "`kubelet --help` lists all flags");
        assert!(!help("bosun run").contains(OF_THE_DAEMON));
    }
}
