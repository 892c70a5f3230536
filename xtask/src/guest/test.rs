//! The tests in guests.

use anyhow::{Context, bail};

use crate::built;
use crate::workspace::{self, has};

/// What `cargo xtask test` runs of them: parts of names. All together must take at most 8 minutes, image left out.
const SELECTION: [&str; 5] = ["cgroups::", "pods::", "power::", "resize::", "systemd::"];

/// Runs only tests whose name holds a word, or all.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Runs only tests whose name holds this.
    filter: Option<String>,
    /// Runs what `cargo xtask test` runs: those that prove most in some minutes.
    #[arg(long, conflicts_with = "filter")]
    selection: bool,
    /// Tests the release build.
    #[arg(long)]
    release: bool,
    /// Runs what `cargo xtask test` has built.
    #[arg(long, conflicts_with = "release")]
    built: bool,
    /// Pods run on bosun's own runtime within the daemon; no containerd is started.
    #[arg(long)]
    embedded: bool,
    /// How many guests run at a time; each keeps one processor busy.
    #[arg(long, default_value_t = 2)]
    jobs: usize,
    /// Cuts the power so often, at moments of chance (`GUEST_CUTS_SEED` says which).
    #[arg(long, default_value_t = 2)]
    cuts: u32,
}

pub(super) fn run(args: &Args) -> anyhow::Result<()> {
    if !has("cargo-nextest") {
        bail!("the tests need a process each: `cargo install --locked cargo-nextest`");
    }
    super::bring(false)?;
    let program = built::daemon(args.built, args.release)?;
    let (program, cuts, jobs) = (program.to_string_lossy(), args.cuts.to_string(), args.jobs.max(1).to_string());
    let tests = built::tests(args.built, &["guest"]);
    let of: Vec<&str> = tests.iter().map(String::as_str).chain(["--filterset", "package(guest)"]).collect();
    let mut command = vec!["nextest", "run", "--ignore-default-filter", "--no-fail-fast", "--test-threads", &jobs];
    command.extend(&of);
    command.extend(args.filter.as_deref());
    if args.selection {
        tell_left_out(&of)?;
        command.extend(SELECTION);
    }
    let mut env = vec![("BOSUN_BIN", program.as_ref()), ("GUEST_CUTS", &cuts)];
    env.extend(args.embedded.then_some(workspace::ON_OWN_RUNTIME));
    workspace::run_with("cargo", &command, &env)
}

/// Who reads that all passed must know of what was not run.
fn tell_left_out(of: &[&str]) -> anyhow::Result<()> {
    let mut list = workspace::command("cargo");
    list.args(["nextest", "list", "--ignore-default-filter", "--message-format", "oneline"]).args(of);
    let output = list.output().context("cannot start cargo nextest")?;
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        bail!("the tests cannot be listed: {}", String::from_utf8_lossy(&output.stderr));
    }
    println!("left out; `cargo xtask guest test NAME` runs them:");
    left_out(&text).iter().for_each(|name| println!("  {name}"));
    Ok(())
}

/// Of lines with a program and a name: names of what is not selected.
fn left_out(list: &str) -> Vec<&str> {
    let names = list.lines().filter_map(|line| line.split_whitespace().nth(1));
    names.filter(|name| !SELECTION.iter().any(|part| name.contains(part))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_selected_is_told() {
        let list = "guest::guest cgroups::a\nguest::guest disk::b\nguest::guest resize::c\n";
        assert_eq!(left_out(list), ["disk::b"]);
    }

    #[test]
    fn each_part_of_the_selection_is_a_file_of_tests() {
        for part in SELECTION {
            let file = workspace::root().join("tests/guest").join(part.replace("::", ".rs"));
            assert!(file.is_file(), "{}", file.display());
        }
    }
}
