//! Exec and attach: streams of a client, carried to a process and back (`v4.channel.k8s.io`).

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use pod_supervisor::wire::{Answer, Request};
use serde::Deserialize;
use serde_json::json;
use spdy::{Incoming, Receiver, Sender};
use tokio::io::Interest;
use tokio::net::UnixListener;

use super::fd::{self, Fd};
use crate::error::{At, Done, RuntimeError};
use crate::exec;
use crate::runtime::{Runtime, new_id};
use crate::sessions::Command;
use crate::supervisor::{Line, SupervisorError, ask, checked};

/// How long a client may take to open its streams (as Go's streaming server has it).
const OPEN: Duration = Duration::from_secs(30);
/// How long output is waited for after the process ended.
const DRAIN: Duration = Duration::from_secs(1);
/// Bytes of a message with a terminal's size.
const MAX_SIZE: usize = 4096;

/// The client's streams.
#[derive(Default)]
struct Client {
    error: Option<Sender>,
    stdin: Option<Receiver>,
    stdout: Option<Sender>,
    stderr: Option<Sender>,
    resize: Option<Receiver>,
    /// Halves that are not used: a stream is over when both are gone.
    held: (Vec<Sender>, Vec<Receiver>),
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Size {
    width: u16,
    height: u16,
}

impl Client {
    /// Waits for all streams that go with the command.
    async fn open(command: &Command, incoming: &mut Incoming) -> Option<Self> {
        let wanted = [true, command.stdin, command.stdout, command.stderr && !command.tty, command.tty];
        let wanted = wanted.into_iter().filter(|w| *w).count();
        let mut client = Self::default();
        let collect = async {
            for _ in 0..wanted {
                let (headers, stream) = incoming.next().await?;
                let (sender, receiver) = stream.split();
                match headers.get("streamtype").map(String::as_str) {
                    Some("stdin") => (client.stdin, _) = (Some(receiver), client.held.0.push(sender)),
                    Some("resize") => (client.resize, _) = (Some(receiver), client.held.0.push(sender)),
                    Some("stdout") => (client.stdout, _) = (Some(sender), client.held.1.push(receiver)),
                    Some("stderr") => (client.stderr, _) = (Some(sender), client.held.1.push(receiver)),
                    Some("error") => (client.error, _) = (Some(sender), client.held.1.push(receiver)),
                    _ => return None,
                }
            }
            Some(())
        };
        tokio::time::timeout(OPEN, collect).await.ok()??;
        client.error.is_some().then_some(client)
    }
}

/// `metav1.Status` of an end.
fn status(end: Done<i32>) -> Bytes {
    let failure = |message: String, reason: &str, causes| json!({"metadata": {}, "status": "Failure", "message": message, "reason": reason, "details": {"causes": causes}});
    let status = match end {
        Ok(0) => json!({"metadata": {}, "status": "Success"}),
        Ok(code) => failure(
            format!("command terminated with non-zero exit code: exit status {code}"),
            "NonZeroExitCode",
            json!([{"reason": "ExitCode", "message": code.to_string()}]),
        ),
        Err(e) => failure(e.to_string(), "InternalError", json!([])),
    };
    Bytes::from(status.to_string())
}

/// Serves one client.
pub(super) async fn serve(rt: &Arc<Runtime>, command: Command, mut incoming: Incoming) {
    let Some(mut client) = Client::open(&command, &mut incoming).await else { return };
    let error = client.error.take();
    let end = run(rt, &command, &mut client).await;
    if let Some(mut error) = error {
        // The client may be gone.
        let _ = error.send(status(end)).await;
        let _ = error.finish().await;
    }
    for sender in [client.stdout.as_mut(), client.stderr.as_mut()].into_iter().flatten() {
        let _ = sender.finish().await;
    }
    for sender in &mut client.held.0 {
        let _ = sender.finish().await;
    }
    // Streams that are dropped are reset: they are kept until the client has closed.
    while incoming.next().await.is_some() {}
}

/// Our ends of what a process has.
#[derive(Default)]
struct Ends {
    stdin: Option<Fd>,
    stdout: Option<Fd>,
    stderr: Option<Fd>,
    terminal: Option<Fd>,
}

async fn run(rt: &Arc<Runtime>, command: &Command, client: &mut Client) -> Done<i32> {
    let (_, record) = exec::running(rt, &command.container)?;
    let socket = rt.socket(&record.pod);
    let Some(words) = &command.words else {
        let (ends, theirs) = pipes(command, false).at("make", std::path::Path::new("pipe"))?;
        let [stdin, stdout, stderr] = [&theirs[0], &theirs[1], &theirs[2]].map(Option::is_some);
        let attach = Request::Attach { id: record.id.clone(), stdin, stdout, stderr };
        let passed: Vec<_> = theirs.iter().flatten().map(AsFd::as_fd).collect();
        let line = Line::open(&socket, &attach, &passed).await?;
        drop(theirs);
        let resize = |width, height| {
            let request = Request::Resize { id: record.id.clone(), width, height };
            let (socket, id) = (socket.clone(), record.id.clone());
            async move { drop(ask(&socket, &id, &request).await) }
        };
        return relay(&record.id, line, ends, client, resize).await;
    };
    let prepared = exec::prepare(rt, &record, words.clone(), command.tty).await?;
    if command.tty {
        let console = Console::listen(rt, &record.pod)?;
        let request = prepared.request(&record.id, Some(console.path.clone()));
        let line = Line::open(&socket, &request, &[]).await?;
        return with_terminal(&record.id, line, console, client).await;
    }
    let (ends, theirs) = pipes(command, true).at("make", std::path::Path::new("pipe"))?;
    let request = prepared.request(&record.id, None);
    let passed: Vec<_> = theirs.iter().flatten().map(AsFd::as_fd).collect();
    let line = Line::open(&socket, &request, &passed).await?;
    drop(theirs);
    relay(&record.id, line, ends, client, |_, _| async {}).await
}

/// Ends for those streams that are wanted; with `all`, `/dev/null` in the place of the others.
fn pipes(command: &Command, all: bool) -> io::Result<(Ends, [Option<OwnedFd>; 3])> {
    let mut ends = Ends::default();
    let null = || -> io::Result<Option<OwnedFd>> {
        if !all {
            return Ok(None);
        }
        let null = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null")?;
        Ok(Some(null.into()))
    };
    let mut theirs = [null()?, null()?, null()?];
    if command.stdin {
        let (their, our) = fd::input()?;
        (theirs[0], ends.stdin) = (Some(their), Some(our));
    }
    if command.stdout {
        let (their, our) = fd::output()?;
        (theirs[1], ends.stdout) = (Some(their), Some(our));
    }
    if command.stderr && !command.tty {
        let (their, our) = fd::output()?;
        (theirs[2], ends.stderr) = (Some(their), Some(our));
    }
    Ok((ends, theirs))
}

/// A socket to which the OCI runtime passes a terminal.
struct Console {
    path: PathBuf,
    listener: UnixListener,
}

impl Drop for Console {
    fn drop(&mut self) {
        // It lies in a folder that goes with the pod.
        let _ = std::fs::remove_file(&self.path);
    }
}

impl Console {
    fn listen(rt: &Runtime, pod: &str) -> Done<Self> {
        // Short: paths of sockets are.
        let path = rt.options.pod_run(pod).join(format!("t{}", &new_id()[..7]));
        let listener = UnixListener::bind(&path).at("bind", &path)?;
        Ok(Self { path, listener })
    }

