//! An exec through the daemon beside the same exec at the runtime's streaming server, both over WebSocket.

use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use futures::{SinkExt, StreamExt};
use testbed::{Bosun, Cri, TestBed};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::HeaderValue;

use super::super::pods::{talker, wait_gone, wait_running};
use super::super::report::{Report, Unit, percentile};

/// Spoken by every runtime, so both ways carry the same frames.
const PROTOCOL: &str = "v4.channel.k8s.io";
/// Echoes per session.
const ECHOES: usize = 300;
/// Whole commands.
const COMMANDS: usize = 15;

pub(super) fn round_trips(bed: &TestBed, bosun: &Bosun, report: &mut Report) -> anyhow::Result<()> {
    bosun.put("echo.yaml", &talker("echo", "trap 'exit 0' TERM; while :; do sleep 0.2; done"))?;
    wait_running(bosun, 1, Duration::from_secs(60))?;
    let pod = bosun.pod("echo")?.context("pod is gone")?;
    let id = pod["status"]["containerStatuses"][0]["containerID"].as_str().unwrap_or_default();
    let id = testbed::plain_id(id).to_owned();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let cri = Cri::new(&bed.socket(), bed.cgroup_root(), bed.dir());
        let mut near = through(bosun, "cat").await?;
        let mut direct = straight(&cri, &id, &["cat"]).await?;
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        // Alternating, so that both meet the same noise.
        for _ in 0..ECHOES {
            ours.push(echo(&mut near).await?);
            theirs.push(echo(&mut direct).await?);
        }
        compare("exec: echo of a byte", &ours, &theirs, report);
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..COMMANDS {
            let begin = Instant::now();
            to_the_end(through(bosun, "true").await?).await?;
            ours.push(ms(begin));
            let begin = Instant::now();
            to_the_end(straight(&cri, &id, &["true"]).await?).await?;
            theirs.push(ms(begin));
        }
        compare("exec: a whole command", &ours, &theirs, report);
        anyhow::Ok(())
    })?;
    bosun.remove("echo.yaml")?;
    wait_gone(bosun, Duration::from_secs(60))
}

fn compare(what: &str, ours: &[f64], theirs: &[f64], report: &mut Report) {
    let (a, b) = (percentile(ours, 0.5), percentile(theirs, 0.5));
    let detail = format!("p50 {a:.2} ms through bosun, {b:.2} ms straight");
    report.add(&format!("{what}, p50 over the runtime's own"), a - b, Unit::Ms, Some(1.0), detail);
}

fn ms(begin: Instant) -> f64 {
    begin.elapsed().as_secs_f64() * 1e3
}

async fn through(bosun: &Bosun, command: &str) -> anyhow::Result<WebSocketStream<UnixStream>> {
    let stream = UnixStream::connect(bosun.socket()).await?;
    join(stream, &format!("ws://bosun/exec/default/echo-bed/main?input=1&output=1&command={command}")).await
}

async fn straight(cri: &Cri, id: &str, command: &[&str]) -> anyhow::Result<WebSocketStream<TcpStream>> {
    let url = cri.exec_url(id, command).await?;
    let rest = url.strip_prefix("http://").context("the runtime serves http")?;
    let address = rest.split('/').next().unwrap_or_default();
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    join(stream, &format!("ws://{rest}")).await
}

async fn join<S: AsyncRead + AsyncWrite + Unpin>(stream: S, url: &str) -> anyhow::Result<WebSocketStream<S>> {
    let mut request = url.into_client_request()?;
    request.headers_mut().insert("Sec-WebSocket-Protocol", HeaderValue::from_static(PROTOCOL));
    Ok(tokio_tungstenite::client_async(request, stream).await?.0)
}

/// Sends a byte to the command's input and waits until it comes back.
async fn echo<S: AsyncRead + AsyncWrite + Unpin>(session: &mut WebSocketStream<S>) -> anyhow::Result<f64> {
    let begin = Instant::now();
    session.send(Message::binary(vec![0, b'x'])).await?;
    loop {
        match tokio::time::timeout(Duration::from_secs(20), session.next()).await? {
            Some(Ok(Message::Binary(frame))) if frame.first() == Some(&1) && frame.len() > 1 => return Ok(ms(begin)),
            Some(Ok(_)) => {}
            other => bail!("no echo: {other:?}"),
        }
    }
}

async fn to_the_end<S: AsyncRead + AsyncWrite + Unpin>(mut session: WebSocketStream<S>) -> anyhow::Result<()> {
    loop {
        match tokio::time::timeout(Duration::from_secs(20), session.next()).await? {
            // The status: the command is over.
            Some(Ok(Message::Binary(frame))) if frame.first() == Some(&3) && frame.len() > 1 => return Ok(()),
            Some(Ok(Message::Close(_))) | None => return Ok(()),
            Some(Ok(_)) => {}
            Some(Err(e)) => bail!("the command did not end: {e}"),
        }
    }
}
