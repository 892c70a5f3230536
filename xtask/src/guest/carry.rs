//! One test of this workspace in a guest of its own, in place of here: what cargo calls a runner.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::Context;
use testbed::{Guest, GuestOptions, RUNTIME_VARIABLE};

use super::script::{quoted, shown};
use crate::workspace;

/// Memory of the guest in MiB.
const MEMORY: u32 = 2048;
/// Variables that reach the test.
const PASSED: [&str; 4] = ["BOSUN_BIN", "RUST_BACKTRACE", RUNTIME_VARIABLE, PATIENCE];
/// How much slower everything may be there.
pub(crate) const PATIENCE: &str = "TESTBED_PATIENCE";

/// A program and its arguments.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<String>,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    if args.command.iter().any(|word| word == "--list") {
        let error = Command::new(&args.command[0]).args(&args.command[1..]).exec();
        return Err(error).with_context(|| format!("cannot start {}", args.command[0]));
    }
    let guest = Guest::boot(GuestOptions { memory_mib: MEMORY, ..GuestOptions::default() })?;
    let mut script = String::from("set -e\n");
    // Everything of this workspace is where it is here, so no path has to be another one.
    for folder in [workspace::root(), workspace::target_dir()?] {
        script.push_str(&mounted(&folder));
    }
    for name in PASSED {
        if let Ok(value) = std::env::var(name) {
            script.push_str(&format!("export {name}={}\n", quoted(&value)));
        }
    }
    let words: Vec<String> = args.command.iter().map(|word| quoted(word)).collect();
    let here = std::env::current_dir().context("the current folder")?;
    script.push_str(&format!("cd {}\nexec {}\n", quoted(&here.to_string_lossy()), words.join(" ")));
    shown(&guest, &script)
}

/// Lines that show a folder of this machine at the same place, to be read only; nothing where it is shown already.
fn mounted(folder: &Path) -> String {
    let at = quoted(&folder.to_string_lossy());
    format!("[ -d {at} ] || {{ mkdir -p {at}; mount -r -t hostfs -o {at} none {at}; }}\n")
}
