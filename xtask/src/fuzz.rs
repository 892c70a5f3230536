//! Does anything that strangers write make us panic?

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, bail};

use crate::workspace::has;
use crate::{setup, workspace};

/// Fuzzes what reads other people's input: manifests, configuration, CRI messages, words of plugins and CSI drivers, container logs, requests, SPDY frames.
///
/// Targets and seeds lie in tests/fuzz. What is found is left in tests/fuzz/artifacts; run a single input again with
/// `cargo fuzz run --fuzz-dir tests/fuzz TARGET FILE` (set RUSTC_BOOTSTRAP=1 when no nightly toolchain is used).
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Targets; all unless given.
    targets: Vec<String>,
    /// How long each target runs.
    #[arg(long, default_value_t = 60)]
    seconds: u32,
    /// Builds the targets and runs none.
    #[arg(long)]
    no_run: bool,
    /// Watches each access to memory too. Building and running take about twice as long; the crates that are fuzzed forbid unsafe code, so
    /// what that finds is in a dependency.
    #[arg(long)]
    address: bool,
}

/// Folders whose files are seeds beside the target's own: what the rest of the repository has anyway.
const MORE_SEEDS: &[(&str, &str, &str)] = &[
    ("manifest", "config/examples", ".yaml"),
    ("manifest", "tests/golden", "manifest.yaml"),
    ("configuration", "config", ".yaml"),
];

/// Memory that one input may cost, MiB; an address sanitizer's is in it. Without one it is what is resident, looked at once a second:
/// what is asked for and never touched is found with `--address` alone.
const MEMORY_MIB: u32 = 2048;

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let dir = workspace::root().join("tests/fuzz");
    let known = targets(&dir)?;
    if let Some(unknown) = args.targets.iter().find(|t| !known.contains(t)) {
        bail!("no fuzz target {unknown:?}; there are: {}", known.join(", "));
    }
    let wanted = if args.targets.is_empty() { known } else { args.targets.clone() };
    if !has("c++") {
        setup::install(&["g++"])?;
    }
    if !has("cargo-fuzz") {
        println!("cargo-fuzz is not there: installing it");
        let install = ["install", "--locked", "--debug", "cargo-fuzz"];
        workspace::run_with("cargo", &install, &[("CARGO_PROFILE_DEV_DEBUG", "0")])?;
    }
    let sanitizer = if args.address { "address" } else { "none" };
    println!("building {} targets (sanitizer: {sanitizer})", wanted.len());
    let target_dir = workspace::target_dir()?.join("fuzz");
    let target = target_dir.to_string_lossy().into_owned();
    // What the fuzzer is guided by are unstable options; the stable compiler takes them when it is told that this is wanted.
    let build = ["fuzz", "build", "--fuzz-dir", "tests/fuzz", "--target-dir", &target, "--sanitizer", sanitizer];
    workspace::run_with("cargo", &build, &[("RUSTC_BOOTSTRAP", "1")])?;
    if args.no_run {
        return Ok(());
    }
    let mut failed = Vec::new();
    for pair in wanted.chunks(2) {
        let runs: Vec<_> = pair.iter().map(|t| start(&dir, &target_dir, t, args.seconds)).collect::<Result<_, _>>()?;
        for (name, mut run, log) in runs {
            let status = run.wait().with_context(|| format!("waiting for {name}"))?;
            let said = std::fs::read_to_string(&log).unwrap_or_default();
            println!("{name:<16} {}", last_words(&said));
            if !status.success() {
                let end: Vec<&str> = said.lines().rev().take(40).collect();
                eprintln!("{}", end.into_iter().rev().collect::<Vec<_>>().join("\n"));
                failed.push(name);
            }
        }
    }
    if !failed.is_empty() {
        bail!("fuzzing found something in: {}", failed.join(", "));
    }
    Ok(())
}

/// `Done 123456 runs in 61 second(s)`, or the line that says what was found.
fn last_words(log: &str) -> &str {
    let told = |l: &&str| l.starts_with("Done ") || l.contains("ERROR:") || l.contains("panicked at");
    log.lines().rev().find(told).unwrap_or("said nothing")
}

/// Names of the targets: one file each.
fn targets(dir: &Path) -> anyhow::Result<Vec<String>> {
    let folder = dir.join("targets");
    let entries = std::fs::read_dir(&folder).with_context(|| folder.display().to_string())?;
    let files = entries.collect::<Result<Vec<_>, _>>()?.into_iter().map(|e| e.path());
    let mut names: Vec<_> = files.filter_map(|f| Some(f.file_stem()?.to_string_lossy().into_owned())).collect();
    names.sort();
    Ok(names)
}

fn start(dir: &Path, built: &Path, target: &str, seconds: u32) -> anyhow::Result<(String, Child, PathBuf)> {
    let corpus = dir.join("corpus").join(target);
    let artifacts = dir.join("artifacts").join(target);
    for folder in [&corpus, &artifacts] {
        std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    }
    let mut seeds = Vec::new();
    find(&dir.join("seeds").join(target), "", &mut seeds)?;
    for (_, folder, ending) in MORE_SEEDS.iter().filter(|s| s.0 == target) {
        find(&workspace::root().join(folder), ending, &mut seeds)?;
    }
    for (n, seed) in seeds.iter().enumerate() {
        std::fs::copy(seed, corpus.join(format!("seed-{n}"))).with_context(|| seed.display().to_string())?;
    }
    let program = built.join(format!("{}-unknown-linux-gnu/release/{target}", std::env::consts::ARCH));
    let log = artifacts.join("log");
    let file = std::fs::File::create(&log).with_context(|| log.display().to_string())?;
    let mut command = Command::new(&program);
    command.arg(&corpus).arg(format!("-artifact_prefix={}/", artifacts.display()));
    command.arg(format!("-max_total_time={seconds}")).arg(format!("-rss_limit_mb={MEMORY_MIB}")).arg("-timeout=20");
    command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
    let child = command.spawn().with_context(|| format!("cannot start {}", program.display()))?;
    Ok((target.to_owned(), child, log))
}

/// Files below a folder whose names end so. A folder that is not there has none.
fn find(folder: &Path, ending: &str, found: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    if !folder.exists() {
        return Ok(());
    }
    for entry in std::fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if path.is_dir() {
            find(&path, ending, found)?;
        } else if path.to_string_lossy().ends_with(ending) {
            found.push(path);
        }
    }
    Ok(())
}
