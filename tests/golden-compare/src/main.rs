//! Does this node do what a kubelet 1.36.2 did with the same pods? Started by `cargo xtask golden`.

#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::{Parser, ValueEnum};
use golden_compare::bed::{GoldenBed, NODE_CASE, all_cases};
use golden_compare::documented::{EVERYWHERE, ON_OWN_RUNTIME, Place, Row, rows};
use golden_compare::report::Report;
use golden_compare::server::left_out;
use testbed::RuntimeKind;

/// Runs the recorded pods on a real API server and a real containerd and compares calls, versions, events and the Node object.
#[derive(Parser)]
struct Args {
    /// Runs only this case; may be repeated. `_node`: the Node object.
    #[arg(long = "case", value_name = "NAME")]
    cases: Vec<String>,
    /// Form of the result.
    #[arg(short, long, value_enum, default_value_t = Output::Table)]
    output: Output,
    /// How many cases run at a time.
    #[arg(long, default_value_t = 4)]
    jobs: usize,
    /// Copies the daemon's log here at the end.
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    Table,
    Json,
}

fn say(line: &str) {
    eprintln!("golden: {line}");
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn documented((document, section): Place) -> anyhow::Result<Vec<Row>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(document);
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    rows(&text, section).map_err(|e| anyhow::anyhow!("{document}: {e}"))
}

fn run(args: &Args) -> anyhow::Result<bool> {
    let mut rows = documented(EVERYWHERE)?;
    if RuntimeKind::of_environment() != RuntimeKind::Containerd {
        rows.extend(documented(ON_OWN_RUNTIME)?);
    }
    let mut cases = all_cases();
    if let Some(unknown) = args.cases.iter().find(|c| *c != NODE_CASE && !cases.contains(c)) {
        bail!("no case {unknown}; there are {NODE_CASE}, {}", cases.join(", "));
    }
    let complete = args.cases.is_empty();
    cases.retain(|c| complete || args.cases.contains(c));
    let bed = GoldenBed::start(say)?;
    rows.retain(|row| row.since <= bed.minor());
    let mut outcomes = Vec::new();
    if complete || args.cases.iter().any(|c| c == NODE_CASE) {
        outcomes.push(bed.compare_node()?);
    }
    outcomes.extend(bed.run(cases, args.jobs, say));
    say(&format!("an API server of 1.{} cannot hold, so left out: {}", bed.minor(), left_out(bed.minor()).join(", ")));
    if let Some(path) = &args.log {
        std::fs::copy(bed.log_path(), path).with_context(|| path.display().to_string())?;
    }
    let report = Report { outcomes, rows, complete };
    match args.output {
        Output::Table => println!("{}", report.table()),
        Output::Json => println!("{:#}", report.json()),
    }
    Ok(report.is_good())
}
