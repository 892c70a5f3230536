//! Two byte streams, joined: what comes out of one goes into the other, in both directions.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Bytes in flight per direction. A slow reader holds the other side up after that many.
const BUFFER: usize = 32 << 10;
/// How long the second direction may be silent after the first has ended. Streaming servers end theirs at once; one that
/// does not would hold a connection whose client is long gone.
const LINGER: Duration = Duration::from_secs(30);

/// Why a splice ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// Both sides finished.
    Finished,
    /// A side broke off.
    Broken,
    /// Nothing moved for too long.
    Idle,
}

/// Counts what moves, to notice when nothing does.
#[derive(Debug, Default)]
pub(crate) struct Activity(AtomicU64);

impl Activity {
    pub(crate) fn moved(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns when nothing has moved for `limit` (and at most an eighth longer).
    pub(crate) async fn idle(&self, limit: Duration) {
        const STEPS: u32 = 8;
        if limit.is_zero() {
            return std::future::pending().await; // no limit, as Go has it
        }
        let (mut seen, mut quiet) = (self.0.load(Ordering::Relaxed), 0);
        while quiet < STEPS {
            tokio::time::sleep(limit / STEPS).await;
            let now = self.0.load(Ordering::Relaxed);
            quiet = if now == seen { quiet + 1 } else { 0 };
            seen = now;
        }
    }
}

/// What is done with bytes that their receiver takes no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Deaf {
    /// They are thrown away, up to their end.
    Drain,
    /// The direction ends, broken.
    End,
}

/// Copies both ways until both sides have finished, one breaks off, or nothing moves. Both are closed on return. A runtime
/// that takes no more input (it is done, while the client still sends) does not end the stream before its last output is
/// delivered.
pub(crate) async fn splice<C, R>(client: C, runtime: R, idle: Duration) -> Ended
where
    C: AsyncRead + AsyncWrite,
    R: AsyncRead + AsyncWrite,
{
    let activity = Activity::default();
    let (mut client_read, mut client_write) = tokio::io::split(client);
    let (mut runtime_read, mut runtime_write) = tokio::io::split(runtime);
    let mut there = std::pin::pin!(pump(&mut client_read, &mut runtime_write, &activity, Deaf::Drain));
    let mut back = std::pin::pin!(pump(&mut runtime_read, &mut client_write, &activity, Deaf::End));
    // Cancel-safe: the pumps are kept across both waits.
    let (first, went_there) = tokio::select! {
        end = &mut there => (end, true),
        end = &mut back => (end, false),
        () = activity.idle(idle) => return Ended::Idle,
    };
    if first.is_err() {
        return Ended::Broken;
    }
    let second = async { if went_there { back.await } else { there.await } };
    tokio::select! {
        end = second => if end.is_ok() { Ended::Finished } else { Ended::Broken },
        () = activity.idle(LINGER.min(idle)) => Ended::Idle,
    }
}

async fn pump<R, W>(from: &mut R, to: &mut W, activity: &Activity, deaf: Deaf) -> std::io::Result<()>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let mut buffer = vec![0; BUFFER];
    loop {
        let len = from.read(&mut buffer).await?;
        let end = len == 0;
        match if end { to.shutdown().await } else { put(to, &buffer[..len]).await } {
            Ok(()) if end => return Ok(()),
            Ok(()) => activity.moved(),
            Err(_) if deaf == Deaf::Drain && end => return Ok(()),
            Err(_) if deaf == Deaf::Drain => break,
            Err(e) => return Err(e),
        }
    }
    // No life: whoever is not heard does not hold the stream.
    while from.read(&mut buffer).await? > 0 {}
    Ok(())
}

async fn put<W: AsyncWrite + Unpin>(to: &mut W, bytes: &[u8]) -> std::io::Result<()> {
    to.write_all(bytes).await?;
    to.flush().await // TLS keeps what did not fit until it is asked
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_last_output_of_a_runtime_that_hears_no_more_is_delivered() {
        let (mut client, near) = tokio::io::duplex(1024);
        let (mut runtime, far) = tokio::io::duplex(1 << 16);
        runtime.write_all(&[7; 50_000]).await.expect("room");
        drop(runtime);
        client.write_all(b"a ping to nobody").await.expect("room");
        let reads = async move {
            let mut got = Vec::new();
            client.read_to_end(&mut got).await.expect("an orderly end");
            got.len()
        };
        let (ended, got) = tokio::join!(splice(near, far, Duration::from_secs(60)), reads);
        assert_eq!((ended, got), (Ended::Finished, 50_000));
    }
}
