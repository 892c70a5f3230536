//! Does a manager keep the contract of its role: ours, ours in a process of its own, an operator's?

use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use anyhow::{Context, bail};
use serde_json::Value;

use crate::mutants::{self, Copy};
use crate::setup;
use crate::workspace::{self, Program};

/// Tries a manager against the contract of its role, case by case, and says which rules it keeps.
///
///   conform probes                     bosun's own, in one process, on a virtual clock
///   conform probes --remote            bosun's own in a process of its own, killed at will
///   conform probes --run ./my-probes   a program, started for each case with `--at unix:///PATH`
///   conform probes --at unix:///PATH   one that runs already and serves nobody else meanwhile
///   conform images --at ... --runtime-at unix:///PATH
///                                      such a one, which looks for the image service there
///   conform volumes --at ... --root-dir /PATH
///                                      such a one, whose root directory of the node that is
///   conform probes --python            docs/examples/python-probes: what every one must keep
///   conform probes --list              which cases there are, with the rule of each
///   conform probes --mutants [NAME]    puts faults of tests/mutants/conform into a copy of this
///                                      repository, one at a time: does the suite notice?
///
/// Roles are `images`, `probes`, `status` and `volumes`. `--core` plays only what every manager must
/// keep, `--only PART` cases with this in their names, `-o json` tells all of it to programs. It ends
/// with 1 when a rule is broken, with 2 when nobody is there to be tried.
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Which contract.
    #[arg(value_parser = ROLES)]
    role: String,
    /// bosun's own in a process of its own.
    #[arg(long)]
    remote: bool,
    /// The example in Python, by Debian's python3-grpcio where no other is there.
    #[arg(long, conflicts_with = "remote")]
    python: bool,
    /// Faults of tests/mutants/conform; with a part of a name: these.
    #[arg(long, value_name = "NAME", num_args = 0..=1, default_missing_value = "", conflicts_with_all = ["remote", "python", "rest"])]
    mutants: Option<String>,
    /// Whatever else the suite is told: `--at`, `--runtime-at`, `--root-dir`, `--run`, `--only`, `--core`, `--list`, `-o json`.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    rest: Vec<String>,
}

const ROLES: [&str; 4] = ["images", "probes", "status", "volumes"];

/// Our managers in processes of their own: role, package, program.
const REMOTE: [(&str, &str, &str); 4] = [
    ("images", "across", "images"),
    ("probes", "remote-probes", "remote-probes"),
    ("status", "across", "statuses"),
    ("volumes", "across", "volumes"),
];

/// Of thirty mutants so many must be noticed.
const MUST: (usize, usize) = (27, 30);

/// Its exit code is that of the suite: 1 when a rule is broken.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    if let Some(only) = &args.mutants {
        let enough = noticed(&args.role, Some(only.as_str()).filter(|part| !part.is_empty()))?;
        return Ok(if enough { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    let program = workspace::build("conform", false)?;
    let mut command = Command::new(program);
    command.arg(&args.role).args(&args.rest);
    if args.remote {
        let (_, package, name) = REMOTE.iter().find(|(role, ..)| *role == args.role).context("no such program")?;
        workspace::run("cargo", &["build", "--package", package, "--bin", name])?;
        command.arg("--run").arg(workspace::target_dir()?.join("debug").join(name));
    }
    if args.python {
        if args.role != "probes" {
            bail!("the example in Python is a manager of probes");
        }
        let example = workspace::root().join("docs/examples/python-probes/probes.py");
        command.args(["--core", "--run", &python()?]).arg(example);
    }
    let status = command.status().context("cannot start the suite")?;
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from))
}

