//! Does bosun run pods on a real containerd, with real images, registries, kills and restarts?

use crate::{built, conform, outside, setup, workspace};

mod in_guest;
mod runtime;

use runtime::{PYTHON_TEST, REMOTE_TEST, Runtime, check_nextest};

/// Builds the daemon and runs `tests/e2e` against it. Needs root and what `cargo xtask setup` installs.
///
/// With `--guest`, each test runs in a machine of its own with cgroup v2 (see `cargo xtask guest`), but for those that cannot.
///
/// With `--embedded`, the daemon runs pods by itself (`containerRuntimeEndpoint: embedded://`), and no containerd is needed; with
/// `--guest`, too, and as `e2e cluster --embedded`.
///
/// `e2e cluster` runs `tests/cluster` instead: bosun as the node of a real control plane, which it brings first.
///
/// `BOSUN_BIN=PATH` tests a program that is already built; `TESTBED_CONTAINERD=PATH` another containerd;
/// `KUBE_APISERVER=PATH`, `KUBE_CONTROLLER_MANAGER=PATH` and `KUBECTL=PATH` another control plane.
#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    suite: Option<Suite>,
    #[command(flatten)]
    runtime: Runtime,
    /// Runs each test in a guest of its own, on cgroup v2.
    #[arg(long, conflicts_with = "newer")]
    guest: bool,
}

#[derive(clap::Subcommand)]
enum Suite {
    /// Runs `tests/cluster`: bosun as the node of a real control plane.
    Cluster(Runtime),
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    match &args.suite {
        None if args.guest => in_guest::run(&args.runtime),
        None => tests("e2e", &args.runtime),
        Some(Suite::Cluster(runtime)) => cluster(runtime),
    }
}

/// Runs the cluster suite, after bringing the control plane.
fn cluster(runtime: &Runtime) -> anyhow::Result<()> {
    if setup::check_cluster().is_err() {
        setup::run(&setup::Args::cluster())?;
    }
    tests("cluster", runtime)
}

/// Tests of the runtime of our own, which run containers: left out of the default filter (`.config/nextest.toml`), part of `e2e`.
const ON_RUNC: &str = "(package(pod-supervisor) & test(on_runc::)) | (package(runtime-server) & binary(it)) | (package(cni) & test(bridge::))";

fn tests(package: &str, args: &Runtime) -> anyhow::Result<()> {
    check_nextest()?;
    setup::check_for_tests(args.embedded)?;
    let program = built::daemon(args.built, args.release)?;
    let jobs = args.jobs.max(1).to_string();
    let mut command = vec!["nextest", "run", "--ignore-default-filter", "--no-fail-fast", "--test-threads", &jobs];
    let (packages, only) = match package {
        "e2e" if args.embedded => (&["e2e"][..], "package(e2e)".to_owned()),
        "e2e" => (&["e2e", "pod-supervisor", "runtime-server", "cni"][..], format!("package(e2e) | {ON_RUNC}")),
        other => (&[package][..], format!("package({other})")),
    };
    command.extend(["--filterset", &only]);
    let tests = built::tests(args.built, packages);
    command.extend(tests.iter().map(String::as_str));
    command.extend(args.filter.as_deref());
    let newer = args.newer.then(setup::newer_containerd).transpose()?;
    let (program, newer) = (program.to_string_lossy(), newer.map(|p| p.to_string_lossy().into_owned()));
    let mut env = vec![("BOSUN_BIN", program.as_ref())];
    env.extend(args.embedded.then_some(workspace::ON_OWN_RUNTIME));
    env.extend(newer.as_deref().map(|path| ("TESTBED_CONTAINERD", path)));
    let runs_outside = package == "e2e" && args.filter.as_deref().is_none_or(|f| outside::TEST.contains(f));
    let build_outside = || match args.built {
        true => built::program(outside::NAME),
        false => outside::build(&|args| workspace::run("cargo", args)),
    };
    let outside = runs_outside.then(build_outside).transpose()?;
    let outside = outside.map(|p| p.to_string_lossy().into_owned());
    env.extend(outside.as_deref().map(|path| (outside::VARIABLE, path)));
    let runs_remote = package == "e2e" && args.filter.as_deref().is_none_or(|f| REMOTE_TEST.contains(f));
    let remote_probes = || {
        let name = "remote-probes";
        if args.built { built::program(name) } else { workspace::build(name, args.release) }
    };
    let remote = runs_remote.then(remote_probes).transpose()?;
    let remote = remote.map(|p| p.to_string_lossy().into_owned());
    env.extend(remote.as_deref().map(|path| ("REMOTE_PROBES_BIN", path)));
    let runs_python = package == "e2e" && args.filter.as_deref().is_none_or(|f| PYTHON_TEST.contains(f));
    let python = runs_python.then(conform::python).transpose()?;
    env.extend(python.as_deref().map(|path| ("PYTHON_WITH_GRPC", path)));
    workspace::run_with("cargo", &command, &env)
}

#[cfg(test)]
mod tests {
    use super::ON_RUNC;
    use crate::workspace;

    #[test]
    fn what_needs_runc_is_left_out_of_plain_runs() {
        let profile =
            std::fs::read_to_string(workspace::root().join(".config/nextest.toml")).expect("nextest's profile");
        let filter = profile.lines().find_map(|line| line.strip_prefix("default-filter = ")).expect("a default filter");
        assert!(filter.starts_with("\"not (") && filter.contains(ON_RUNC), "{filter}");
    }
}
