//! Is everything that we claim true? Every check and every test, from a fresh clone, in one go.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use crate::workspace::{self, has};
use crate::{built, outside, setup};

mod failures;
mod log;

use log::Log;

/// Clusters at a time: each is a control plane, a containerd and a daemon.
const CLUSTERS: &str = "2";

/// End-to-end tests that run on bosun's own runtime, too; `cargo xtask e2e --embedded` has all.
const EMBEDDED: [&str; 2] = ["embedded::", "lifecycle::"];

/// Minutes of scenarios by chance; the first ones are among the fast tests.
const SIMULATED: [&str; 4] = ["--minutes", "5", "--from", "9"];

/// Power cuts of the guest.
const CUTS: &str = "1";

/// Seconds of fuzzing per target: the seeds, and what is near to them. Who wants more runs `cargo xtask fuzz`.
const FUZZED: &str = "10";

/// Runs everything: format, fast tests (layers and tidy among them), then the slow ones on a real containerd, and lints beside those
/// (with --fast before). Of the tests in guests it runs a selection, and says what it left out.
///
/// Goes on after a failed step, so that one run shows all that is wrong, and ends with what failed and a summary. All output
/// of a step is kept in `target/xtask-test/STEP.log`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Leaves out what needs root and a container runtime.
    #[arg(long)]
    fast: bool,
    /// Fails when the database of advisories cannot be had; else that is told and the rest counts.
    #[arg(long)]
    require_advisories: bool,
}

/// What the step with the lints answers.
const LINTS: &str = "does any lint object?";

/// What the step with the examples answers.
const EXAMPLES: &str = "do the examples in the documentation do what they say, those that must not compile included?";

struct Step {
    name: &'static str,
    answers: &'static str,
    outcome: Outcome,
    /// `None`: it could not be made.
    log: Option<Log>,
    took: Duration,
}

enum Outcome {
    Passed,
    Failed(String),
    LeftOut(&'static str),
    /// Could not be found out, though it should be; fails nothing.
    Unknown(String),
}

/// What has been found out so far.
struct Steps {
    folder: PathBuf,
    done: Mutex<Vec<Step>>,
}

type Work<'a> = &'a dyn Fn(&Log) -> anyhow::Result<Outcome>;

impl Steps {
    /// On the terminal.
    fn step(&self, name: &'static str, answers: &'static str, work: Work<'_>) {
        println!("\n=== {name}: {answers}");
        self.make(name, answers, false, work);
    }

    /// Beside those that mostly wait for containers and guests, at the lowest priority.
    fn beside(&self, name: &'static str, answers: &'static str, work: Work<'_>) {
        println!("=== {name} begins beside the rest: {answers}");
        self.make(name, answers, true, work);
        println!("=== {name} has ended");
    }

