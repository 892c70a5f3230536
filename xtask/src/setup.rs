//! Can this machine run the test bed, and if not, can we make it so?

use anyhow::bail;
use testbed::{Need, Problem, RuntimeKind};

mod apt;
mod control_plane;
mod newer;

/// Installs what the test bed needs (Debian packages). Says each step, skips what is there.
///
/// Needs root on a Debian-like Linux with apt. Never touches a service: packages are installed without starting
/// the daemons that they bring. The bed's containerd has its own folder, socket and network.
#[derive(clap::Args, Default)]
pub(crate) struct Args {
    /// Only says what is missing; exits with an error if anything is.
    #[arg(long)]
    check: bool,
    /// Also brings a containerd with the CRI event stream (2.x, from Debian's next release) for `xtask e2e --newer`.
    #[arg(long)]
    newer: bool,
    /// Also brings a control plane (etcd, kube-apiserver, kube-controller-manager, kubectl) for `xtask e2e cluster`:
    /// builds it from Debian's source package, which takes some minutes once.
    #[arg(long)]
    cluster: bool,
    /// Only what pods on bosun's own runtime need: no containerd, no registries.
    #[arg(long, conflicts_with_all = ["newer", "cluster"])]
    bed: bool,
}

/// What beds and tests with containerd need.
const ALL: &[Need] = &[Need::Bed, Need::Containerd, Need::Tests];

impl Args {
    fn needs(&self) -> &'static [Need] {
        if self.bed { &[Need::Bed] } else { ALL }
    }

    /// What a bed with bosun's own runtime needs, and nothing else.
    pub(crate) fn bed() -> Self {
        Args { bed: true, ..Args::default() }
    }

    /// With the control plane.
    pub(crate) fn cluster() -> Self {
        Args { cluster: true, ..Args::default() }
    }
}

pub(crate) use apt::{archive, codename, install};
pub(crate) use control_plane::check as check_cluster;
pub(crate) use newer::containerd as newer_containerd;

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let needs = args.needs();
    let problems = testbed::missing(needs);
    let unfit: Vec<String> = problems.iter().filter_map(unfit).collect();
    if !unfit.is_empty() {
        bail!("this machine cannot run the test bed:\n  - {}", unfit.join("\n  - "));
    }
    for there in testbed::REQUIRED.iter().filter(|r| needs.contains(&r.need) && !is_missing(&problems, r.package)) {
        println!("  have     {:<28} {}", there.package, there.why);
    }
    let wanted: Vec<&'static str> = problems.iter().filter_map(package).collect();
    for problem in &problems {
        println!("  missing  {problem}");
    }
    if args.check && !wanted.is_empty() {
        bail!("{} packages are missing; `cargo xtask setup` installs them", wanted.len());
    }
    if !wanted.is_empty() {
        install(&wanted)?;
    }
    if let Some(problem) = testbed::missing(needs).first() {
        bail!("still missing after the installation: {problem}");
    }
    println!("the test bed can run here");
    if args.newer && !args.check {
        newer::bring()?;
    }
    match (args.cluster, args.check) {
        (true, true) => control_plane::check()?,
        (true, false) => control_plane::bring()?,
        (false, _) => {}
    }
    Ok(())
}

/// Whether a bed can start here, and tests in it; says what to do if not. With bosun's own runtime that takes no containerd.
pub(crate) fn check() -> anyhow::Result<()> {
    check_for_tests(RuntimeKind::of_environment() != RuntimeKind::Containerd)
}

/// As [`check`], with the runtime that tests are to have.
pub(crate) fn check_for_tests(on_own_runtime: bool) -> anyhow::Result<()> {
    let needs = if on_own_runtime { &[Need::Bed, Need::Tests] } else { ALL };
    let problems: Vec<String> = testbed::missing(needs).iter().map(ToString::to_string).collect();
    if !problems.is_empty() {
        bail!("no test bed can start here (`cargo xtask setup` helps):\n  - {}", problems.join("\n  - "));
    }
    Ok(())
}

fn unfit(problem: &Problem) -> Option<String> {
    matches!(problem, Problem::Unfit(_)).then(|| problem.to_string())
}

fn package(problem: &Problem) -> Option<&'static str> {
    match problem {
        Problem::Package(requirement) => Some(requirement.package),
        Problem::Unfit(_) => None,
    }
}

fn is_missing(problems: &[Problem], name: &str) -> bool {
    problems.iter().filter_map(package).any(|p| p == name)
}
