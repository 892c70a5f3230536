//! `bosun exec` and `bosun attach`: standard streams to and from a container.

use std::io::{self, IsTerminal};
use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use model::core::Pod;
use streaming::client::{ClientError, Outcome, Session};
use terminal::{Ending, Raw, Resizes, Writer};
use tokio::sync::mpsc::Receiver;

use crate::args::{PodArg, SocketArg};
use crate::client::{Refused, dial, segment};
use crate::target::{self, choose, endpoint};

/// What a shell gives for a program that a closed pipe has ended.
const BROKEN_PIPE: u8 = 141;

/// What `bosun exec` takes.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    bosun exec web -- ls /                        output here, exit code too\n  \
    bosun exec -it web -c app -- sh               a shell\n  \
    tar c . | bosun exec -i web -- tar x -C /tmp  files into a container\n\n\
    Exit code: that of the command; 1 when it could not be run; 141 when the reader of a pipe has gone; 128+N on signal N.")]
pub struct ExecArgs {
    #[command(flatten)]
    pub(crate) socket: SocketArg,
    #[command(flatten)]
    pub(crate) pod: PodArg,
    #[command(flatten)]
    pub(crate) streams: StreamArgs,
    /// The command, not run by a shell.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

/// What `bosun attach` takes.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    bosun attach web              what the container writes from now on\n  \
    bosun attach -it web -c app   and a terminal, if the container has one (`tty: true`, `stdin: true` in its spec)\n\n\
    Exit code: 0 when the container's streams end; 1 when it could not be attached to; 128+N on signal N.")]
pub struct AttachArgs {
    #[command(flatten)]
    pub(crate) socket: SocketArg,
    #[command(flatten)]
    pub(crate) pod: PodArg,
    #[command(flatten)]
    pub(crate) streams: StreamArgs,
}

/// What both take.
#[derive(Clone, Debug, Args)]
pub(crate) struct StreamArgs {
    /// Container; the pod's default one unless given.
    #[arg(short, long)]
    pub(crate) container: Option<String>,
    /// Pass on what is typed or piped in here.
    #[arg(short = 'i', long)]
    pub(crate) stdin: bool,
    /// A terminal; with -i each key goes there as it is typed, Ctrl-C too.
    #[arg(short, long)]
    pub(crate) tty: bool,
    /// Say nothing on stderr of one's own.
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// The streams of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SessionStreams {
    pub(crate) stdin: bool,
    pub(crate) tty: bool,
}

/// What there is on this side.
#[derive(Debug)]
pub(crate) struct LocalStreams {
    pub(crate) stdin: Option<Receiver<io::Result<Vec<u8>>>>,
    pub(crate) stdout: Writer,
    pub(crate) stderr: Writer,
}

pub(crate) async fn exec(args: &ExecArgs) -> Result<ExitCode> {
    let pod = target::find(&args.socket.socket, &args.pod).await?;
    let choice = choose(&pod, args.streams.container.as_deref());
    let mut notes: Vec<String> = choice.note.into_iter().collect();
    let wanted = exec_streams(&args.streams, io::stdin().is_terminal(), &mut notes);
    print_notes(&args.streams, &notes);
    let path = exec_path(&pod, &choice.container, wanted, &args.command);
    let session = match open(&args.socket.socket, &path).await {
        Ok(session) => session,
        Err(e) => return Err(target::explain(e, &pod, &choice.container)),
    };
    in_terminal(session, wanted, args.streams.quiet).await
}

pub(crate) async fn attach(args: &AttachArgs) -> Result<ExitCode> {
    let pod = target::find(&args.socket.socket, &args.pod).await?;
    let choice = choose(&pod, args.streams.container.as_deref());
    let mut notes: Vec<String> = choice.note.into_iter().collect();
    let (wanted, path) = attach_path(&pod, &choice.container, &args.streams, io::stdin().is_terminal(), &mut notes);
    if wanted.tty && wanted.stdin {
        notes.push("If you don't see a command prompt, try pressing enter.".to_owned());
    }
    print_notes(&args.streams, &notes);
    let session = match open(&args.socket.socket, &path).await {
        Ok(session) => session,
        Err(e) => return Err(target::explain(e, &pod, &choice.container)),
    };
    in_terminal(session, wanted, args.streams.quiet).await
}

fn print_notes(args: &StreamArgs, notes: &[String]) {
    for note in notes.iter().filter(|_| !args.quiet) {
        eprintln!("{note}");
    }
}

/// A terminal there needs one here when keys are to go to it.
fn exec_streams(args: &StreamArgs, typed: bool, notes: &mut Vec<String>) -> SessionStreams {
    let tty = args.tty && (typed || !args.stdin);
    if args.tty && !tty {
        notes.push("Unable to use a TTY - input is not a terminal or the right kind of file".to_owned());
    }
    SessionStreams { stdin: args.stdin, tty }
}

fn exec_path(pod: &Pod, container: &str, wanted: SessionStreams, command: &[String]) -> String {
    let mut path = endpoint("exec", pod, Some(container));
    let words = command.iter().map(|word| format!("command={}", segment(word)));
    path.push('?');
    path.push_str(&words.collect::<Vec<_>>().join("&"));
    path.push_str(&streams(wanted));
    path
}

/// Attaching, the container's spec says whether there is a terminal and whether it reads.
fn attach_path(
    pod: &Pod,
    container: &str,
    args: &StreamArgs,
    typed: bool,
    notes: &mut Vec<String>,
) -> (SessionStreams, String) {
    let all = model::pod::init_containers(pod).iter().chain(model::pod::regular_containers(pod));
    let of_spec = all.map(|c| (&c.name, c.stdin, c.tty)).find(|(name, ..)| *name == container);
    let debug = || pod.spec.iter().flat_map(|s| s.ephemeral_containers.iter().flatten());
    let of_debug = debug().map(|c| (&c.name, c.stdin, c.tty)).find(|(name, ..)| *name == container);
    let spec = of_spec.or(of_debug).map(|(_, stdin, tty)| (stdin == Some(true), tty == Some(true)));
    // An unknown container is the daemon's to refuse.
    let (reads, has_tty) = spec.unwrap_or((true, args.tty));
    if args.stdin && !reads {
        notes.push(format!("container {container:?} reads no input (`stdin` in its spec is not true): -i is left out"));
    }
    if args.tty && !has_tty {
        notes.push(format!("Unable to use a TTY - container {container} did not allocate one"));
    }
    let stdin = args.stdin && reads;
    // With a terminal there and none here its output is still that of a terminal.
    let mut path = endpoint("attach", pod, Some(container));
    path.push('?');
    path.push_str(streams(SessionStreams { stdin, tty: has_tty }).trim_start_matches('&'));
    (SessionStreams { stdin, tty: args.tty && has_tty && (typed || !stdin) }, path)
}

/// The parameters of a kubelet; with a terminal there is no stderr of its own.
fn streams(wanted: SessionStreams) -> String {
    let input = if wanted.stdin { "&input=1" } else { "" };
    let rest = if wanted.tty { "&output=1&tty=1" } else { "&output=1&error=1" };
    format!("{input}{rest}")
}

async fn open(socket: &Path, path: &str) -> Result<Session> {
    let opened = streaming::client::exec(dial(socket).await?, path).await;
    opened.map_err(|e| refused(e, path))
}

/// The daemon's own words.
pub(crate) fn refused(e: ClientError, path: &str) -> anyhow::Error {
    match e {
        ClientError::Refused { status, body } => {
            let status = hyper::StatusCode::from_u16(status).unwrap_or_default();
            Refused::new(status, path, body.as_bytes()).into()
        }
        e => e.into(),
    }
}

/// Runs a session on this process' own streams.
async fn in_terminal(session: Session, wanted: SessionStreams, quiet: bool) -> Result<ExitCode> {
    let local = LocalStreams {
        stdin: wanted.stdin.then(|| terminal::read(io::stdin())),
        stdout: terminal::write(io::stdout()),
        stderr: terminal::write(io::stderr()),
    };
    if !wanted.tty {
        // Ctrl-C ends this program, as it should, and with it the session.
        return Ok(exit_code(carry(session, local).await, quiet));
    }
    let (mut ending, mut resizes) = (Ending::listen()?, Resizes::listen()?);
    let raw = if wanted.stdin { Some(Raw::enter(io::stdin())?) } else { None };
    let resize = session.resize.clone();
    let follow_size = async {
        loop {
            if let Some(size) = terminal::size() {
                resize.set(size.columns, size.rows).await;
            }
            resizes.next().await;
        }
    };
    let ended = tokio::select! {
        ended = carry(session, local) => ended,
        code = ending.next() => return Ok(ExitCode::from(code)),
        () = follow_size => unreachable!("sizes are followed for ever"),
    };
    drop(raw);
    Ok(exit_code(ended, quiet))
}

/// How a session ended for this side.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Told(Outcome),
    /// Output could not be written here.
    Broken(io::ErrorKind, String),
}