    fn make(&self, name: &'static str, answers: &'static str, is_beside: bool, work: Work<'_>) {
        let begin = Instant::now();
        let log = Log::new(&self.folder, name, is_beside);
        let outcome = log.as_ref().map_err(|e| anyhow::anyhow!("{e:#}")).and_then(work);
        let outcome = outcome.unwrap_or_else(|e| Outcome::Failed(format!("{e:#}")));
        let step = Step { name, answers, outcome, log: log.ok(), took: begin.elapsed() };
        self.done.lock().unwrap_or_else(PoisonError::into_inner).push(step);
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let steps = Steps { folder: workspace::target_dir()?.join("xtask-test"), done: Mutex::default() };
    fast_steps(&steps, args);
    slow_steps(&steps, args);
    summary(&steps.done.into_inner().unwrap_or_else(PoisonError::into_inner))
}

fn fast_steps(steps: &Steps, args: &Args) {
    steps.step("fmt", "is it formatted?", &|log| cargo(log, &["fmt", "--all", "--check"]));
    steps.step("deny", "are licences and sources of dependencies fine?", &|log| {
        deny(&|| cargo(log, &["deny", "--locked", "check", "licenses", "bans", "sources"]))
    });
    steps.step("advisories", "is no dependency known to be harmful, withdrawn or abandoned?", &|log| {
        deny(&|| advisories(log, args.require_advisories))
    });
    if args.fast {
        steps.step("clippy", LINTS, &clippy);
    }
    steps.step("tests", "do the fast tests pass, layers and tidy among them?", &|log| fast_tests(log, args.fast));
    if args.fast {
        steps.step("doc", EXAMPLES, &doctests);
    }
    steps.step("outside", "is the page on replacing a manager enough to build a node elsewhere?", &|log| {
        let program = outside::build(&|args| log.run("cargo", args))?;
        log.run(&program.to_string_lossy(), &["--version"])?;
        Ok(Outcome::Passed)
    });
}

/// What builds for itself alone runs beside those that have been built.
fn slow_steps(steps: &Steps, args: &Args) {
    // Now: somebody may build another one meanwhile.
    let own = std::env::current_exe().ok();
    let noted = if args.fast { None } else { note(&steps.folder) };
    let noted: Vec<(&str, &str)> = noted.iter().map(|folder| (built::FOLDER, folder.as_str())).collect();
    let slow = |log: &Log, commands: &[&[&str]]| -> anyhow::Result<Outcome> {
        if args.fast {
            return Ok(Outcome::LeftOut("--fast"));
        }
        let own = own.as_deref().context("this program's own path is not known")?;
        commands.iter().try_for_each(|command| log.run_with(&own.to_string_lossy(), command, &noted))?;
        Ok(Outcome::Passed)
    };
    let unfit = testbed::unfit_processor();
    let (ready, wait) = mpsc::channel();
    std::thread::scope(|scope| {
        let simulation = scope.spawn(|| {
            steps.beside("simulation", "does a node in memory keep its promises, whatever happens to it?", &|log| {
                slow(log, &[&[&["sim", "--built"], &SIMULATED[..]].concat()])
            });
        });
        let beside = scope.spawn(move || builds(steps, &slow, args.fast, unfit, &ready));
        steps.step("e2e", "does it run pods on a real containerd?", &|log| {
            slow(log, &[&["setup"], &["e2e", "--built"]])
        });
        steps.step("embedded", "and by itself, without containerd? (a selection)", &|log| {
            let runs = EMBEDDED.map(|tests| ["e2e", "--built", "--embedded", tests]);
            slow(log, &runs.each_ref().map(|run| &run[..]))
        });
        let _ = wait.recv();
        steps.step("cluster", "does it serve a real control plane?", &|log| {
            slow(log, &[&["e2e", "cluster", "--built", "--jobs", CLUSTERS]])
        });
        let _ = wait.recv();
        steps.step("guest", "does it hold on cgroup v2, on a kernel of its own, after a power cut?", &|log| {
            if let Some(why) = unfit {
                return Ok(Outcome::LeftOut(why));
            }
            slow(log, &[&["guest", "test", "--selection", "--built", "--cuts", CUTS]])
        });
        if !beside.is_finished() {
            println!("\n=== waiting for what runs beside");
        }
        for run in [simulation, beside] {
            if run.join().is_err() {
                steps.step("beside", "did what runs beside come to its end?", &|_| bail!("it panicked"));
            }
        }
    });
    steps.step("fuzz", "does a little fuzzing of each target find anything?", &|log| {
        slow(log, &[&["fuzz", "--seconds", FUZZED]])
    });
}

/// Runs one of this program's own commands after the other, unless all that is slow is left out.
type Slow<'a> = dyn Fn(&Log, &[&[&str]]) -> anyhow::Result<Outcome> + Sync + 'a;

/// What builds for itself alone, one after the other. `ready` is told twice: the control plane is there, and so is the image of guests; or neither will be,
/// which the steps that need them say.
fn builds(steps: &Steps, slow: &Slow<'_>, is_fast: bool, unfit: Option<&'static str>, ready: &mpsc::Sender<()>) {
    steps.beside("control-plane", "can a control plane be built for the cluster?", &|log| {
        slow(log, &[&["setup", "--cluster"]])
    });
    let _ = ready.send(());
    if unfit.is_none() {
        steps.beside("guest-image", "can an image be built for guests?", &|log| slow(log, &[&["guest", "image"]]));
    }
    let _ = ready.send(());
    if !is_fast {
        steps.beside("doc", EXAMPLES, &doctests);
        steps.beside("clippy", LINTS, &clippy);
    }
    steps.beside(
        "cgroups-rs",
        "is it so what docs/decisions/0018 says that cgroups-rs can and cannot do?",
        &cgroups_rs,
    );
    steps.beside("fuzz-build", "do the targets of fuzzing build?", &|log| slow(log, &[&["fuzz", "--no-run"]]));
}

/// Notes what was built in a folder, so that it can be run while cargo builds something else.
fn note(folder: &Path) -> Option<String> {
    match built::note(folder) {
        Ok(()) => Some(folder.to_string_lossy().into_owned()),
        Err(e) => {
            println!("cargo is asked for tests on real runtimes, and they wait while it builds: {e:#}");
            None
        }
    }
}

fn clippy(log: &Log) -> anyhow::Result<Outcome> {
    cargo(log, &["clippy", "--workspace", "--all-targets", "--features", "cluster/kubelet", "--", "-D", "warnings"])
}

fn cgroups_rs(log: &Log) -> anyhow::Result<Outcome> {
    let target = workspace::target_dir()?.join("cgroups-rs");
    let manifest = "tests/cgroups-rs/Cargo.toml";
    cargo(log, &["test", "--locked", "--manifest-path", manifest, "--target-dir", &target.to_string_lossy()])
}

fn cargo(log: &Log, args: &[&str]) -> anyhow::Result<Outcome> {
    log.run("cargo", args).map(|()| Outcome::Passed)
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
fn advisories(log: &Log, required: bool) -> anyhow::Result<Outcome> {
    match log.run("cargo", &["deny", "fetch", "db"]) {
        Ok(()) => cargo(log, &["deny", "--locked", "--offline", "check", "advisories"]),
        Err(e) if required => Err(e.context("the database of advisories cannot be had")),
        Err(_) => Ok(Outcome::Unknown("the database of advisories cannot be had from here".to_owned())),
    }
}

/// All of the workspace in one call, as features of dependencies depend on what is built together: what later steps need is
/// built by it, once.
fn fast_tests(log: &Log, fast: bool) -> anyhow::Result<Outcome> {
    // One judges the keys that pods get, the other builds the fuzzer: at once, for apt serves one at a time.
    let missing: Vec<&str> =
        [("openssl", "openssl"), ("c++", "g++")].into_iter().filter(|t| !has(t.0)).map(|t| t.1).collect();
    if !missing.is_empty() && !fast {
        setup::install(&missing)?;
    }
    let without: &[&str] = if fast { &["--exclude", "e2e", "--exclude", "cluster", "--exclude", "guest"] } else { &[] };
    if has("cargo-nextest") {
        return cargo(log, &[&["nextest", "run", "--no-fail-fast", "--workspace"], without].concat());
    }
    // Nobody else leaves them out.
    let out = ["--workspace", "--exclude", "e2e", "--exclude", "cluster", "--exclude", "guest"];
    cargo(log, &[["test", "--no-fail-fast", "--lib", "--bins", "--tests"].as_slice(), out.as_slice()].concat())
}

/// By the tests of these, others' crates have features that no example asks for. Beside them nothing that tests use has to be built once more.
const WITH_FEATURES: &[&str] = &["host-linux", "certificate-manager"];

/// Examples in doc comments, which no other step runs. Of those crates alone that have some: each is a call of rustdoc.
fn doctests(log: &Log) -> anyhow::Result<Outcome> {
    let packages = with_examples()?;
    let all = packages.iter().map(String::as_str).chain(WITH_FEATURES.iter().copied());
    let of: Vec<&str> = all.flat_map(|package| ["--package", package]).collect();
    cargo(log, &[&["test", "--doc", "--no-fail-fast"], of.as_slice()].concat())
}

/// Libraries of the workspace with an example that is compiled.
fn with_examples() -> anyhow::Result<Vec<String>> {
    let mut found = Vec::new();
    for package in workspace::metadata()?.packages {
        let Some(lib) = package.targets.iter().find(|t| t.is_lib()) else { continue };
        if any_example(lib.src_path.parent().context("a library lies in a folder")?.as_std_path())? {
            found.push(package.name.to_string());
        }
    }
    Ok(found)
}

fn any_example(folder: &Path) -> anyhow::Result<bool> {
    for entry in folder.read_dir().with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        let here = if path.is_dir() {
            any_example(&path)?
        } else {
            path.extension().is_some_and(|e| e == "rs") && std::fs::read_to_string(&path)?.lines().any(begins_example)
        };
        if here {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Also what only ends one; what is `ignore` or text has words of its own.
fn begins_example(line: &str) -> bool {
    let doc = ["///", "//!"].iter().find_map(|sign| line.trim_start().strip_prefix(sign));
    doc.and_then(|d| d.trim_start().strip_prefix("```")).is_some_and(|kind| {
        kind.split(',').all(|k| {
            k.is_empty() || k == "no_run" || k == "should_panic" || k.starts_with("compile_fail") || is_code(k)
        })
    })
}

fn is_code(kind: &str) -> bool {
    kind == "rust" || (kind.starts_with('E') && kind[1..].chars().all(|c| c.is_ascii_digit()))
}

/// What went wrong, and last of all one line per step: the end of a log is what is read.
fn summary(steps: &[Step]) -> anyhow::Result<()> {
    for step in steps.iter().filter(|s| matches!(s.outcome, Outcome::Failed(_))) {
        let said = step.log.as_ref().map(Log::text).transpose()?.unwrap_or_default();
        println!("\n=== what failed in {}\n{}", step.name, failures::what_failed(&said));
    }
    println!("\n=== summary");
    let mut failed = 0;
    for step in steps {
        let (word, detail) = match &step.outcome {
            Outcome::Passed => ("ok", String::new()),
            Outcome::LeftOut(why) => ("left out", format!(" ({why})")),
            Outcome::Unknown(why) => ("UNKNOWN", format!("\n           {why}")),
            Outcome::Failed(why) => {
                failed += 1;
                let log = step.log.as_ref().map(|l| format!("\nall of its output: {}", l.path().display()));
                let why = format!("\n{why}{}", log.unwrap_or_default());
                ("FAILED", why.replace('\n', "\n           "))
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
        Step { name: "x", answers: "?", outcome, log: None, took: Duration::ZERO }
    }

    #[test]
    fn a_missing_cargo_deny_is_told_and_in_ci_a_failure() {
        assert!(matches!(without_deny(false), Ok(Outcome::LeftOut(why)) if why.contains("cargo-deny")));
        let error = without_deny(true).err().expect("a failure").to_string();
        assert!(error.contains("cargo install --locked cargo-deny"), "{error}");
    }

    #[test]
    fn the_crates_whose_examples_are_run_are_those_that_have_some() {
        let found = with_examples().unwrap();
        assert!(["contract", "actor", "model"].iter().all(|c| found.iter().any(|f| f == c)), "{found:?}");
        assert!(!found.iter().any(|f| f == "pod-plan"), "{found:?}");
        let rows = [
            ("//! ```", true),
            ("/// ```compile_fail,E0277", true),
            ("    /// ```no_run", true),
            ("//! ```ignore", false),
            ("/// ```text", false),
            ("/// a ``` b", false),
            ("let x = \"```\";", false),
        ];
        for (line, want) in rows {
            assert_eq!(begins_example(line), want, "{line}");
        }
    }

    #[test]
    fn only_a_failed_step_fails_the_whole() {
        let fine = [Outcome::Passed, Outcome::LeftOut("--fast"), Outcome::Unknown("no network".into())].map(step);
        assert!(summary(&fine).is_ok());
        let failed = summary(&[step(Outcome::Failed("why".into())), step(Outcome::Passed)]);
        assert_eq!(failed.unwrap_err().to_string(), "1 of 2 steps failed");
    }
}