/// A Python that can serve gRPC; Debian's is made to, where nobody else can and we may.
pub(crate) fn python() -> anyhow::Result<String> {
    const DEBIANS: &str = "/usr/bin/python3";
    let serves = |python: &str| {
        let mut command = Command::new(python);
        let needs = "import grpc.aio, google.protobuf, shutil; shutil.which('protoc') or __import__('grpc_tools')";
        let status = command.args(["-c", needs]).stderr(Stdio::null()).status();
        status.is_ok_and(|status| status.success())
    };
    let found = || ["python3", DEBIANS].into_iter().find(|python| serves(python)).map(str::to_owned);
    if let Some(python) = found() {
        return Ok(python);
    }
    let by_hand = "python3 has no grpc, which docs/examples/python-probes needs: \
        apt-get install python3-grpcio python3-protobuf protobuf-compiler, or pip install grpcio grpcio-tools";
    setup::install(&["python3", "python3-grpcio", "python3-protobuf", "protobuf-compiler"]).context(by_hand)?;
    found().context(by_hand)
}

/// Plays the suite against each mutant, and prints a table. Answers whether enough were noticed.
fn noticed(role: &str, only: Option<&str>) -> anyhow::Result<bool> {
    let patches = mutants::patches(&format!("conform/{role}"), only)?;
    let copy = Copy::new("conform-mutants")?;
    let (mut killed, mut table) = (0, "| mutant | broken rules |\n|---|---|\n".to_owned());
    for patch in &patches {
        let name = mutants::name(patch);
        let program = copy.build(patch, &Program { name: "conform", features: "" }, "dev")?;
        let begun = Instant::now();
        let output = Command::new(&program).args([role, "--builtin", "-o", "json"]).stderr(Stdio::null()).output();
        let output = output.with_context(|| format!("{}", program.display()))?;
        let broken = match output.status.code() {
            Some(0 | 1) => broken(&output.stdout)?,
            _ => bail!("{name}: the suite ended with {}", output.status),
        };
        eprintln!("=== {name}: {} rules broken, {:.1} s", broken.len(), begun.elapsed().as_secs_f64());
        killed += usize::from(!broken.is_empty());
        let told = if broken.is_empty() { "none".to_owned() } else { broken.join(", ") };
        table += &format!("| {name} | {told} |\n");
    }
    copy.restore()?;
    println!("{table}{killed} of {} are noticed", patches.len());
    Ok(killed * MUST.1 >= patches.len() * MUST.0)
}

/// Names of cases whose rule is broken.
fn broken(report: &[u8]) -> anyhow::Result<Vec<String>> {
    let report: Value = serde_json::from_slice(report).context("the suite's report")?;
    let cases = report["cases"].as_array().context("the suite's report has no cases")?;
    let broken = cases.iter().filter(|case| case.get("broken").is_some());
    Ok(broken.filter_map(|case| case["case"].as_str().map(str::to_owned)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mutant_is_a_change_of_sources_that_are_there() {
        mutants::all_apply("conform/images", 8);
        mutants::all_apply("conform/probes", 15);
        mutants::all_apply("conform/status", 12);
    }

    #[test]
    fn the_table_of_mutants_names_each_of_them() {
        let page = std::fs::read_to_string(workspace::root().join("docs/testing.md")).unwrap();
        // Of volumes there are none yet.
        let roles = ["images", "probes", "status"];
        let all = roles.into_iter().flat_map(|role| {
            let patches = mutants::patches(&format!("conform/{role}"), None).unwrap();
            patches.into_iter().map(move |patch| format!("{role}/{}", mutants::name(&patch)))
        });
        let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
        let told: Vec<&str> =
            rows.map(|(name, _)| name).filter(|n| ROLES.iter().any(|r| n.starts_with(&format!("{r}/")))).collect();
        assert_eq!(all.collect::<Vec<_>>(), told);
    }

    #[test]
    fn broken_rules_are_read_from_the_report() {
        let report = br#"{"cases": [{"case": "a"}, {"case": "b", "broken": "it was not so"}]}"#;
        assert_eq!(broken(report).unwrap(), ["b"]);
        assert!(broken(b"{}").is_err());
    }
}
