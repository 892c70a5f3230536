//! `bosun logs`: `/containerLogs` of the node, as it comes, without holding it in memory.

use std::cell::RefCell;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use futures::future::try_join_all;
use http_body_util::BodyExt;
use hyper::Method;
use hyper::body::Incoming;
use model::core::Pod;

use crate::client::open;
use crate::target;

mod lines;
mod request;

use lines::Lines;
pub(crate) use request::LogArgs;

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
