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
        let (mut seen, mut quiet) = (self.0.load(Ordering::Relaxed), 0);
        while quiet < STEPS {
            tokio::time::sleep(limit / STEPS).await;
            let now = self.0.load(Ordering::Relaxed);
            quiet = if now == seen { quiet + 1 } else { 0 };
            seen = now;
        }
    }
}

/// Copies both ways until both sides have finished, one breaks off, or nothing moves. Both are closed on return.
pub(crate) async fn splice<A, B>(a: A, b: B, idle: Duration) -> Ended
where
    A: AsyncRead + AsyncWrite,
    B: AsyncRead + AsyncWrite,
{
    let activity = Activity::default();
    let (mut a_read, mut a_write) = tokio::io::split(a);
    let (mut b_read, mut b_write) = tokio::io::split(b);
    let mut there = std::pin::pin!(pump(&mut a_read, &mut b_write, &activity));
    let mut back = std::pin::pin!(pump(&mut b_read, &mut a_write, &activity));
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

async fn pump<R, W>(from: &mut R, to: &mut W, activity: &Activity) -> std::io::Result<()>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let mut buffer = vec![0; BUFFER];
    loop {
        let len = from.read(&mut buffer).await?;
        if len == 0 {
            return to.shutdown().await;
        }
        to.write_all(&buffer[..len]).await?;
        to.flush().await?; // TLS keeps what did not fit until it is asked
        activity.moved();
    }
}
