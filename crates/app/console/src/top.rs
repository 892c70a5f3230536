//! `bosun top`: pods and actors, live.

use std::convert::Infallible;
use std::io::{IsTerminal, Write, stdout};
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use terminal::Size;
use tokio::time::{sleep, timeout};

use crate::args::SocketArg;
use crate::show::{Output, print, structured};

mod page;
mod sample;
mod view;

use sample::{Sample, Section};
use view::{Sort, View};

/// How long a look may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Between the two samples that make a rate.
const APART: Duration = Duration::from_secs(1);

/// What `bosun top` takes.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    bosun top                     pods and actors, drawn anew every two seconds until Ctrl-C\n  \
    bosun top pods -i 10          pods only, every ten seconds\n  \
    bosun top actors -s memory    actors, fullest mailbox first\n  \
    bosun top pods --once         one table, as `bosun top pods | cat` gives it\n  \
    bosun top -o json             the figures, for a program\n\n\
    CPU is in thousandths of a core, averaged by the daemon over its last samples; where it has none, between two looks.\n\
    Memory is the working set: what counts towards a limit.")]
pub struct TopArgs {
    #[command(flatten)]
    pub(crate) socket: SocketArg,
    /// What to show.
    #[arg(value_enum, default_value_t)]
    pub(crate) what: Section,
    /// Only pods of this namespace.
    #[arg(short, long)]
    pub(crate) namespace: Option<String>,
    /// What comes first.
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) sort: Sort,
    /// Seconds between looks.
    #[arg(short, long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub(crate) interval: u64,
    /// One table, then the end.
    #[arg(long)]
    pub(crate) once: bool,
    /// Form of the answer; implies --once.
    #[arg(short, long)]
    pub(crate) output: Option<Output>,
}

pub(crate) async fn run(args: &TopArgs) -> Result<()> {
    if !args.once && args.output.is_none() && stdout().is_terminal() {
        return watch(args).await.map(|never| match never {});
    }
    let view = once(args).await?;
    if !structured(args.output, &view)? {
        page::lines_of(&view, args.what, usize::MAX).iter().for_each(|line| print(line));
    }
    Ok(())
}

/// Draws again and again, as `watch` does, until a signal ends the program.
async fn watch(args: &TopArgs) -> Result<Infallible> {
    let (mut view, mut before, mut pause) = (View::default(), None, APART);
    loop {
        // A daemon that hangs is told of, and one that has gone is waited for; one that was never there is a mistake.
        let look = timeout(PATIENCE, Sample::gather(&args.socket.socket, args.what)).await;
        match look.context("the daemon does not answer").flatten() {
            Ok(sample) => {
                view = View::of(before.as_ref(), &sample, args.namespace.as_deref());
                view.sort(args.sort);
                before = Some(sample);
            }
            Err(e) if before.is_none() => return Err(e),
            Err(e) => view.notes = vec![format!("old figures: {e:#}")],
        }
        let size = terminal::size().unwrap_or(Size { columns: 80, rows: 24 });
        stdout().write_all(page::screen(&view, args.what, size).as_bytes())?;
        stdout().flush()?;
        sleep(pause).await;
        pause = Duration::from_secs(args.interval);
    }
}

/// One view. A second sample is taken only when something needs a rate.
pub(crate) async fn once(args: &TopArgs) -> Result<View> {
    let before = Sample::gather(&args.socket.socket, args.what).await?;
    let mut view = if args.what.actors() || before.lacks_rates() {
        sleep(APART).await;
        let after = Sample::gather(&args.socket.socket, args.what).await?;
        View::of(Some(&before), &after, args.namespace.as_deref())
    } else {
        View::of(None, &before, args.namespace.as_deref())
    };
    view.sort(args.sort);
    Ok(view)
}
