//! Plays scenarios: `scenario REQUEST`, a [`Request`] as JSON; `cargo xtask sim` is for people.

#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use scenario::{Coverage, Finding, Mix, Outcome, Scenario, all_decisions, generate, play, shrink};
use serde::Deserialize;
use serde_json::json;

mod keep;

/// A quarter of a calm node's time goes into memory that is taken and given back, with glibc's.
#[cfg(feature = "mimalloc")]
#[global_allocator]
static MEMORY: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// What is to be played.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    /// First seed, and the one after the last; absent: as many as there is time for.
    first: u64,
    end: Option<u64>,
    /// Seconds of real time after which no other seed begins.
    seconds: Option<u64>,
    /// A scenario's file, instead of seeds.
    replay: Option<PathBuf>,
    /// Scenarios with a fault are made shorter, for so many seconds each.
    shrink: Option<u64>,
    /// Where the files of scenarios with a fault go.
    folder: PathBuf,
    json: bool,
    /// All that was seen goes to stdout.
    transcript: bool,
    pods: Option<usize>,
    steps: Option<usize>,
    minutes: Option<u64>,
    /// No other seed begins after one that broke a rule.
    #[serde(default)]
    stop: bool,
    /// Folder of the corpus, where scenarios go that take decisions which none of it takes.
    keep: Option<PathBuf>,
}

/// What was played so far.
#[derive(Default)]
struct Sum {
    seeds: u64,
    /// Those that broke a rule.
    failed: Vec<u64>,
    simulated: Duration,
    steps: BTreeMap<&'static str, u64>,
    points: BTreeMap<String, u64>,
    coverage: Coverage,
}

fn main() -> ExitCode {
    sim::log_to_stderr();
    let text = std::env::args().nth(1).unwrap_or_default();
    let run = serde_json::from_str::<Request>(&text).map_err(|e| format!("no request: {e}")).and_then(|r| run(&r));
    match run {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(e) => {
            let _ = writeln!(std::io::stderr(), "error: {e}");
            ExitCode::from(2)
        }
    }
}

/// Plays all; whether no scenario has a fault.
fn run(request: &Request) -> Result<bool, String> {
    let begun = Instant::now();
    let mut sum = Sum::default();
    if let Some(file) = &request.replay {
        let text = std::fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()))?;
        let scenario = Scenario::from_text(&text).map_err(|e| format!("{}: {e}", file.display()))?;
        one(request, &scenario.in_order(), &mut sum)?;
    } else {
        let base = Mix::default();
        let mix = Mix {
            pods: request.pods.unwrap_or(base.pods),
            steps: request.steps.unwrap_or(base.steps),
            minutes: request.minutes.unwrap_or(base.minutes),
            ..base
        };
        if let Some(folder) = &request.keep {
            sum.coverage = keep::covered(folder)?;
        }
        let mut seed = request.first;
        let has_time = || request.seconds.is_none_or(|s| begun.elapsed() < Duration::from_secs(s));
        while request.end.is_none_or(|end| seed < end) && has_time() && (!request.stop || sum.failed.is_empty()) {
            one(request, &generate(seed, mix), &mut sum)?;
            seed += 1;
        }
    }
    tell(request, &sum, begun.elapsed());
    Ok(sum.failed.is_empty())
}

fn one(request: &Request, scenario: &Scenario, sum: &mut Sum) -> Result<(), String> {
    let outcome = play(scenario, request.transcript);
    sum.seeds += 1;
    sum.simulated += outcome.simulated;
    outcome.steps.iter().for_each(|(kind, n)| *sum.steps.entry(kind).or_default() += n);
    outcome.points.iter().for_each(|(point, n)| *sum.points.entry(point.clone()).or_default() += n);
    if let Some(folder) = request.keep.as_ref().filter(|_| outcome.findings.is_empty())
        && let Some(kept) = keep::scenario(folder, scenario, &outcome.coverage, &sum.coverage)?
    {
        say(&format!("seed {}: kept as {}, for {}", scenario.seed, kept.file.display(), kept.decisions.join(", ")));
    }
    sum.coverage.extend(outcome.coverage.iter().cloned());
    if let Some(text) = &outcome.transcript {
        say(text);
    }
    let Some(first) = outcome.findings.first() else {
        let [steps, facts, calls] = outcome.counts;
        if request.json {
            say(&json!({ "seed": scenario.seed, "hash": format!("{:016x}", outcome.hash), "ok": true }).to_string());
        } else {
            say(&format!(
                "seed {} fine: {:016x}, {} s, {steps} steps, {facts} facts, {calls} calls",
                scenario.seed,
                outcome.hash,
                outcome.simulated.as_secs()
            ));
        }
        return Ok(());
    };
    sum.failed.push(scenario.seed);
    let short = match request.shrink {
        Some(seconds) => {
            let same = |s: &Scenario| play(s, false).findings.first().is_some_and(|f| f.checker == first.checker);
            shrink(scenario, Duration::from_secs(seconds), same)
        }
        None => scenario.clone(),
    };
    let file = write(&request.folder, &short)?;
    report(request, scenario, &outcome, first, &short, &file);
    Ok(())
}

