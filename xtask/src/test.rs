//! Is everything that we claim true? Every check and every test, from a fresh clone, in one go.

use std::time::{Duration, Instant};

use anyhow::bail;

use crate::workspace::has;
use crate::{e2e, fuzz, setup, workspace};

/// Runs everything: format, lints, fast tests (layers and tidy among them), then the slow ones on a real containerd.
///
/// Goes on after a failed step, so that one run shows all that is wrong, and ends with a summary.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Leaves out what needs root and a container runtime.
    #[arg(long)]
    fast: bool,
    /// Fails when the database of advisories cannot be had; else that is told and the rest counts.
    #[arg(long)]
    require_advisories: bool,
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
    /// Could not be found out, though it should be; fails nothing.
    Unknown(String),
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
    step("cgroups-rs", "is it so what docs/decisions/0018 says that cgroups-rs can and cannot do?", &|| {
        let target = workspace::target_dir()?.join("cgroups-rs");
        let target = target.to_string_lossy();
        cargo(&["test", "--locked", "--manifest-path", "tests/cgroups-rs/Cargo.toml", "--target-dir", &target])
    });
    step("deny", "are licences and sources of dependencies fine?", &|| {
        deny(&|| cargo(&["deny", "--locked", "check", "licenses", "bans", "sources"]))
    });
    step("advisories", "is no dependency known to be harmful, withdrawn or abandoned?", &|| {
        deny(&|| advisories(args.require_advisories))
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

fn deny(check: &dyn Fn() -> anyhow::Result<Outcome>) -> anyhow::Result<Outcome> {
    if has("cargo-deny") { check() } else { without_deny(std::env::var_os("CI").is_some()) }
}

/// Told here; a failure in CI, where nobody reads what was left out.
fn without_deny(ci: bool) -> anyhow::Result<Outcome> {
    if ci {
        bail!("cargo-deny is not installed: cargo install --locked cargo-deny");
    }
    Ok(Outcome::LeftOut("cargo-deny is not installed"))
}

/// The database is a git repository, not a part of any registry: a machine may reach all it builds from and not this one.
fn advisories(required: bool) -> anyhow::Result<Outcome> {
    match workspace::run("cargo", &["deny", "fetch", "db"]) {
        Ok(()) => cargo(&["deny", "--locked", "--offline", "check", "advisories"]),
        Err(e) if required => Err(e.context("the database of advisories cannot be had")),
        Err(_) => Ok(Outcome::Unknown("the database of advisories cannot be had from here".to_owned())),
    }
}

fn fast_tests() -> anyhow::Result<Outcome> {
    let out = ["--workspace", "--exclude", "e2e", "--exclude", "cluster"];
    if has("cargo-nextest") {
        return cargo(&[["nextest", "run", "--no-fail-fast"].as_slice(), out.as_slice()].concat());
    }
    cargo(&[["test", "--no-fail-fast", "--lib", "--bins", "--tests"].as_slice(), out.as_slice()].concat())
}

fn summary(steps: &[Step]) -> anyhow::Result<()> {
    println!("\n=== summary");
    let mut failed = 0;
    for step in steps {
        let (word, detail) = match &step.outcome {
            Outcome::Passed => ("ok", String::new()),
            Outcome::LeftOut(why) => ("left out", format!(" ({why})")),
            Outcome::Unknown(why) => ("UNKNOWN", format!("\n           {why}")),
            Outcome::Failed(why) => {
                failed += 1;
                ("FAILED", format!("\n           {}", why.replace('\n', "\n           ")))
            }
        };
        println!("{word:>8}  {:<10} {:>6.1} s  {}{detail}", step.name, step.took.as_secs_f64(), step.answers);
    }
    if failed > 0 {
        bail!("{failed} of {} steps failed", steps.len());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(outcome: Outcome) -> Step {
        Step { name: "x", answers: "?", outcome, took: Duration::ZERO }
    }

    #[test]
    fn a_missing_cargo_deny_is_told_and_in_ci_a_failure() {
        assert!(matches!(without_deny(false), Ok(Outcome::LeftOut(why)) if why.contains("cargo-deny")));
        let error = without_deny(true).err().expect("a failure").to_string();
        assert!(error.contains("cargo install --locked cargo-deny"), "{error}");
    }

    #[test]
    fn only_a_failed_step_fails_the_whole() {
        let fine = [Outcome::Passed, Outcome::LeftOut("--fast"), Outcome::Unknown("no network".into())].map(step);
        assert!(summary(&fine).is_ok());
        let failed = summary(&[step(Outcome::Failed("why".into())), step(Outcome::Passed)]);
        assert_eq!(failed.unwrap_err().to_string(), "1 of 2 steps failed");
    }
}
