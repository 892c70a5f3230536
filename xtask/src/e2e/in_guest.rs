//! The same tests in guests: real cgroup v2 under every pod.

use anyhow::Context;

use super::runtime::{PYTHON_TEST, REMOTE_TEST, Runtime, check_nextest};
use crate::{built, guest, outside, workspace};

/// Everything takes so many times as long there, on a machine that does something else as well.
const PATIENCE: &str = "8";

/// Tests that cannot run in a guest, by the beginning of their names, and why.
const NOT_THERE: &[(&str, &str)] = &[
    (outside::TEST, "runs another program than the daemon, which is built for it alone"),
    (REMOTE_TEST, "runs a program that is built for it alone"),
    (PYTHON_TEST, "runs a Python that the guest has not"),
    (
        "huge::a_pod_has_the_machines_huge_pages_as_far_as_the_node_grants_them_and_gives_them_back",
        "the guest's kernel knows no huge pages",
    ),
    (
        "hostile::hostile_callers_get_nothing_and_cost_nothing",
        "counts callers in seconds and bytes of the daemon under 10000 connections; nothing of it is about cgroups",
    ),
];

/// Runs the tests that can be run in a guest.
///
/// # Errors
/// One fails, or something could not be built.
pub(super) fn run(args: &Runtime) -> anyhow::Result<()> {
    check_nextest()?;
    guest::bring(false)?;
    let program = built::daemon(args.built, args.release)?;
    for (name, why) in NOT_THERE {
        eprintln!("  not run  {name}: {why}");
    }
    let own = std::env::current_exe().context("this program's path")?;
    let runner = format!("{} guest carry", own.display());
    let jobs = args.jobs.clamp(1, 2).to_string();
    let filter = filter(args.embedded);
    let mut command = vec!["nextest", "run", "--profile", "guest", "--ignore-default-filter", "--no-fail-fast"];
    command.extend(["--test-threads", &jobs, "--filterset", &filter]);
    let tests = built::tests(args.built, &["e2e", "pod-supervisor", "runtime-server"]);
    command.extend(tests.iter().map(String::as_str));
    command.extend(args.filter.as_deref());
    let program = program.to_string_lossy();
    let variable = runner_variable();
    let mut env = vec![("BOSUN_BIN", program.as_ref()), (guest::PATIENCE, PATIENCE), (&variable, &runner)];
    env.extend(args.embedded.then_some(workspace::ON_OWN_RUNTIME));
    workspace::run_with("cargo", &command, &env)
}

/// Tests of the runtime of our own that have a side for cgroup v2: how containers are held in, and where supervisors begin.
const OWN: &str = "(package(runtime-server) & binary(it) & (test(confined::) | test(started::))) \
    | (package(pod-supervisor) & binary(it) & test(are_in_their_cgroup))";

/// What nextest is to run.
fn filter(embedded: bool) -> String {
    let but: String = NOT_THERE.iter().map(|(name, _)| format!(" - test(/^{name}/)")).collect();
    if embedded { format!("{OWN} | package(e2e){but}") } else { format!("package(e2e){but}") }
}

/// By which cargo, and nextest with it, know what runs their programs.
fn runner_variable() -> String {
    format!("CARGO_TARGET_{}_UNKNOWN_LINUX_GNU_RUNNER", std::env::consts::ARCH.to_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_is_a_test_that_there_is() {
        let folder = workspace::root().join("tests/e2e");
        for (name, why) in NOT_THERE {
            let (module, test) = name.split_once("::").unwrap();
            let text = std::fs::read_to_string(folder.join(format!("{module}.rs"))).unwrap();
            assert!(text.contains(&format!("fn {test}")), "{name}");
            assert!(!why.is_empty());
        }
    }
}
