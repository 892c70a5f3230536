//! `conform ROLE`: does a manager keep its contract? `cargo xtask conform` builds and runs it.

#![forbid(unsafe_code)]

use std::ffi::OsString;
use std::io::Write as _;
use std::path::PathBuf;

use std::process::ExitCode;
use std::sync::Arc;

use clap::{Parser, ValueEnum};
use conform::{
    Broken, Case, Choice, Elsewhere, Report, Subject, Way, images, ours, play, probes, reach, status, volumes,
};
use contract::{ImageManager, ProbeManager, Role, StatusManager, VolumeManager};
use model::unix_address::UnixAddress;

/// Tries a manager against the contract of its role, and says which rules it keeps. Ends with 1 when one is broken, with 2 when
/// nobody is there to be tried.
#[derive(Parser)]
#[command(name = "conform", disable_help_subcommand = true)]
struct Cli {
    /// Which contract.
    role: Kind,
    #[command(flatten)]
    whom: Whom,
    /// With --at: where that process looks for the runtime's image service. The suite serves one there, unless somebody
    /// does already.
    #[arg(long, value_name = "unix:///PATH", value_parser = UnixAddress::parse, requires = "at")]
    runtime_at: Option<UnixAddress>,
    /// With --at: which folder is that process's root directory of the node. The suite refuses one that has pods.
    #[arg(long, value_name = "PATH", requires = "at")]
    root_dir: Option<PathBuf>,
    /// Only cases with this in their name.
    #[arg(long, value_name = "PART")]
    only: Option<String>,
    /// Only cases that every manager of the role must pass, however little it does beside.
    #[arg(long)]
    core: bool,
    /// Only says what the contract's hash is and which cases there are, with the rule of each.
    #[arg(long)]
    list: bool,
    /// `json`: everything, for programs.
    #[arg(short, long, value_enum, default_value = "table")]
    output: Output,
}

#[derive(clap::Args)]
#[group(multiple = false)]
struct Whom {
    /// bosun's own, in this process. The default.
    #[arg(long)]
    builtin: bool,
    /// A process that runs already. It should serve nobody else meanwhile; where a manager should be killed, the connection is cut.
    #[arg(long, value_name = "unix:///PATH", value_parser = UnixAddress::parse)]
    at: Option<UnixAddress>,
    /// A program with its words, which is started for each case with `--at unix:///PATH` behind them, and killed.
    #[arg(long, value_name = "PROGRAM", num_args = 1.., allow_hyphen_values = true)]
    run: Vec<OsString>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Kind {
    Images,
    Probes,
    Status,
    Volumes,
}

#[derive(Clone, Copy, ValueEnum)]
enum Output {
    Table,
    Json,
}

fn main() -> ExitCode {
    let filter = tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| "off".into());
    let _is_the_first = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).try_init();
    let cli = Cli::parse();
    let found = match cli.role {
        Kind::Images => suite::<ImageManager>(&cli, &images::cases(), ours::images),
        Kind::Probes => suite::<ProbeManager>(&cli, &probes::cases(), ours::probes),
        Kind::Status => suite::<StatusManager>(&cli, &status::cases(), ours::status),
        Kind::Volumes => suite::<VolumeManager>(&cli, &volumes::cases(), ours::volumes),
    };
    match found {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(why) => {
            let _nobody_reads = writeln!(std::io::stderr(), "error: {why}");
            ExitCode::from(2)
        }
    }
}

/// Plays the suite of a role; how many rules are broken.
fn suite<R: Role>(cli: &Cli, cases: &[Case<R>], builtin: fn() -> Arc<dyn Subject<R>>) -> Result<usize, String>
where
    Elsewhere: Subject<R>,
{
    if cli.list {
        let wide = cases.iter().map(|c| c.name.len()).max().unwrap_or(0);
        let line = |c: &Case<R>| {
            format!("{:wide$}  {}  {}: {}\n", c.name, if c.is_core { "core" } else { "    " }, c.source, c.rule)
        };
        let contract = contract::seam::hash(&R::DECLARATION);
        say(&format!("{}, contract {contract}\n", R::NAME))?;
        say(&cases.iter().map(line).collect::<String>())?;
        return Ok(0);
    }
    let subject: Arc<dyn Subject<R>> = match (&cli.whom.at, cli.whom.run.as_slice()) {
        (Some(address), _) => {
            let (address, runtime, root_dir) = (address.clone(), cli.runtime_at.clone(), cli.root_dir.clone());
            let elsewhere = Elsewhere(Way::At { address, runtime, root_dir });
            elsewhere.check().map_err(|Broken(why)| why)?;
            Arc::new(elsewhere)
        }
        (None, []) => builtin(),
        (None, words) => Arc::new(Elsewhere(Way::Run(words.to_vec()))),
    };
    reach(&subject).map_err(|Broken(why)| format!("no case was played, as {} does not come: {why}", subject.name()))?;
    let report: Report = play(cases, &subject, &Choice { only: cli.only.clone(), core: cli.core });
    if report.cases.is_empty() {
        let part = cli.only.as_deref().unwrap_or_default();
        return Err(format!(
            "--only {part}: no case that can be played so has this in its name; --list says which there are"
        ));
    }
    match cli.output {
        Output::Table => say(&report.table())?,
        Output::Json => say(&format!("{}\n", report.json()))?,
    }
    Ok(report.broken())
}

fn say(text: &str) -> Result<(), String> {
    std::io::stdout().write_all(text.as_bytes()).map_err(|e| format!("stdout: {e}"))
}
