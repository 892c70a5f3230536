//! `bosun manager`.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use clap::{Args, Subcommand};
use hyper::Method;
use model::Timestamp;
use server::local::{DifferenceLine, Done, ManagerLine, ShadowLine, SwapOrder};

use crate::args::{OutputArg, SocketArg};
use crate::client::{call, get, segment};
use crate::columns::{age, ago, now};
use crate::show::{Output, plain, print, structured, table};

/// What `bosun manager` takes.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    bosun manager list                                              who serves what\n  \
    bosun manager status probes                                     one of them: asks, refusals, history\n  \
    bosun manager swap probes --to unix:///run/acme/p.sock --dry-run  could it be done?\n  \
    bosun manager swap probes --to unix:///run/acme/p.sock --shadow   what would it answer? changes nothing\n  \
    bosun manager swap probes --to unix:///run/acme/p.sock            do it; it is on probation for 60 s\n  \
    bosun manager rollback probes                                   back to the one before\n  \
    bosun manager swap probes --to builtin                          back to the one that is built in\n\n\
    What is chosen here lasts until the daemon ends: its configuration (--manager, --bosun-config) says what is after that.\n\
    docs/replace-a-manager.md is the tutorial.")]
pub struct ManagerArgs {
    #[command(flatten)]
    pub(crate) socket: SocketArg,
    #[command(subcommand)]
    pub(crate) what: What,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum What {
    /// The managers that may be served by another process, and who serves them.
    List(OutputArg),
    /// How one of them stands, or all: probation, asks since the last change, refusals, history.
    Status {
        /// Its name, as in `bosun manager list`; all without.
        name: Option<String>,
        #[command(flatten)]
        output: OutputArg,
    },
    /// Give the place of one to another process, or back to the one that is built in, while pods run.
    Swap {
        /// Its name, as in `bosun manager list`.
        name: String,
        /// Who is to serve it: `unix:///PATH` or `builtin`.
        #[arg(long)]
        to: String,
        /// Only look whether it would do: who listens there, its contract, whether it takes the rows of this node.
        #[arg(long, conflicts_with = "shadow")]
        dry_run: bool,
        /// Change nothing: show it for as long as --probation says what is asked, and print where its answers and rows differ.
        /// What it does outside of bosun it does: probes of its own reach the pods, too.
        #[arg(long)]
        shadow: bool,
        /// How long it may lose the place again by itself, as in 60s or 5m [default: 60s].
        #[arg(long)]
        probation: Option<String>,
        /// After the probation: what happens while it is away, builtin, hold or fail [default: builtin].
        #[arg(long)]
        when_away: Option<String>,
        #[command(flatten)]
        output: OutputArg,
    },
    /// Give the place back to whoever had it before the last swap.
    Rollback {
        /// Its name, as in `bosun manager list`.
        name: String,
        #[command(flatten)]
        output: OutputArg,
    },
}

/// How often a candidate that is shown what is asked is looked at.
const LOOKS: Duration = Duration::from_secs(1);

pub(crate) async fn run(args: &ManagerArgs) -> Result<()> {
    let socket = &args.socket.socket;
    match &args.what {
        What::List(o) => list(socket, o.output).await,
        What::Status { name, output } => status(socket, name.as_deref(), output.output).await,
        What::Swap { name, to, dry_run, shadow, probation, when_away, output } => {
            let order = SwapOrder {
                to: to.clone(),
                dry_run: *dry_run,
                shadow: *shadow,
                probation: probation.clone(),
                when_away: when_away.clone(),
            };
            ask_for(socket, name, "swap", serde_json::to_string(&order)?, output.output.filter(|_| !*shadow)).await?;
            if *shadow { watch(socket, name, output.output).await } else { Ok(()) }
        }
        What::Rollback { name, output } => ask_for(socket, name, "rollback", String::new(), output.output).await,
    }
}

fn path_of(name: &str) -> String {
    format!("/v1/managers/{}", segment(name))
}

async fn ask_for(socket: &Path, name: &str, verb: &str, body: String, output: Option<Output>) -> Result<()> {
    let path = format!("{}/{verb}", path_of(name));
    let done: Done = serde_json::from_slice(&call(socket, Method::POST, &path, body).await?)?;
    if !structured(output, &done)? {
        done.lines.iter().for_each(|line| print(&plain(line)));
    }
    Ok(())
}

async fn list(socket: &Path, output: Option<Output>) -> Result<()> {
    let all: Vec<ManagerLine> = get(socket, "/v1/managers").await?;
    if structured(output, &all)? {
        return Ok(());
    }
    let wide = output == Some(Output::Wide);
    let mut header = vec!["NAME", "SERVED BY", "SINCE", "CHOSEN BY", "STATE"];
    if wide {
        header.extend(["ROLE", "PROGRAM", "AFTER A RESTART"]);
    }
    let row = |line: &ManagerLine| {
        let mut row = vec![
            line.name.clone(),
            line.served_by.clone(),
            age(now().nanos_since(Timestamp(line.since_ns))),
            line.chosen_by.clone(),
            state(line),
        ];
        if wide {
            row.extend([line.role.clone(), plain(line.program.as_deref().unwrap_or("-")), line.after_restart.clone()]);
        }
        row
    };
    table(&header, all.iter().map(row).collect());
    Ok(())
}

/// One word or two for how it stands.
fn state(line: &ManagerLine) -> String {
    match line.probation_left_ms {
        Some(left) => format!("on probation, {} s left", left.div_ceil(1000)),
        None if line.served_by != line.chosen => format!("{} is away", line.chosen),
        None if line.away.is_some() => "away".to_owned(),
        None => "in force".to_owned(),
    }
}

async fn status(socket: &Path, name: Option<&str>, output: Option<Output>) -> Result<()> {
    let all: Vec<ManagerLine> = match name {
        Some(name) => vec![get(socket, &path_of(name)).await?],
        None => get(socket, "/v1/managers").await?,
    };
    let is_done = match (name, &all[..]) {
        (Some(_), [one]) => structured(output, one)?,
        _ => structured(output, &all)?,
    };
    if !is_done {
        for (n, line) in all.iter().enumerate() {
            if n > 0 {
                print("");
            }
            screen(line).iter().for_each(|text| print(text));
            asks(line);
            history(line);
            if let Some(shadow) = &line.shadow {
                print("");
                shown(shadow).iter().for_each(|text| print(text));
                differences(&shadow.differences);
            }
        }
    }
    Ok(())
}

fn screen(line: &ManagerLine) -> Vec<String> {
    let since = Timestamp(line.since_ns);
    let mut rows = vec![
        ("Name", format!("{} ({})", line.name, line.role)),
        ("Served by", line.served_by.clone()),
        ("Since", ago(since.0, now())),
        ("State", state(line)),
        ("Chosen", format!("{} (by {})", line.chosen, line.chosen_by)),
        ("After a restart", line.after_restart.clone()),
    ];
    rows.extend(line.program.clone().map(|program| ("Program", program)));
    rows.extend(line.away.clone().map(|why| ("Away", why)));
    rows.extend(line.before.clone().map(|before| ("Rollback", format!("to {before}"))));
    rows.push(("Remembered", format!("{} messages, told to whoever takes the place", line.remembered)));
    if let Some(r) = &line.refused {
        let words = format!("{} rows, {} messages, {} answers, {} keys", r.rows, r.calls, r.answers, r.keys);
        rows.push(("Refused", words));
    }
    rows.into_iter().map(|(key, value)| format!("{:<17}{}", format!("{key}:"), plain(&value))).collect()
}

fn asks(line: &ManagerLine) {
    let ms = |us: Option<u64>| us.map_or_else(|| "-".to_owned(), |us| format!("{}.{:03}", us / 1000, us % 1000));
    let row = |a: &server::local::AskedLine| {
        let counts = [a.answered, a.failed, a.expired, a.lost].map(|n| n.to_string());
        let times = [ms(a.half_within_us), ms(a.most_within_us)];
        [format!("  {}", a.message)].into_iter().chain(counts).chain(times).collect()
    };
    print("\nAsks since then:");
    let header = ["  MESSAGE", "ANSWERED", "FAILED", "EXPIRED", "LOST", "P50 MS", "P99 MS"];
    table(&header, line.asked.iter().map(row).collect());
}

fn history(line: &ManagerLine) {
    print("\nHistory, the latest last:");
    if line.history.is_empty() {
        return print("  none");
    }
    let row = |h: &server::local::HistoryLine| {
        vec![format!("  {}", age(now().nanos_since(Timestamp(h.at_ns)))), plain(&h.text)]
    };
    table(&["  AGO", "WHAT AND WHY"], line.history.iter().map(row).collect());
}

fn shown(shadow: &ShadowLine) -> Vec<String> {
    let ended = shadow.ended.as_deref().map(|why| format!(", ended: {}", plain(why))).unwrap_or_default();
    let state = if shadow.running { "is shown what is asked" } else { "was shown what was asked" };
    vec![
        format!("Shadow:          {} {state}{ended}", shadow.candidate),
        format!(
            "Compared:        {} answers, {} the same, {} not shown; rows: {} of {} the same",
            shadow.compared, shadow.same, shadow.passed_over, shadow.rows.0, shadow.rows.1
        ),
    ]
}

fn differences(all: &[DifferenceLine]) {
    if all.is_empty() {
        return print("No differences.");
    }
    let row = |d: &DifferenceLine| {
        let texts = [&d.of, &d.at, &d.ours, &d.theirs].map(|text| plain(text));
        texts.into_iter().chain([d.count.to_string()]).collect()
    };
    table(&["OF", "AT", "IN FORCE", "CANDIDATE", "TIMES"], all.iter().map(row).collect());
}

/// Prints each difference when it comes, until the candidate is shown no more.
async fn watch(socket: &Path, name: &str, output: Option<Output>) -> Result<()> {
    let mut told = BTreeSet::new();
    loop {
        tokio::time::sleep(LOOKS).await;
        let line: ManagerLine = get(socket, &path_of(name)).await?;
        let Some(shadow) = line.shadow else { anyhow::bail!("the daemon shows nobody what is asked of {name}") };
        if output.is_none() {
            for d in &shadow.differences {
                if told.insert((d.of.clone(), d.at.clone())) {
                    print(&plain(&format!("{} {}: {} | {}", d.of, d.at, d.ours, d.theirs)));
                }
            }
        }
        if !shadow.running {
            if !structured(output, &shadow)? {
                shown(&shadow).iter().for_each(|text| print(text));
                differences(&shadow.differences);
            }
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests;
