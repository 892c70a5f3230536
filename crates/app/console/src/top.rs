//! `bosun top`: pods and actors, live.

use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::{Args, ValueEnum};

use crate::args::SocketArg;
use crate::show::{Output, print, structured};

mod frame;
mod sample;
mod screen;
mod view;

use sample::Sample;
use view::{Sort, View};

/// Between the two samples that make a rate.
const APART: Duration = Duration::from_secs(1);

/// What `bosun top` takes.
#[derive(Debug, Args)]
#[command(after_help = "Keys:\n  \
    q, Ctrl-C  end                c  by CPU (actors: by time in turns)\n  \
    Tab        pods/actors/both   m  by memory (actors: by mailbox)\n  \
    j k        scroll             r  by restarts\n  \
    Space      now                n  by name\n\n\
    Examples:\n  \
    bosun top                     the live view\n  \
    bosun top actors -s memory    actors, fullest mailbox first\n  \
    bosun top pods --once         one table, as `bosun top pods | cat` gives it\n  \
    bosun top -o json             the figures, for a program\n\n\
    CPU is in thousandths of a core, averaged by the daemon over its last samples; where it has none, over one second.\n\
    Memory is the working set: what counts towards a limit.")]
pub struct TopArgs {
    #[command(flatten)]
    pub(crate) socket: SocketArg,
    /// What to show.
    #[arg(value_enum, default_value_t)]
    pub(crate) what: What,
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

/// What to show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum What {
    /// Pods and actors.
    #[default]
    All,
    /// Pods.
    Pods,
    /// Actors.
    Actors,
}

impl What {
    fn pods(self) -> bool {
        self != What::Actors
    }

    fn actors(self) -> bool {
        self != What::Pods
    }

    fn next(self) -> Self {
        match self {
            What::All => What::Pods,
            What::Pods => What::Actors,
            What::Actors => What::All,
        }
    }
}

pub(crate) async fn run(args: &TopArgs) -> Result<ExitCode> {
    let live = !args.once && args.output.is_none() && std::io::stdout().is_terminal() && std::io::stdin().is_terminal();
    if live {
        return screen::run(args).await;
    }
    let view = once(args).await?;
    if !structured(args.output, &view)? {
        for line in frame::page(&view, args.what) {
            print(&line);
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// One view. A second sample is taken only when something needs a rate.
pub(crate) async fn once(args: &TopArgs) -> Result<View> {
    let before = Sample::take(&args.socket.socket, args.what).await?;
    let mut view = if args.what.actors() || before.lacks_rates() {
        tokio::time::sleep(APART).await;
        let after = Sample::take(&args.socket.socket, args.what).await?;
        View::of(Some(&before), &after, args.namespace.as_deref())
    } else {
        View::of(None, &before, args.namespace.as_deref())
    };
    view.sort(args.sort);
    Ok(view)
}