    async fn terminal(&self) -> Done<Fd> {
        let named = || self.path.as_path();
        let (stream, _) = self.listener.accept().await.at("accept", named())?;
        let mut fds = Vec::new();
        while fds.is_empty() {
            stream.readable().await.at("read", named())?;
            let received =
                stream.try_io(Interest::READABLE, || pod_supervisor::fds::receive(&stream, &mut [0; 4096], &mut fds));
            match received {
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                Ok(0) if fds.is_empty() => return Err(RuntimeError::Refused("no terminal came".into())),
                other => drop(other.at("read", named())?),
            }
        }
        fds.pop()
            .map(Fd::new)
            .transpose()
            .at("open", named())?
            .ok_or_else(|| RuntimeError::Refused("no terminal".into()))
    }
}

async fn with_terminal(id: &str, mut line: Line, console: Console, client: &mut Client) -> Done<i32> {
    let terminal = {
        // One wait until the end: it may have taken the connection over which the terminal comes.
        let coming = console.terminal();
        tokio::pin!(coming);
        tokio::select! {
            terminal = &mut coming => terminal?,
            // It says why there will be none.
            answer = line.answer() => match checked(id, answer?)? {
                Answer::Exited { exit_code } => return Ok(exit_code),
                _ => tokio::time::timeout(OPEN, coming)
                    .await
                    .map_err(|_| RuntimeError::Late("no terminal came".into()))??,
            },
        }
    };
    drop(console);
    let again = || terminal.again().at("open", std::path::Path::new("terminal"));
    let ends = Ends { stdin: Some(again()?), stdout: Some(again()?), stderr: None, terminal: Some(terminal) };
    relay(id, line, ends, client, |_, _| async {}).await
}

/// Moves bytes until the process has ended. Dropped, it ends the process (of an exec) by ending its connection.
async fn relay<F: Future<Output = ()>>(
    id: &str,
    mut line: Line,
    ends: Ends,
    client: &mut Client,
    resize: impl Fn(u16, u16) -> F,
) -> Done<i32> {
    let Ends { stdin, stdout, stderr, terminal } = ends;
    let input = feed(client.stdin.as_mut(), stdin);
    let sizes = sizes(client.resize.as_mut(), terminal.as_ref(), resize);
    let output = async { tokio::join!(carry(stdout, client.stdout.as_mut()), carry(stderr, client.stderr.as_mut())) };
    let ended = async {
        loop {
            match checked(id, line.answer().await?)? {
                Answer::Started { .. } | Answer::Done => {}
                Answer::Exited { exit_code } => return Ok(exit_code),
                other => return Err(RuntimeError::from(SupervisorError::Strange(format!("{other:?}")))),
            }
        }
    };
    tokio::pin!(input, sizes, output, ended);
    let (mut fed, mut sized, mut carried) = (false, false, false);
    let end = loop {
        tokio::select! {
            end = &mut ended => break end?,
            () = &mut input, if !fed => fed = true,
            () = &mut sizes, if !sized => sized = true,
            _ = &mut output, if !carried => carried = true,
        }
    };
    if !carried {
        // Something that it left behind may hold its output.
        let _ = tokio::time::timeout(DRAIN, output).await;
    }
    Ok(end)
}

/// The client's input to the process; its end is the process's end of input.
async fn feed(from: Option<&mut Receiver>, to: Option<Fd>) {
    let (Some(from), Some(to)) = (from, to) else { return };
    while let Some(Ok(bytes)) = from.next().await {
        // A process need not read.
        if to.write(&bytes).await.is_err() {
            return;
        }
    }
}

/// The process's output to the client.
async fn carry(from: Option<Fd>, to: Option<&mut Sender>) {
    let (Some(from), Some(to)) = (from, to) else { return };
    while let Ok(bytes) = from.read().await {
        if bytes.is_empty() || to.send(bytes).await.is_err() {
            return;
        }
    }
}

/// Sizes of the client's terminal: JSON, one after the other.
async fn sizes<F: Future<Output = ()>>(
    from: Option<&mut Receiver>,
    terminal: Option<&Fd>,
    resize: impl Fn(u16, u16) -> F,
) {
    let Some(from) = from else { return };
    let mut text = Vec::new();
    while let Some(Ok(bytes)) = from.next().await {
        text.extend_from_slice(&bytes);
        let mut all = serde_json::Deserializer::from_slice(&text).into_iter::<Size>();
        let mut last = None;
        let mut taken = 0;
        while let Some(Ok(size)) = all.next() {
            (last, taken) = (Some(size), all.byte_offset());
        }
        text.drain(..taken);
        if text.len() > MAX_SIZE {
            return;
        }
        let Some(Size { width, height }) = last else { continue };
        match terminal {
            // Of a terminal that is gone, nobody needs the size.
            Some(terminal) => drop(terminal.resize(width, height)),
            None => resize(width, height).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_told_as_clients_read_them() {
        let text = |end| String::from_utf8(status(end).to_vec()).expect("text");
        assert_eq!(text(Ok(0)), r#"{"metadata":{},"status":"Success"}"#);
        let failed: serde_json::Value = serde_json::from_str(&text(Ok(3))).expect("json");
        assert_eq!(
            (&failed["reason"], &failed["details"]["causes"][0]["message"]),
            (&json!("NonZeroExitCode"), &json!("3"))
        );
        assert!(text(Err(RuntimeError::Refused("why".into()))).contains("why"));
    }
}