/// Carries bytes until the session ends. Input's end is passed on; output is written whole before this returns.
pub(crate) async fn carry(session: Session, local: LocalStreams) -> Ended {
    let Session { stdin, stdout, stderr, resize: _, exit } = session;
    let inward = async {
        // Without input the way stays as it is: the session is not ended by it.
        if let Some(mut typed) = local.stdin {
            while let Some(Ok(piece)) = typed.recv().await {
                if !stdin.send(piece.into()).await {
                    break;
                }
            }
            stdin.finish().await;
        }
        std::future::pending::<()>().await;
    };
    let outward = async {
        let (out, err, outcome) = tokio::try_join!(write(stdout, local.stdout), write(stderr, local.stderr), async {
            Ok(exit.wait().await)
        })?;
        out.finish().await?;
        err.finish().await?;
        Ok(outcome)
    };
    let ended: io::Result<Outcome> = tokio::select! {
        ended = outward => ended,
        () = inward => unreachable!("input is passed on for ever"),
    };
    match ended {
        Ok(outcome) => Ended::Told(outcome),
        Err(e) => Ended::Broken(e.kind(), e.to_string()),
    }
}

async fn write(mut from: Receiver<bytes::Bytes>, to: Writer) -> io::Result<Writer> {
    while let Some(piece) = from.recv().await {
        if !to.send(piece.into()).await {
            to.finish().await?;
            return Err(io::ErrorKind::BrokenPipe.into());
        }
    }
    Ok(to)
}

/// The exit code of a shell for it; what is no exit code of the command is said.
pub(crate) fn exit_code(ended: Ended, quiet: bool) -> ExitCode {
    let (code, words) = code_and_words(ended);
    if let Some(words) = words.filter(|_| !quiet) {
        eprintln!("{words}");
    }
    ExitCode::from(code)
}

fn code_and_words(ended: Ended) -> (u8, Option<String>) {
    match ended {
        Ended::Told(Outcome::Success) => (0, None),
        Ended::Told(Outcome::Exit(code)) => {
            let words = format!("command terminated with exit code {code}");
            (u8::try_from(code).unwrap_or(1), Some(words))
        }
        Ended::Told(Outcome::Failed(why)) => (1, Some(format!("bosun: {why}"))),
        Ended::Broken(io::ErrorKind::BrokenPipe, _) => (BROKEN_PIPE, None),
        Ended::Broken(_, why) => (1, Some(format!("bosun: output: {why}"))),
    }
}

#[cfg(test)]
mod tests;
