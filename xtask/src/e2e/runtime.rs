//! How end-to-end tests are run.

use anyhow::bail;

use crate::workspace::has;

/// The test of `docs/examples/remote-probes`, which is told where that is by `REMOTE_PROBES_BIN`.
pub(super) const REMOTE_TEST: &str =
    "remote::probes_in_a_process_of_their_own_are_those_of_the_node_whatever_becomes_of_it";

/// The test of `docs/examples/python-probes`, which is told by `PYTHON_WITH_GRPC` who runs that.
pub(super) const PYTHON_TEST: &str = "python::a_probe_manager_in_python_keeps_what_every_one_must_keep";

#[derive(clap::Args)]
pub(super) struct Runtime {
    /// Runs only tests whose name holds this.
    pub(super) filter: Option<String>,
    /// Tests the release build.
    #[arg(long)]
    pub(super) release: bool,
    /// Runs what `cargo xtask test` has built, without building the daemon and its tests once more by themselves.
    #[arg(long, conflicts_with = "release")]
    pub(super) built: bool,
    /// Runs on the containerd that `cargo xtask setup --newer` brought: the tier with a CRI event stream.
    #[arg(long)]
    pub(super) newer: bool,
    /// Has the daemon run pods by itself, on bosun's own runtime.
    #[arg(long, conflicts_with = "newer")]
    pub(super) embedded: bool,
    /// How many tests run at a time; each has a containerd of its own.
    #[arg(long, default_value_t = 3)]
    pub(super) jobs: usize,
}

/// Each test needs a process of its own.
///
/// # Errors
/// There is no nextest.
pub(super) fn check_nextest() -> anyhow::Result<()> {
    if !has("cargo-nextest") {
        bail!("the end-to-end tests need a process each: `cargo install --locked cargo-nextest`");
    }
    Ok(())
}
