//! Does a node keep its promises, whatever happens to it? Scenarios by chance on a node in memory.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail};

use crate::built;
use crate::workspace::{self, Program};

mod mutants;

/// Plays scenarios by chance on a whole node in memory, and says which rule was broken.
///
/// A scenario is made of a seed: pods of all shapes come and go while the API server, the runtime, the disk, the daemon and its
/// actors are in trouble; at its end all trouble is over and the node has to come to rest. An hour of the node takes a second or
/// so. The same seed gives the same run, byte for byte: the number after `fine` is a hash of all that was seen.
///
///   cargo xtask sim                       seeds from 1, for one minute
///   cargo xtask sim --seed 17 --shrink    one seed; if it breaks a rule, the shortest scenario that does
///   cargo xtask sim --seeds 1..1000       all of these
///   cargo xtask sim --replay FILE         a scenario's file, of `--shrink` or written by hand
///   cargo xtask sim --keep                seeds that take decisions which the corpus does not take join it, made short
///   cargo xtask sim --mutants             puts faults of tests/mutants into a copy of this repository, and searches for each
///
/// At the end it says which decisions of plans, statuses, admission and eviction were taken, and which never.
///
/// A scenario that breaks a rule is written to target/sim-found/seed-N.json: steps as data, one a line, which can be changed by
/// hand. Rules of the fault plan in it (`fault`) are in the language of `bosun fault`. With RUST_LOG=debug the node's own log goes
/// to stderr. A night of a million seeds: `cargo xtask sim --seeds 1..1000000 --shrink -o json > night.jsonl`.
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// One seed.
    #[arg(long, conflicts_with_all = ["seeds", "replay", "minutes"])]
    seed: Option<u64>,
    /// Seeds from A to B, without B.
    #[arg(long, value_name = "A..B", value_parser = range, conflicts_with_all = ["replay", "minutes"])]
    seeds: Option<(u64, u64)>,
    /// As many seeds as go into so many minutes; one minute unless seeds are given.
    #[arg(long, conflicts_with = "replay")]
    minutes: Option<u64>,
    /// The first seed of those minutes.
    #[arg(long, default_value_t = 1, value_name = "SEED")]
    from: u64,
    /// The file of a scenario.
    #[arg(long, value_name = "FILE")]
    replay: Option<PathBuf>,
    /// Makes a scenario that breaks a rule shorter, for two minutes at most.
    #[arg(long)]
    shrink: bool,
    /// Scenarios that take decisions which no scenario of tests/scenarios takes are made shorter and written there.
    #[arg(long, conflicts_with_all = ["replay", "shrink"])]
    keep: bool,
    /// Searches for the faults of tests/mutants, each for so many minutes at most (`--minutes`, 30); with a part of a name: for these.
    #[arg(long, value_name = "NAME", num_args = 0..=1, default_missing_value = "",
        conflicts_with_all = ["seed", "seeds", "replay", "keep", "shrink"])]
    mutants: Option<String>,
    /// All that was seen goes to stdout, a line each.
    #[arg(long)]
    transcript: bool,
    /// About how many pods there are at a time.
    #[arg(long)]
    pods: Option<usize>,
    /// How many steps there are beside these.
    #[arg(long)]
    steps: Option<usize>,
    /// How many minutes of the node pass before all trouble ends.
    #[arg(long, value_name = "MINUTES")]
    length: Option<u64>,
    /// Builds without optimisation, which takes less time; the node is then about six times slower.
    #[arg(long)]
    debug: bool,
    /// Takes the program that `cargo xtask test` has built, without optimisation, and builds nothing.
    #[arg(long, conflicts_with_all = ["mutants", "debug"])]
    built: bool,
    /// `json`: a line of JSON for each scenario, and one for all.
    #[arg(short, long, value_parser = ["json", "text"], default_value = "text")]
    output: String,
}

/// What plays scenarios.
const PROGRAM: Program = Program { name: "scenario", features: "mimalloc" };
/// For how long a scenario is made shorter, in seconds.
const SHRINK: u64 = 120;
/// For how long a mutant is searched for, in minutes.
const SEARCH: u64 = 30;

fn range(text: &str) -> Result<(u64, u64), String> {
    let (first, end) = text.split_once("..").ok_or("two numbers with .. between them")?;
    let number = |t: &str| t.parse::<u64>().map_err(|e| format!("{t:?}: {e}"));
    let (first, end) = (number(first)?, number(end)?);
    if first < end { Ok((first, end)) } else { Err(format!("there is no seed from {first} to {end}")) }
}

/// Its exit code is that of the runner: 1 when a rule was broken.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let profile = if args.debug { "dev" } else { "sim" };
    if let Some(only) = &args.mutants {
        let limit = Duration::from_secs(args.minutes.unwrap_or(SEARCH) * 60);
        let only = Some(only.clone()).filter(|part| !part.is_empty());
        let enough = mutants::run(&mutants::Search { only, limit, from: args.from, program: PROGRAM, profile })?;
        return Ok(if enough { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    let folder = workspace::target_dir()?;
    let program = if args.built {
        built::program(PROGRAM.name)?
    } else {
        workspace::run("cargo", &[&["build"], PROGRAM.arguments().as_slice(), &["--profile", profile]].concat())?;
        folder.join(if args.debug { "debug" } else { "sim" }).join(PROGRAM.name)
    };
    let (first, end) = match (args.seed, args.seeds) {
        (Some(seed), _) => (seed, Some(seed + 1)),
        (_, Some((first, end))) => (first, Some(end)),
        _ => (args.from, None),
    };
    let replay = args.replay.as_ref().map(|file| std::path::absolute(file).context("where the file is")).transpose()?;
    let request = serde_json::json!({
        "first": first, "end": end, "replay": replay,
        "seconds": end.is_none().then(|| args.minutes.unwrap_or(1) * 60),
        "shrink": args.shrink.then_some(SHRINK),
        "folder": folder.join("sim-found"),
        "keep": args.keep.then(|| workspace::root().join("tests/scenarios")),
        "json": args.output == "json", "transcript": args.transcript,
        "pods": args.pods, "steps": args.steps, "minutes": args.length,
    });
    let status = workspace::command(&program.to_string_lossy()).arg(request.to_string()).status();
    let status = status.with_context(|| format!("{}", program.display()))?;
    match status.code() {
        Some(0) => Ok(ExitCode::SUCCESS),
        Some(1) => Ok(ExitCode::FAILURE),
        _ => bail!("{} ended with {status}", program.display()),
    }
}

#[cfg(test)]
mod tests {
    use super::range;

    #[test]
    fn seeds_are_a_range_that_is_not_empty() {
        assert_eq!(range("1..20"), Ok((1, 20)));
        for wrong in ["1", "1..", "..2", "3..3", "4..3", "a..b"] {
            assert!(range(wrong).is_err(), "{wrong}");
        }
    }
}
