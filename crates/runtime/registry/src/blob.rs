//! Layers come: in pieces, on from where they broke off, into a file, hashed on the way.

use std::fs::File;
use std::sync::Arc;

use bytes::Bytes;
use hyper::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_RANGE, RANGE};
use image_store::{Digest, Ingest, StoreError, Writing};
use tokio::sync::{mpsc, oneshot};

use crate::client::{Answer, Ask};
use crate::endpoint::Endpoint;
use crate::error::{Failure, PullError};
use crate::fetch::{Session, refusal};
use crate::progress::Layer;
use crate::work::blocking;

/// Pieces that wait for the disk; each is as large as what a connection buffers at most.
const WAITING: usize = 4;
/// An attempt that brought so many bytes was none in vain.
const GAIN: u64 = 1 << 20;

enum Piece {
    Bytes(Bytes),
    Restart,
}

/// A part of a layer that a thread writes.
struct Sink {
    pieces: mpsc::Sender<Piece>,
    done: oneshot::Receiver<Result<Ingest, StoreError>>,
    have: u64,
}

impl Sink {
    async fn open(writing: Arc<Writing>, digest: Digest, size: u64, alone: bool) -> Result<Self, PullError> {
        let (pieces, mut incoming) = mpsc::channel(WAITING);
        let (begun, have) = oneshot::channel();
        let (finished, done) = oneshot::channel();
        let write = move || {
            let part = if alone { writing.ingest_alone(&digest, size) } else { writing.ingest(&digest, size) };
            let mut ingest = match part {
                Ok(ingest) => ingest,
                Err(e) => return drop(begun.send(Err(e))),
            };
            // Nobody may be waiting any more.
            drop(begun.send(Ok(ingest.have())));
            let mut result = Ok(());
            while let (true, Some(piece)) = (result.is_ok(), incoming.blocking_recv()) {
                result = match piece {
                    Piece::Bytes(bytes) => ingest.write(&bytes),
                    Piece::Restart => ingest.restart(),
                };
            }
            if result.as_ref().is_err_and(StoreError::is_full) {
                // What others need the room for is worth more than this part. Emptying it needs none.
                drop(ingest.restart());
            }
            drop(finished.send(result.map(|()| ingest)));
        };
        let thread = std::thread::Builder::new().name("registry-layer".to_owned());
        thread.spawn(write).map_err(|_| PullError::Lost("writing a layer"))?;
        let have = have.await.map_err(|_| PullError::Lost("writing a layer"))??;
        Ok(Self { pieces, done, have })
    }

    /// `false`: the disk refused; [`close`](Self::close) says why.
    async fn write(&mut self, bytes: Bytes) -> bool {
        self.have += bytes.len() as u64;
        self.pieces.send(Piece::Bytes(bytes)).await.is_ok()
    }

    async fn restart(&mut self) -> bool {
        self.have = 0;
        self.pieces.send(Piece::Restart).await.is_ok()
    }

    async fn close(self) -> Result<Ingest, PullError> {
        drop(self.pieces);
        Ok(self.done.await.map_err(|_| PullError::Lost("writing a layer"))??)
    }
}

/// Why a transfer ended early.
enum End {
    Host(Failure),
    Disk,
}

impl From<Failure> for End {
    fn from(failure: Failure) -> Self {
        Self::Host(failure)
    }
}

impl Session {
    /// A layer's file, whole and verified. `alone`: another pull may bring it, too, and has the part that others go on with.
    pub(crate) async fn layer(
        &self,
        writing: &Arc<Writing>,
        digest: Digest,
        size: u64,
        alone: bool,
        progress: &Layer,
    ) -> Result<File, PullError> {
        let mut refused = Vec::new();
        for endpoint in self.endpoints.iter().filter(|e| e.pulls) {
            let mut failed = 0;
            loop {
                let mut sink = Sink::open(writing.clone(), digest, size, alone).await?;
                let had = sink.have;
                let end = self.transfer(endpoint, digest, size, &mut sink, progress).await;
                let gained = sink.have.saturating_sub(had);
                let ingest = sink.close().await?;
                let failure = match end {
                    Ok(()) => match verified(ingest).await? {
                        Ok(file) => return Ok(file),
                        // The part was of another host, or its disk lost power: from its beginning once more.
                        Err(_) if had > 0 => continue,
                        Err(failure) => failure,
                    },
                    Err(End::Host(failure)) => failure,
                    Err(End::Disk) => return Err(PullError::Lost("writing a layer")),
                };
                failed = if gained >= GAIN { 1 } else { failed + 1 };
                if failure.may_pass() && failed < failure.attempts(self.settings.attempts) {
                    self.pause(failed, &failure).await;
                    continue;
                }
                refused.push(refusal(endpoint, &format!("for layer {digest}"), failure));
                break;
            }
        }
        Err(if refused.is_empty() { PullError::NoHost("for a layer") } else { PullError::Refused(refused) })
    }

    async fn transfer(
        &self,
        endpoint: &Endpoint,
        digest: Digest,
        size: u64,
        sink: &mut Sink,
        progress: &Layer,
    ) -> Result<(), End> {
        progress.has(sink.have);
        if sink.have == size {
            return Ok(());
        }
        let mut ask = Ask::get().with(ACCEPT_ENCODING, "identity")?;
        if sink.have > 0 {
            ask = ask.with(RANGE, &format!("bytes={}-", sink.have))?;
        }
        let mut answer = self.call(endpoint, &format!("blobs/{digest}"), &ask).await?;
        match begins_at(&answer, sink.have) {
            Ok(true) => {}
            Ok(false) => sink.restart().await.then_some(()).ok_or(End::Disk)?,
            Err(416) => {
                sink.restart().await.then_some(()).ok_or(End::Disk)?;
                return Err(Failure::Broken("it cannot go on where it broke off".to_owned()).into());
            }
            Err(_) => return Err(answer.refusal().await.into()),
        }
        if answer.text(CONTENT_ENCODING).is_some_and(|e| !e.eq_ignore_ascii_case("identity")) {
            return Err(Failure::Protocol("a layer that it compressed again".to_owned()).into());
        }
        while let Some(piece) = answer.piece().await? {
            if sink.have + piece.len() as u64 > size {
                return Err(Failure::Protocol(format!(
                    "layer {digest} is longer than the {size} bytes of its manifest"
                ))
                .into());
            }
            sink.write(piece).await.then_some(()).ok_or(End::Disk)?;
            progress.has(sink.have);
        }
        match sink.have {
            have if have == size => Ok(()),
            have => Err(Failure::Broken(format!("it ended after {have} of {size} bytes")).into()),
        }
    }
}

/// Whether a body goes on at that place (`false`: it is all of it), or the status that says neither.
fn begins_at(answer: &Answer, have: u64) -> Result<bool, u16> {
    match answer.status().as_u16() {
        200 => Ok(have == 0),
        206 if have > 0 => {
            let range =
                answer.text(CONTENT_RANGE).and_then(|r| r.strip_prefix("bytes ")?.split('-').next()?.parse().ok());
            if range == Some(have) { Ok(true) } else { Err(416) }
        }
        status => Err(status),
    }
}

async fn verified(ingest: Ingest) -> Result<Result<File, Failure>, PullError> {
    // Throwing a wrong one away takes the disk some time.
    match blocking("registry-layer", move || ingest.verified()).await? {
        Ok(file) => Ok(Ok(file)),
        Err(StoreError::Digest { promised, found }) => Ok(Err(Failure::Digest { promised, found })),
        Err(e) => Err(e.into()),
    }
}
