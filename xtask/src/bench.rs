//! What does bosun cost over the runtime's own time, and over nothing? Each figure beside its limit and its floor,
//! measured in the same run on the same machine.

use std::time::Duration;

use anyhow::Context;
use testbed::{Bosun, BosunOptions, Options, TestBed};

use crate::{order, setup, workspace};

mod calls;
mod cluster;
mod face;
mod faults;
mod floor;
mod pods;
mod report;
mod runtimes;
mod starts;
mod steady;
mod volumes;
mod watchers;

use pods::idle;
use report::{Report, Unit};

const FUNCTIONS: &str = "functions of the linker's list that the program lacks";

/// Measures the figures of the README in a test bed: starts, 110 pods, memory, processor, exits, panics, adoption.
///
/// The CRI floor (the same calls issued by a script) is measured first, in the same bed. Takes about seven minutes.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// How many pods the big rounds have.
    #[arg(long, default_value_t = 110)]
    pods: usize,
    /// Rounds with only this in their name: start, many, memory, cpu, exit, face, volumes, panic, adopt, watchers. With `--cluster`:
    /// `volumes` alone.
    #[arg(long)]
    only: Option<String>,
    /// Measures a node of a real cluster instead (etcd, kube-apiserver; `cargo xtask setup --cluster` brings them).
    #[arg(long)]
    cluster: bool,
    /// Measures bosun's own runtime beside containerd instead: the same pods on both, in turns. Takes about four minutes.
    #[arg(long, conflicts_with_all = ["cluster", "only"])]
    runtimes: bool,
    /// What starts the containers of bosun's own runtime with `--runtimes`, instead of what that takes by itself.
    #[arg(long, value_name = "PATH", requires = "runtimes")]
    oci_runtime: Option<std::path::PathBuf>,
    /// Measures the debug build (figures of memory and processor say little then).
    #[arg(long)]
    debug: bool,
    /// `table` or `json`.
    #[arg(short, long, default_value = "table", value_parser = ["table", "json"])]
    output: String,
}

impl Args {
    fn print(&self, report: &Report) {
        match self.output.as_str() {
            "json" => println!("{}", report.json()),
            _ => print!("{}", report.table()),
        }
    }

    fn wants(&self, round: &str) -> bool {
        self.only.as_ref().is_none_or(|only| round.contains(only.as_str()))
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    setup::check()?;
    let program = workspace::build_bosun_and_runtime(!args.debug)?;
    let mut report = Report::default();
    if let Some((missing, all)) = (!args.debug).then(|| order::missing(&program)).transpose()?.flatten() {
        let told = format!("of {all}; `cargo xtask order` makes the list anew");
        report.add(FUNCTIONS, missing as f64, Unit::Count, Some(all as f64 / 20.0), told);
    }
    if args.cluster {
        let done = cluster::rounds(args.pods, args.only.as_deref() == Some("volumes"), program, &mut report);
        args.print(&report);
        return done;
    }
    if args.runtimes {
        let given = runtimes::Given { program: &program, oci_runtime: args.oci_runtime.as_deref(), pods: args.pods };
        let done = runtimes::rounds(&given, &mut report);
        args.print(&report);
        return done;
    }
    let mut bed = TestBed::start(Options { say: |s| eprintln!("  {s}"), ..Options::default() })?;
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split_whitespace().next().unwrap_or("?").to_owned();
    eprintln!("  load average {load}: times say little on a busy machine");
    let done = rounds(args, &mut bed, program, &mut report);
    let left = bed.close();
    args.print(&report);
    if !left.is_empty() {
        eprintln!("could not be removed:\n  {}", left.join("\n  "));
    }
    done
}

fn rounds(args: &Args, bed: &mut TestBed, program: std::path::PathBuf, report: &mut Report) -> anyhow::Result<()> {
    let single = args.wants("start").then(|| floor::measure(bed, 20, 1)).transpose().context("floor of one pod")?;
    let many = args.wants("many").then(|| floor::measure(bed, args.pods, 8)).transpose().context("floor of many")?;
    let options =
        BosunOptions { program: program.clone(), faults: true, log: "warn".into(), ..BosunOptions::default() };
    let mut bosun = Bosun::start(bed, options.clone())?;
    eprintln!("  bosun runs, pid {}", bosun.pid().unwrap_or_default());
    if args.wants("memory") {
        idle(Duration::from_secs(5));
        report.add("RSS, no pods", steady::rss(&bosun)?, Unit::MiB, Some(16.0), String::new());
    }
    if let Some(floor) = &single {
        starts::single(bed, &bosun, floor, report).context("round start")?;
    }
    if args.wants("exit") {
        steady::exits(bed, &bosun, report).context("round exit")?;
    }
    if args.wants("face") {
        face::rounds(bed, &bosun, report).context("round face")?;
    }
    if args.wants("volumes") {
        volumes::rounds(bed, &mut bosun, args.pods, report).context("round volumes")?;
    }
    let needs_many = ["many", "memory", "cpu", "face", "panic", "adopt", "watchers"].iter().any(|r| args.wants(r));
    if needs_many {
        let took = starts::many(bed, &bosun, args.pods, report).context("round many")?;
        if args.wants("memory") {
            idle(Duration::from_secs(5));
            report.add(&format!("RSS, {} pods", args.pods), steady::rss(&bosun)?, Unit::MiB, Some(28.0), String::new());
        }
        if args.wants("cpu") {
            steady::cpu(&bosun, args.pods, report).context("round cpu")?;
        }
        if args.wants("face") {
            face::numbers(&bosun, args.pods, report).context("round face")?;
        }
        if args.wants("panic") {
            faults::panics(&bosun, report).context("round panic")?;
        }
        if args.wants("adopt") {
            faults::adoption(bed, &mut bosun, args.pods, report).context("round adopt")?;
        }
        if args.wants("watchers") {
            bosun.kill();
            watchers::rounds(bed, &program, args.pods, report).context("round watchers")?;
            // The others go on with the settings of before.
            bosun = Bosun::start(bed, options)?;
            pods::wait_running(&bosun, args.pods, Duration::from_secs(60))?;
        }
        let removed = starts::remove_many(bed, &bosun, report).context("round many, removal")?;
        if let Some(before) = &many {
            let after = floor::measure(bed, args.pods, 8).context("floor of many, again")?;
            starts::compare(args.pods, [took, removed], [before, &after], report);
        }
    }
    Ok(())
}
