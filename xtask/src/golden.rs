//! Does bosun do what a kubelet 1.36.2 did with the same pods, seen from the runtime and from the API server?

use crate::{setup, workspace};

/// Builds the daemon and runs every recorded pod (`tests/golden`) on a real API server and a real containerd.
///
/// Compared are the calls to the runtime, each version of the pod that a watch sees, events, mirror pods and the Node object. A
/// difference that has no row in docs/compat.md fails, and so does a row that nothing shows. Needs root and what
/// `cargo xtask setup --cluster` installs. `BOSUN_BIN=PATH` runs a program that is already built, `KUBE_APISERVER=PATH`
/// another API server.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Runs only this case; may be repeated. `_node`: the Node object.
    #[arg(long = "case", value_name = "NAME")]
    cases: Vec<String>,
    /// `table` or `json`.
    #[arg(short, long, default_value = "table", value_parser = ["table", "json"])]
    output: String,
    /// How many cases run at a time.
    #[arg(long, default_value_t = 4)]
    jobs: usize,
    /// Runs the release build.
    #[arg(long)]
    release: bool,
    /// Pods run on bosun's own runtime, which serves beside the daemon, and no containerd is needed. What differs there alone has
    /// a row in docs/runtime.md.
    #[arg(long)]
    embedded: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    setup::check_for_tests(args.embedded)?;
    let program = workspace::build_bosun_and_runtime(args.release)?;
    let jobs = args.jobs.to_string();
    let mut command = vec![
        "run",
        "--quiet",
        "--package",
        "golden-compare",
        "--bin",
        "golden",
        "--",
        "--output",
        &args.output,
        "--jobs",
        &jobs,
    ];
    for case in &args.cases {
        command.extend(["--case", case]);
    }
    let program = program.to_string_lossy();
    let mut env = vec![("BOSUN_BIN", program.as_ref())];
    env.extend(args.embedded.then_some(workspace::ON_OWN_RUNTIME));
    workspace::run_with("cargo", &command, &env)
}
