//! The other end: a client of these routes for our own command line, over any connection (the daemon's socket).
//!
//! [`exec`] serves attach, too: only the path differs. A session's work is done in a task that ends with the session.

use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{mpsc, oneshot};

use self::connect::{Socket, connect};
use crate::options::V5;
use crate::remote_command::{CLOSE, MAX_STATUS, RESIZE, STATUS, STDERR, STDIN, STDOUT};

mod connect;
mod port_forward;

pub use self::connect::ClientError;
pub use self::port_forward::{ForwardError, PortForward, port_forward};
pub use crate::status::Outcome;

/// Bytes of one message of ours.
const PIECE: usize = 32 << 10;
/// Pieces that wait for whom they are for.
const QUEUE: usize = 4;

/// A running exec or attach.
#[derive(Debug)]
pub struct Session {
    /// What goes in.
    pub stdin: Stdin,
    /// What comes out; ends with the session. Must be read, as stderr: who is not read stops the other.
    pub stdout: mpsc::Receiver<Bytes>,
    /// What comes out beside it; nothing with a terminal.
    pub stderr: mpsc::Receiver<Bytes>,
    /// Sizes of the terminal.
    pub resize: Resize,
    /// How it ends.
    pub exit: Exit,
}

/// The command's standard input.
#[derive(Debug)]
pub struct Stdin(mpsc::Sender<Bytes>);

impl Stdin {
    /// Sends bytes; waits while the way is full. False when the session is over.
    pub async fn send(&self, bytes: Bytes) -> bool {
        for piece in bytes.chunks(PIECE) {
            if self.0.send(message(STDIN, piece)).await.is_err() {
                return false;
            }
        }
        true
    }

    /// Half-closes: the command sees the end of its input and may go on to write.
    pub async fn finish(self) {
        let _ = self.0.send(Bytes::from_static(&[CLOSE, STDIN])).await;
    }
}

/// The size of the command's terminal.
#[derive(Debug, Clone)]
pub struct Resize(mpsc::Sender<Bytes>);

impl Resize {
    /// Tells the size in characters. False when the session is over.
    pub async fn set(&self, width: u16, height: u16) -> bool {
        let size = format!("{{\"Width\":{width},\"Height\":{height}}}\n");
        self.0.send(message(RESIZE, size.as_bytes())).await.is_ok()
    }
}

/// The end of a session. Dropping it ends the session.
#[derive(Debug)]
pub struct Exit(oneshot::Receiver<Outcome>);

impl Exit {
    /// Waits for it. All output has been handed over before.
    pub async fn wait(self) -> Outcome {
        self.0.await.unwrap_or_else(|_| Outcome::Failed("the connection was lost".to_owned()))
    }
}

/// Runs a command or attaches to one: `/exec/NS/POD/CONTAINER?command=..&input=1&output=1&error=1&tty=1`.
///
/// # Errors
/// When the daemon refuses or does not answer.
pub async fn exec<T>(io: T, path_and_query: &str) -> Result<Session, ClientError>
where
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let socket = connect(io, path_and_query, V5).await?;
    let (commands, commanded) = mpsc::channel(QUEUE);
    let (out, stdout) = mpsc::channel(QUEUE);
    let (err, stderr) = mpsc::channel(QUEUE);
    let (ended, exit) = oneshot::channel();
    tokio::spawn(run(socket, commanded, Outputs { out, err }, ended));
    Ok(Session { stdin: Stdin(commands.clone()), stdout, stderr, resize: Resize(commands), exit: Exit(exit) })
}

struct Outputs {
    out: mpsc::Sender<Bytes>,
    err: mpsc::Sender<Bytes>,
}

async fn run(
    (mut sink, mut source): Socket,
    mut commands: mpsc::Receiver<Bytes>,
    outputs: Outputs,
    mut ended: oneshot::Sender<Outcome>,
) {
    let outcome = {
        let inward = async {
            loop {
                // Cancel-safe: both are.
                let sent = tokio::select! {
                    command = commands.recv() => match command {
                        Some(message) => sink.send(&[], &message).await,
                        None => break,
                    },
                    () = sink.pinged() => sink.flush().await,
                };
                if sent.is_err() {
                    break;
                }
            }
            std::future::pending::<()>().await; // the end is told by the other side
        };
        let outward = async {
            let (mut channel, mut told) = (CLOSE, Vec::new());
            while let Some(mut piece) = source.next().await {
                if piece.first {
                    channel = piece.bytes.split_to(1)[0];
                }
                let bytes = piece.bytes;
                // Who has dropped an output does not want it.
                match channel {
                    STDOUT if !bytes.is_empty() => drop(outputs.out.send(bytes).await),
                    STDERR if !bytes.is_empty() => drop(outputs.err.send(bytes).await),
                    STATUS if told.len() + bytes.len() <= MAX_STATUS => {
                        told.extend_from_slice(&bytes);
                        if piece.last && !told.is_empty() {
                            return Some(Outcome::parse(&told));
                        }
                    }
                    _ => {}
                }
            }
            None
        };
        // Cancel-safe: whichever ends first ends the session.
        tokio::select! {
            outcome = outward => outcome,
            () = inward => None,
            () = ended.closed() => None,
        }
    };
    drop(outputs);
    let _ = tokio::time::timeout(Duration::from_secs(1), sink.close()).await;
    if let Some(outcome) = outcome {
        let _ = ended.send(outcome);
    }
}

/// A channel's number and its bytes.
fn message(channel: u8, bytes: &[u8]) -> Bytes {
    let mut message = BytesMut::with_capacity(1 + bytes.len());
    message.put_u8(channel);
    message.put_slice(bytes);
    message.freeze()
}