fn write(folder: &Path, scenario: &Scenario) -> Result<PathBuf, String> {
    let file = folder.join(format!("seed-{}.json", scenario.seed));
    let written = std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&file, scenario.to_text()));
    written.map_err(|e| format!("{}: {e}", file.display()))?;
    Ok(file)
}

fn seconds(at: i64) -> f64 {
    Duration::from_nanos(u64::try_from(at).unwrap_or_default()).as_secs_f64()
}

/// Which step was the last one before a moment.
fn step_before(scenario: &Scenario, at: i64) -> Option<usize> {
    let at_ms = u64::try_from(at / 1_000_000).unwrap_or_default();
    scenario.steps.iter().rposition(|step| step.at_ms <= at_ms)
}

fn report(request: &Request, scenario: &Scenario, outcome: &Outcome, first: &Finding, short: &Scenario, file: &Path) {
    let step = step_before(scenario, first.at);
    let replay = format!("cargo xtask sim --replay {}", file.display());
    if request.json {
        let findings: Vec<_> = outcome
            .findings
            .iter()
            .map(|f| json!({ "at": seconds(f.at), "checker": f.checker, "text": f.text }))
            .collect();
        let hash = format!("{:016x}", outcome.hash);
        let told = json!({
            "seed": scenario.seed, "hash": hash, "ok": false, "findings": findings, "step": step,
            "steps": short.steps.len(), "file": file, "replay": replay,
        });
        return say(&told.to_string());
    }
    say(&format!("seed {} BROKEN, {:016x}", scenario.seed, outcome.hash));
    for f in outcome.findings.iter().take(8) {
        say(&format!("  at {:.3} s, {}: {}", seconds(f.at), f.checker, f.text));
    }
    if let Some(n) = step {
        let timed = &scenario.steps[n];
        let text = serde_json::to_string(&timed.step).unwrap_or_default();
        say(&format!("  after step {n} at {} ms: {}", timed.at_ms, text.chars().take(200).collect::<String>()));
    }
    say(&format!("  {} of {} steps are left; again: {replay}", short.steps.len(), scenario.steps.len()));
}

#[allow(clippy::cast_precision_loss, reason = "figures for people")]
fn tell(request: &Request, sum: &Sum, took: Duration) {
    let hours = sum.simulated.as_secs_f64() / 3600.0;
    let per_minute = hours / (took.as_secs_f64() / 60.0);
    if request.json {
        let told = json!({
            "seeds": sum.seeds, "failed": sum.failed.len(), "nodeHours": hours, "nodeHoursPerMinute": per_minute,
            "steps": sum.steps, "points": sum.points, "decisions": sum.coverage,
        });
        return say(&told.to_string());
    }
    say(&format!(
        "{} scenarios, {} with a fault; {hours:.1} hours of a node in {:.1} s: {per_minute:.1} per minute",
        sum.seeds,
        sum.failed.len(),
        took.as_secs_f64()
    ));
    let steps: Vec<String> = sum.steps.iter().map(|(kind, n)| format!("{kind} {n}")).collect();
    say(&format!("steps: {}", steps.join(", ")));
    say(&format!("fault points passed: {}", sum.points.len()));
    let all = all_decisions();
    let never: Vec<&str> = all.difference(&sum.coverage).map(String::as_str).collect();
    say(&format!(
        "decisions taken: {} of {} that are known, {} others",
        all.len() - never.len(),
        all.len(),
        sum.coverage.difference(&all).count()
    ));
    if !never.is_empty() {
        say(&format!("never taken: {}", never.join(", ")));
    }
    if !sum.failed.is_empty() {
        let seeds: Vec<String> = sum.failed.iter().map(u64::to_string).collect();
        say(&format!("broken: {}", seeds.join(", ")));
    }
}

/// A line on stdout. Who does not read it has ended.
fn say(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}
