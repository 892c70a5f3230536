//! The tests in guests.

use anyhow::bail;

use crate::workspace::{self, has};

/// Runs only tests whose name holds a word, or all.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Runs only tests whose name holds this.
    filter: Option<String>,
    /// Tests the release build.
    #[arg(long)]
    release: bool,
    /// Runs what `cargo xtask test` has built.
    #[arg(long, conflicts_with = "release")]
    built: bool,
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
    let program = if args.built { workspace::built_bosun()? } else { workspace::build_bosun(args.release)? };
    let (program, cuts, jobs) = (program.to_string_lossy(), args.cuts.to_string(), args.jobs.max(1).to_string());
    let mut command = vec!["nextest", "run", "--ignore-default-filter", "--no-fail-fast", "--test-threads", &jobs];
    command.extend(if args.built {
        ["--workspace", "--filterset", "package(guest)"]
    } else {
        ["--package", "guest", "--tests"]
    });
    command.extend(args.filter.as_deref());
    workspace::run_with("cargo", &command, &[("BOSUN_BIN", program.as_ref()), ("GUEST_CUTS", &cuts)])
}
