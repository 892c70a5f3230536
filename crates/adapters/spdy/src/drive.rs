//! The two loops of a connection: one reads frames, one writes them.

use std::sync::Arc;

use bytes::{Buf, Bytes, BytesMut};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::time::{Interval, MissedTickBehavior};

use crate::frame::{self, Control, FrameError, HEAD, Head};
use crate::headers::{Decoder, Encoder, HeaderError, Headers};
use crate::shared::{Answer, COMMANDS, Command, End, Entry, Handle, Open, OpenError, Options, Shared};
use crate::stream::Stream;

/// Bytes read at once, and the largest piece that a stream's reader gets.
const READ: usize = 32 << 10;
/// Bytes gathered before they are written.
const WRITE: usize = 64 << 10;
/// Payload of one data frame of ours.
const PAYLOAD: usize = 32 << 10;

/// Why a connection ended before its holders let go of it.
#[derive(Debug, Error)]
pub enum ConnectionError {
    /// The transport failed.
    #[error("the connection failed")]
    Io(#[from] std::io::Error),
    /// The peer sent no SPDY/3.1.
    #[error("the peer broke the protocol")]
    Frame(#[from] FrameError),
    /// The peer sent a header block that cannot be read.
    #[error("the peer broke the protocol")]
    Header(#[from] HeaderError),
    /// The peer asks for answers faster than it takes them.
    #[error("the peer floods the connection")]
    Flood,
    /// The peer closed the connection in the middle of a frame.
    #[error("the connection ended within a frame")]
    Cut,
}

/// Where streams of the peer go.
pub(crate) struct Acceptor {
    pub(crate) accept: mpsc::Sender<(Headers, Stream)>,
    pub(crate) commands: mpsc::WeakSender<Command>,
}

/// However the driver ends, everybody who waits for the connection learns it.
struct Closer(Arc<Shared>);

impl Drop for Closer {
    fn drop(&mut self) {
        let mut table = self.0.table();
        table.going_away = true;
        table.streams.clear();
    }
}

pub(crate) async fn drive<T: AsyncRead + AsyncWrite>(
    io: T,
    shared: Arc<Shared>,
    commands: mpsc::Receiver<Command>,
    options: Options,
    acceptor: Option<Acceptor>,
) -> Result<(), ConnectionError> {
    let closer = Closer(Arc::clone(&shared));
    let (read, write) = tokio::io::split(io);
    let is_client = acceptor.is_none();
    let reader = Reader { io: read, buffer: BytesMut::new(), shared: Arc::clone(&shared), acceptor, last: 0, options };
    let ping = reader.options.ping_every.map(|every| {
        let mut ticks = tokio::time::interval_at(tokio::time::Instant::now() + every, every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        ticks
    });
    let first = if is_client { 1 } else { 2 };
    let max_streams = reader.options.max_streams;
    let writer =
        Writer { io: write, out: BytesMut::new(), encoder: Encoder::default(), shared, next: first, max_streams };
    // Cancel-safe: whichever ends first ends the connection.
    let result = tokio::select! {
        read = reader.run() => read,
        written = writer.run(commands, ping, first) => written,
    };
    drop(closer);
    result
}

struct Reader<R> {
    io: R,
    buffer: BytesMut,
    shared: Arc<Shared>,
    acceptor: Option<Acceptor>,
    /// Last stream that the peer opened.
    last: u32,
    options: Options,
}

impl<R: AsyncRead + Unpin> Reader<R> {
    async fn run(mut self) -> Result<(), ConnectionError> {
        let mut decoder = Decoder::default();
        while self.fill(HEAD).await? {
            let mut bytes = [0; HEAD];
            self.buffer.copy_to_slice(&mut bytes);
            match frame::head(bytes)? {
                Head::Data { stream, fin, len } => self.data(stream, fin, len).await?,
                Head::Control { kind, flags, len } => {
                    if !self.fill(len).await? {
                        return Err(ConnectionError::Cut);
                    }
                    let payload = self.buffer.split_to(len);
                    self.control(frame::control(kind, flags, &payload)?, &mut decoder)?;
                }
            }
        }
        Ok(())
    }

    /// Reads until `len` bytes are there; false when the peer closed with nothing left.
    async fn fill(&mut self, len: usize) -> Result<bool, ConnectionError> {
        while self.buffer.len() < len {
            self.buffer.reserve(READ.max(len - self.buffer.len()));
            if self.io.read_buf(&mut self.buffer).await? == 0 {
                return if self.buffer.is_empty() { Ok(false) } else { Err(ConnectionError::Cut) };
            }
        }
        Ok(true)
    }

    /// Hands a frame's payload on as it comes; only what one read brought is ever held.
    async fn data(&mut self, stream: u32, fin: bool, len: usize) -> Result<(), ConnectionError> {
        let target = self.shared.table().streams.get(&stream).and_then(|e| e.data.clone());
        let mut left = len;
        while left > 0 {
            if !self.fill(1).await? {
                return Err(ConnectionError::Cut);
            }
            let piece = self.buffer.split_to(left.min(self.buffer.len()).min(READ)).freeze();
            left -= piece.len();
            if let Some(target) = &target {
                // Who has let go of the receiving half gets nothing: its data is thrown away.
                let _ = target.send(piece).await;
            }
        }
        if fin {
            let mut table = self.shared.table();
            if let Some(entry) = table.streams.get_mut(&stream) {
                entry.end.finished();
                entry.data = None;
            }
            table.tidy(stream);
        }
        Ok(())
    }

    fn control(&mut self, control: Control<'_>, decoder: &mut Decoder) -> Result<(), ConnectionError> {
        match control {
            Control::SynStream { stream, fin, block } => {
                let headers = decoder.decode(block)?;
                self.opened(stream, fin, headers);
            }
            Control::SynReply { stream, fin, block } => {
                decoder.decode(block)?;
                self.replied(stream, fin);
            }
            Control::Headers { stream, fin, block } => {
                decoder.decode(block)?;
                if fin {
                    self.replied(stream, true);
                }
            }
            Control::Reset { stream, status } => {
                if let Some(mut entry) = self.shared.table().streams.remove(&stream) {
                    entry.end.reset();
                    if let Some(reply) = entry.reply.take() {
                        let _ = reply.send(Err(OpenError::Refused(status)));
                    }
                }
            }
            Control::Ping(id) => {
                let ours = id % 2 == u32::from(self.acceptor.is_none());
                if !ours {
                    self.shared.answer(Answer::Pong(id));
                }
            }
            Control::GoAway { .. } => self.shared.table().going_away = true,
            Control::Settings | Control::WindowUpdate => {}
        }
        if self.shared.table().flooded { Err(ConnectionError::Flood) } else { Ok(()) }
    }

    fn replied(&mut self, stream: u32, fin: bool) {
        let mut table = self.shared.table();
        let Some(entry) = table.streams.get_mut(&stream) else { return };
        if fin {
            entry.end.finished();
            entry.data = None;
        }
        let gone = entry.reply.take().is_some_and(|reply| reply.send(Ok(stream)).is_err());
        table.tidy(stream);
        drop(table);
        if gone {
            self.shared.abandon(stream); // who opened it has gone meanwhile
        }
    }

    fn opened(&mut self, stream: u32, fin: bool, headers: Headers) {
        let refuse = |shared: &Shared| shared.answer(Answer::Reset(stream, frame::REFUSED));
        let acceptor = self.acceptor.as_ref().and_then(|a| Some((a, a.commands.upgrade()?)));
        let Some((acceptor, commands)) = acceptor else { return refuse(&self.shared) };
        let full = self.shared.table().streams.len() >= self.options.max_streams;
        if stream.is_multiple_of(2) || stream <= self.last || full {
            return refuse(&self.shared);
        }
        self.last = stream;
        let Ok(slot) = acceptor.accept.try_reserve() else { return refuse(&self.shared) };
        let (data, pieces) = mpsc::channel(self.options.queue.max(1));
        let end = Arc::new(End::default());
        if fin {
            end.finished();
        }
        let data = (!fin).then_some(data);
        let entry = Entry { data, end: Arc::clone(&end), reply: None, sending: true };
        self.shared.table().streams.insert(stream, entry);
        self.shared.answer(Answer::Reply(stream));
        let handle = Handle { commands, shared: Arc::clone(&self.shared) };
        slot.send((headers, Stream::new(stream, handle, pieces, end)));
    }
}

struct Writer<W> {
    io: W,
    out: BytesMut,
    encoder: Encoder,
    shared: Arc<Shared>,
    next: u32,
    max_streams: usize,
}

impl<W: AsyncWrite + Unpin> Writer<W> {
    async fn run(
        mut self,
        mut commands: mpsc::Receiver<Command>,
        mut ping: Option<Interval>,
        first_ping: u32,
    ) -> Result<(), ConnectionError> {
        let mut ping_id = first_ping;
        let shared = Arc::clone(&self.shared);
        loop {
            // Cancel-safe: `notified`, `recv` and `tick` lose nothing.
            tokio::select! {
                biased;
                () = shared.wake.notified() => self.answer(&mut commands).await?,
                command = commands.recv() => match command {
                    Some(command) => self.obey(command).await?,
                    None => return self.close().await,
                },
                () = tick(&mut ping) => {
                    frame::put_ping(&mut self.out, ping_id);
                    ping_id = ping_id.checked_add(2).unwrap_or(first_ping);
                }
            }
            // Bounded: senders that never pause must not hold up answers, resets and pings.
            for _ in 0..COMMANDS {
                let Ok(command) = commands.try_recv() else { break };
                self.obey(command).await?;
            }
            self.flush().await?;
        }
    }

    /// Resets are said after what was asked for before them: all of that is in the queue, so a queue's worth is enough.
    async fn answer(&mut self, commands: &mut mpsc::Receiver<Command>) -> Result<(), ConnectionError> {
        let answers = std::mem::take(&mut self.shared.table().answers);
        let mut resets = Vec::new();
        for answer in answers {
            match answer {
                Answer::Pong(id) => frame::put_ping(&mut self.out, id),
                Answer::Reply(stream) => {
                    let block = self.encoder.encode(&Headers::new())?;
                    frame::put_syn_reply(&mut self.out, stream, &block);
                }
                Answer::Reset(stream, status) => resets.push((stream, status)),
            }
        }
        if !resets.is_empty() {
            for _ in 0..COMMANDS {
                let Ok(command) = commands.try_recv() else { break };
                self.obey(command).await?;
            }
        }
        for (stream, status) in resets {
            frame::put_reset(&mut self.out, stream, status);
        }
        self.flush_when_full().await
    }

    async fn obey(&mut self, command: Command) -> Result<(), ConnectionError> {
        match command {
            Command::Open(open) => self.open(*open),
            Command::Data { stream, mut bytes, fin } => {
                while bytes.len() > PAYLOAD {
                    self.data(stream, &bytes.split_to(PAYLOAD), false).await?;
                }
                self.data(stream, &bytes, fin).await?;
                if fin {
                    let mut table = self.shared.table();
                    if let Some(entry) = table.streams.get_mut(&stream) {
                        entry.sending = false;
                    }
                    table.tidy(stream);
                }
            }
        }
        self.flush_when_full().await
    }

    async fn data(&mut self, stream: u32, bytes: &Bytes, fin: bool) -> Result<(), ConnectionError> {
        frame::put_data_head(&mut self.out, stream, fin, bytes.len());
        self.out.extend_from_slice(bytes);
        self.flush_when_full().await
    }

    fn open(&mut self, open: Open) {
        let mut table = self.shared.table();
        let refusal = match () {
            () if table.going_away => Some(OpenError::GoingAway),
            () if table.streams.len() >= self.max_streams || self.next > i32::MAX.unsigned_abs() - 2 => {
                Some(OpenError::Limit)
            }
            () => None,
        };
        let block = match refusal {
            Some(e) => Err(e),
            None => self.encoder.encode(&open.headers).map_err(|_| OpenError::Limit),
        };
        match block {
            Err(e) => drop(open.reply.send(Err(e))),
            Ok(block) => {
                let stream = self.next;
                self.next += 2;
                let entry = Entry { data: Some(open.data), end: open.end, reply: Some(open.reply), sending: true };
                table.streams.insert(stream, entry);
                frame::put_syn_stream(&mut self.out, stream, &block);
            }
        }
    }

    async fn flush_when_full(&mut self) -> Result<(), ConnectionError> {
        if self.out.len() >= WRITE { self.write_out().await } else { Ok(()) }
    }

    async fn write_out(&mut self) -> Result<(), ConnectionError> {
        self.io.write_all(&self.out).await?;
        self.out.clear();
        Ok(())
    }

    async fn flush(&mut self) -> Result<(), ConnectionError> {
        self.write_out().await?;
        Ok(self.io.flush().await?)
    }

    async fn close(mut self) -> Result<(), ConnectionError> {
        let answers = std::mem::take(&mut self.shared.table().answers);
        for answer in answers {
            if let Answer::Reset(stream, status) = answer {
                frame::put_reset(&mut self.out, stream, status);
            }
        }
        frame::put_go_away(&mut self.out, 0);
        self.flush().await?;
        Ok(self.io.shutdown().await?)
    }
}

async fn tick(ping: &mut Option<Interval>) {
    match ping {
        Some(ticks) => drop(ticks.tick().await),
        None => std::future::pending().await,
    }
}
