//! Is everything that we claim true? Every check and every test, from a fresh clone, in one go.

use std::time::{Duration, Instant};

use anyhow::bail;

use crate::{e2e, fuzz, setup, workspace};

/// Runs everything: format, lints, fast tests (layers and tidy among them), then the slow ones on a real containerd.
///
/// Goes on after a failed step, so that one run shows all that is wrong, and ends with a summary.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Leaves out what needs root and a container runtime.
    #[arg(long)]
    fast: bool,
}

struct Step {
    name: &'static str,
    answers: &'static str,
    outcome: Outcome,
    took: Duration,
}

enum Outcome {
    Passed,
    Failed(String),
    LeftOut(&'static str),
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let mut steps = Vec::new();
    let mut step = |name, answers, work: &dyn Fn() -> anyhow::Result<Outcome>| {
        println!("\n=== {name}: {answers}");
        let begin = Instant::now();
        let outcome = work().unwrap_or_else(|e| Outcome::Failed(format!("{e:#}")));
        steps.push(Step { name, answers, outcome, took: begin.elapsed() });
    };
    step("fmt", "is it formatted?", &|| cargo(&["fmt", "--all", "--check"]));
    step("clippy", "does any lint object?", &|| {
        cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"])
    });
    step("tests", "do the fast tests pass, layers and tidy among them?", &fast_tests);
    step("deny", "are licences and sources of dependencies fine?", &|| {
        if !has("cargo-deny") {
            return Ok(Outcome::LeftOut("cargo-deny is not installed"));
        }
        cargo(&["deny", "check", "licenses", "bans", "sources"])
    });
    step("fuzz", "does a minute of fuzzing per target find anything?", &|| {
        if args.fast {
            return Ok(Outcome::LeftOut("--fast"));
        }
        fuzz::run(&fuzz::Args::default()).map(|()| Outcome::Passed)
    });
    step("e2e", "does it run pods on a real containerd?", &|| {
        if args.fast {
            return Ok(Outcome::LeftOut("--fast"));
        }
        setup::run(&setup::Args::default())?;
        e2e::run(&e2e::Args::default()).map(|()| Outcome::Passed)
    });
    step("cluster", "does it serve a real control plane?", &|| {
        if args.fast {
            return Ok(Outcome::LeftOut("--fast"));
        }
        e2e::run_cluster().map(|()| Outcome::Passed)
    });
    summary(&steps)
}

fn cargo(args: &[&str]) -> anyhow::Result<Outcome> {
    workspace::run("cargo", args).map(|()| Outcome::Passed)
}

fn fast_tests() -> anyhow::Result<Outcome> {
    let out = ["--workspace", "--exclude", "e2e", "--exclude", "cluster"];
    if has("cargo-nextest") {
        return cargo(&[["nextest", "run", "--no-fail-fast"].as_slice(), out.as_slice()].concat());
    }
    cargo(&[["test", "--no-fail-fast", "--lib", "--bins", "--tests"].as_slice(), out.as_slice()].concat())
}

/// Whether a program is on the path.
pub(crate) fn has(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(program).is_file())
}

fn summary(steps: &[Step]) -> anyhow::Result<()> {
    println!("\n=== summary");
    let mut failed = 0;
    for step in steps {
        let (word, detail) = match &step.outcome {
            Outcome::Passed => ("ok", String::new()),
            Outcome::LeftOut(why) => ("left out", format!(" ({why})")),
            Outcome::Failed(why) => {
                failed += 1;
                ("FAILED", format!("\n           {}", why.replace('\n', "\n           ")))
            }
        };
        println!("{word:>8}  {:<7} {:>6.1} s  {}{detail}", step.name, step.took.as_secs_f64(), step.answers);
    }
    if failed > 0 {
        bail!("{failed} of {} steps failed", steps.len());
    }
    Ok(())
}
