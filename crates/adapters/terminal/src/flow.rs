//! Standard streams as channels. A thread each: they block, cannot be made non-blocking without changing them for the shell
//! too, and a read that nobody ends must not keep the program from ending.

use std::io::{self, Read, Write};

use tokio::sync::{mpsc, oneshot};

const CHUNK: usize = 32 << 10;
/// Chunks that may wait; more would only be memory.
const WAITING: usize = 4;

/// Reads until the end; the channel closes there. An error is the last item.
pub fn read(mut from: impl Read + Send + 'static) -> mpsc::Receiver<io::Result<Vec<u8>>> {
    let (tx, rx) = mpsc::channel(WAITING);
    std::thread::spawn(move || {
        let mut buffer = vec![0; CHUNK];
        loop {
            let item = match from.read(&mut buffer) {
                Ok(0) => return,
                Ok(n) => Ok(buffer[..n].to_vec()),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => Err(e),
            };
            let last = item.is_err();
            if tx.blocking_send(item).is_err() || last {
                return;
            }
        }
    });
    rx
}

/// The writing end of a stream; waits while the stream is slow.
#[derive(Debug)]
pub struct Writer {
    tx: mpsc::Sender<Vec<u8>>,
    done: oneshot::Receiver<io::Result<()>>,
}

/// Writes what is sent, each piece flushed.
pub fn write(mut to: impl Write + Send + 'static) -> Writer {
    let (tx, mut rx) = mpsc::channel::<Vec<u8>>(WAITING);
    let (finished, done) = oneshot::channel();
    std::thread::spawn(move || {
        let mut result = Ok(());
        while let Some(piece) = rx.blocking_recv() {
            result = to.write_all(&piece).and_then(|()| to.flush());
            if result.is_err() {
                break;
            }
        }
        let _nobody_waits = finished.send(result);
    });
    Writer { tx, done }
}

impl Writer {
    /// Hands over a piece; answers `false` when the stream takes no more (see [`Self::finish`] for why).
    pub async fn send(&self, piece: Vec<u8>) -> bool {
        self.tx.send(piece).await.is_ok()
    }

    /// Waits until all is written.
    ///
    /// # Errors
    /// Writing failed, e.g. `BrokenPipe` when the reader has gone.
    pub async fn finish(self) -> io::Result<()> {
        drop(self.tx);
        self.done.await.unwrap_or(Ok(()))
    }
}
