//! Does bosun run pods on a real containerd, with real images, registries, kills and restarts?

use anyhow::bail;

use crate::test::has;
use crate::{setup, workspace};

/// Builds the daemon and runs `tests/e2e` against it. Needs root and what `cargo xtask setup` installs.
///
/// `BOSUN_BIN=PATH` tests a program that is already built; `TESTBED_CONTAINERD=PATH` another containerd.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Runs only tests whose name holds this.
    filter: Option<String>,
    /// Tests the release build.
    #[arg(long)]
    release: bool,
    /// Runs on the containerd that `cargo xtask setup --newer` brought: the tier with a CRI event stream.
    #[arg(long)]
    newer: bool,
    /// How many tests run at a time; each has a containerd of its own.
    #[arg(long, default_value_t = 3)]
    jobs: usize,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    if !has("cargo-nextest") {
        bail!("the end-to-end tests need a process each: `cargo install --locked cargo-nextest`");
    }
    setup::check()?;
    let program = workspace::build_bosun(args.release)?;
    let jobs = args.jobs.max(1).to_string();
    let mut command = vec![
        "nextest",
        "run",
        "--ignore-default-filter",
        "--package",
        "e2e",
        "--no-fail-fast",
        "--test-threads",
        &jobs,
    ];
    command.extend(args.filter.as_deref());
    let newer = args.newer.then(setup::newer_containerd).transpose()?;
    let (program, newer) = (program.to_string_lossy(), newer.map(|p| p.to_string_lossy().into_owned()));
    let mut env = vec![("BOSUN_BIN", program.as_ref())];
    env.extend(newer.as_deref().map(|path| ("TESTBED_CONTAINERD", path)));
    workspace::run_with("cargo", &command, &env)
}

impl Default for Args {
    fn default() -> Self {
        Args { filter: None, release: false, newer: false, jobs: 3 }
    }
}
