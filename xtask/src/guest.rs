//! Does it hold on a machine with cgroup v2, on its disks and after its power was cut? Runs a Linux of its own.

use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, bail};
use testbed::{Guest, GuestOptions};

use crate::workspace;

mod carry;
mod image;
mod script;
mod test;

pub(crate) use carry::PATIENCE;
pub(crate) use image::bring;
use script::{quoted, shown};

/// Starts a machine of its own inside of this one (user-mode-linux) and a shell in it; it ends with the shell.
///
/// The guest is a Linux 6.1 with cgroup v2, its own memory, mounts and disk, containerd, nfsd, xfs, dm-flakey and more, for what this
/// machine cannot show or must not suffer. The first call builds its disk image into /var/cache/bosun-testbed/guest (2 to 4 minutes,
/// 1 GB, Debian packages by this machine's own apt configuration); later starts take some seconds. Whatever is written goes to a
/// layer that is gone with the guest. Needs root.
///
/// In the guest: `svc containerd` and `svc bosun` start the services (`--node` does), `svc kill NAME` kills one; manifests go
/// to /etc/kubernetes/manifests, the configuration is /etc/kubernetes/kubelet.json, logs are in /var/log; /programs is this
/// machine's target/debug. It has one processor and is slow: starting a process takes 70 ms, a pod 5 to 16 s.
///
/// With `--systemd` the first process is Debian's systemd, and bosun its service: `systemctl start bosun`, `journalctl -u bosun`.
///
/// Examples: `cargo xtask guest --node`; `cargo xtask guest run -- cat /sys/fs/cgroup/cgroup.controllers`;
/// `cargo xtask guest test power`.
#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: Option<What>,
    #[command(flatten)]
    machine: Machine,
}

#[derive(clap::Subcommand)]
enum What {
    /// Runs a command in a fresh guest: prints what it prints, and ends with its exit code.
    ///
    /// Several words are a program and its arguments; a single one is a script for bash.
    Run {
        #[command(flatten)]
        machine: Machine,
        /// The command.
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        command: Vec<String>,
    },
    /// Runs `tests/guest`: each test in a guest of its own.
    Test(test::Args),
    /// Runs a test program of this workspace in a fresh guest; a list of its tests is made here.
    #[command(hide = true)]
    Carry(carry::Args),
    /// Only builds the image, if it is not there.
    Image {
        /// Builds it anew.
        #[arg(long)]
        again: bool,
    },
}

#[derive(clap::Args)]
struct Machine {
    /// Memory of the guest in MiB.
    #[arg(long, default_value_t = 1024)]
    memory: u32,
    /// Builds the daemon; starts containerd and it before anything else.
    #[arg(long)]
    node: bool,
    /// Its first process is Debian's systemd: `systemctl start bosun` runs config/bosun.service.
    #[arg(long, conflicts_with = "node")]
    systemd: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    match &args.what {
        None => shell(&args.machine).map(|()| ExitCode::SUCCESS),
        Some(What::Run { machine, command }) => command_in_guest(machine, command),
        Some(What::Carry(args)) => carry::run(args),
        Some(What::Test(args)) => test::run(args).map(|()| ExitCode::SUCCESS),
        Some(What::Image { again }) => bring(*again).map(|()| ExitCode::SUCCESS),
    }
}

/// Steps go to the other stream than what the command prints.
fn say(step: &str) {
    eprintln!("  {step}");
}

fn boot(machine: &Machine, shell: bool) -> anyhow::Result<Guest> {
    bring(false)?;
    let built = machine.node.then(|| workspace::build_bosun(false)).transpose()?;
    let folder = built.as_deref().and_then(std::path::Path::parent).map(std::path::Path::to_owned);
    let programs = folder.map_or_else(|| workspace::target_dir().map(|t| t.join("debug")), Ok)?;
    let options = GuestOptions { memory_mib: machine.memory, systemd: machine.systemd, ..GuestOptions::default() };
    let guest = Guest::boot(GuestOptions { programs, shell, say, ..options })?;
    if machine.node {
        say("containerd and bosun");
        guest.sh("svc containerd; svc bosun")?;
    }
    Ok(guest)
}

fn shell(machine: &Machine) -> anyhow::Result<()> {
    // The guest turns the terminal to raw, and is gone before it could turn it back.
    let before = stty(&["-g"])?;
    let ended = boot(machine, true).and_then(|guest| Ok(guest.wait_shell()?));
    stty(&[before.trim()])?;
    ended
}

/// Reads or sets the modes of this process's terminal.
fn stty(args: &[&str]) -> anyhow::Result<String> {
    let output = Command::new("stty").args(args).stdin(Stdio::inherit()).output().context("cannot start stty")?;
    if !output.status.success() {
        bail!(
            "a shell needs a terminal (`guest run -- COMMAND` does not): {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn command_in_guest(machine: &Machine, command: &[String]) -> anyhow::Result<ExitCode> {
    let guest = boot(machine, false)?;
    let script = match command {
        [script] => script.clone(),
        words => words.iter().map(|w| quoted(w)).collect::<Vec<_>>().join(" "),
    };
    shown(&guest, &script)
}
