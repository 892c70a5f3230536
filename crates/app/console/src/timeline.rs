//! `bosun timeline`.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use pod_history::Timeline;

use crate::args::{PodArg, SocketArg};
use crate::client::get;
use crate::show::{Output, print, structured};
use crate::target::path_below;

mod html;
mod scale;
mod text;

/// Columns where the output is no terminal.
const COLUMNS: u16 = 100;

/// What `bosun timeline` takes.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    bosun timeline web-0                  bars as wide as the terminal\n  \
    bosun timeline shop/web-0 -o json     begin and end of each bar, nanoseconds since the epoch\n  \
    bosun timeline web-0 --html life.html one page without anything from outside, to keep or to send\n\n\
    Bars: = done, x failed, ~ under way, ? nobody knows how it ended, | a moment. `x5` says how often.\n\
    Stretches in which nothing changes are drawn shorter when they would leave no room for the rest.\n\
    The node keeps the latest 200 entries of each pod, also over restarts of the daemon.")]
pub struct TimelineArgs {
    #[command(flatten)]
    pub(crate) socket: SocketArg,
    #[command(flatten)]
    pub(crate) pod: PodArg,
    /// Form of the answer.
    #[arg(short, long, conflicts_with = "html")]
    pub(crate) output: Option<Output>,
    /// Write a page of its own to this file.
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
}

pub(crate) async fn run(args: &TimelineArgs) -> Result<()> {
    let life: Timeline = get(&args.socket.socket, &path_below("/v1/timeline", &args.pod)).await?;
    if let Some(file) = &args.html {
        std::fs::write(file, html::page(&life)).with_context(|| format!("cannot write {}", file.display()))?;
        print(&format!("{} is written", file.display()));
        return Ok(());
    }
    if !structured(args.output, &life)? {
        let columns = terminal::size().map_or(COLUMNS, |size| size.columns);
        text::lines(&life, columns.into()).iter().for_each(|line| print(line));
    }
    Ok(())
}

#[cfg(test)]
pub(crate) mod tests;
