//! `bosun logs`: `/containerLogs` of the node, as it comes, without holding it in memory.

use std::cell::RefCell;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use futures::future::try_join_all;
use http_body_util::BodyExt;
use hyper::Method;
use hyper::body::Incoming;
use model::core::Pod;

use crate::args::{PodArg, SocketArg};
use crate::client::open;
use crate::target;

mod lines;
mod request;

use lines::Lines;
use request::{Rfc3339, Since};

/// What `bosun logs` takes.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    bosun logs web                                the log of the first container\n  \
    bosun logs web -c app -f --tail 20            the last 20 lines, and what comes\n  \
    bosun logs web -p                             the instance before the latest restart\n  \
    bosun logs web --since 10m --timestamps       the last ten minutes, with times\n  \
    bosun logs web --all-containers --prefix -f   everybody, each line with its writer\n\n\
    Exit code: 0, also when the reader of a pipe goes; 1 when a log cannot be had; 130 on Ctrl-C.")]
pub struct LogArgs {
    #[command(flatten)]
    pub(crate) socket: SocketArg,
    #[command(flatten)]
    pub(crate) pod: PodArg,
    /// Container; the pod's default one unless given.
    #[arg(short, long, conflicts_with = "all_containers")]
    pub(crate) container: Option<String>,
    /// Go on with what the container writes from now on, until it ends.
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// The instance before the latest restart.
    #[arg(short, long)]
    pub(crate) previous: bool,
    /// Only lines younger than this: 5s, 10m, 1h30m.
    #[arg(long, value_name = "DURATION", conflicts_with = "since_time")]
    pub(crate) since: Option<Since>,
    /// Only lines since then, e.g. 2026-01-31T08:00:00Z.
    #[arg(long, value_name = "RFC 3339")]
    pub(crate) since_time: Option<Rfc3339>,
    /// Only the last lines; -1: all.
    #[arg(long, value_name = "LINES", allow_negative_numbers = true, value_parser = clap::value_parser!(i64).range(-1..))]
    pub(crate) tail: Option<i64>,
    /// Begin each line with its time.
    #[arg(long)]
    pub(crate) timestamps: bool,
    /// At most this many bytes.
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(i64).range(1..))]
    pub(crate) limit_bytes: Option<i64>,
    /// Every container of the pod: one after another, with --follow all at once.
    #[arg(long)]
    pub(crate) all_containers: bool,
    /// Begin each line with the pod and container that wrote it.
    #[arg(long)]
    pub(crate) prefix: bool,
}

pub(crate) async fn run(args: &LogArgs) -> Result<ExitCode> {
    let mut stdout = io::stdout();
    let good = write_to(args, &mut stdout, &mut io::stderr()).await?;
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Answers `false` when the log of one container of several could not be had.
pub(crate) async fn write_to(args: &LogArgs, out: &mut impl Write, err: &mut impl Write) -> Result<bool> {
    let socket = &args.socket.socket;
    let pod = target::find(socket, &args.pod).await?;
    let done = if args.all_containers {
        every(socket, args, &pod, out, err).await
    } else {
        let choice = target::choose(&pod, args.container.as_deref());
        if let Some(note) = choice.note {
            let _nobody_reads = writeln!(err, "{note}");
        }
        one(socket, args, &pod, &choice.container, &RefCell::new(out)).await.map(|()| true)
    };
    match done {
        // Whoever read has had enough.
        Err(e) if is_broken_pipe(&e) => Ok(true),
        done => done,
    }
}

async fn every(socket: &Path, args: &LogArgs, pod: &Pod, out: &mut impl Write, err: &mut impl Write) -> Result<bool> {
    let out = RefCell::new(out);
    let names = target::all(pod);
    let mut good = true;
    let mut judge = |name: &str, result: Result<()>| match result {
        Err(e) if is_broken_pipe(&e) => Err(e),
        Err(e) => {
            good = false;
            let _nobody_reads = writeln!(err, "bosun: {name}: {e:#}");
            Ok(())
        }
        Ok(()) => Ok(()),
    };
    if args.follow {
        let out = &out;
        let all = names.iter().map(|name| async move {
            let result = one(socket, args, pod, name, out).await;
            // One broken pipe ends all: they share it.
            match result {
                Err(e) if is_broken_pipe(&e) => Err(e),
                result => Ok((name, result)),
            }
        });
        for (name, result) in try_join_all(all).await? {
            judge(name, result)?;
        }
    } else {
        for name in &names {
            judge(name, one(socket, args, pod, name, &out).await)?;
        }
    }
    Ok(good)
}

async fn one(socket: &Path, args: &LogArgs, pod: &Pod, container: &str, out: &RefCell<&mut impl Write>) -> Result<()> {
    let path = format!("{}?{}", target::endpoint("containerLogs", pod, Some(container)), request::query(args));
    let response = match open(socket, Method::GET, &path, String::new()).await {
        Ok(response) => response,
        Err(e) => return Err(target::explain(e, pod, container)),
    };
    let prefix = if args.prefix { format!("[pod/{}/{container}] ", model::pod::name(pod)) } else { String::new() };
    // Lines of one writer need no care; those of several must not be mixed within a line.
    let mut lines = (args.prefix || (args.all_containers && args.follow)).then(|| Lines::new(&prefix));
    copy(response.into_body(), &mut lines, out).await
}

async fn copy(mut body: Incoming, lines: &mut Option<Lines>, out: &RefCell<&mut impl Write>) -> Result<()> {
    let put = |bytes: &[u8]| -> io::Result<()> {
        let mut out = out.borrow_mut();
        out.write_all(bytes)?;
        out.flush()
    };
    while let Some(frame) = body.frame().await {
        let frame = frame.context("the daemon broke off the log")?;
        let Ok(bytes) = frame.into_data() else { continue };
        match lines {
            None => put(&bytes)?,
            Some(lines) => put(&lines.push(&bytes))?,
        }
    }
    if let Some(lines) = lines {
        put(&lines.rest())?;
    }
    Ok(())
}

pub(crate) fn is_broken_pipe(e: &anyhow::Error) -> bool {
    e.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe)
}
