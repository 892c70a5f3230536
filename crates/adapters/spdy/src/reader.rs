//! The loop of a connection that reads frames.

use std::sync::Arc;

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::mpsc;

use crate::error::ConnectionError;
use crate::frame::{self, Control, HEAD, Head};
use crate::headers::{Decoder, Headers};
use crate::shared::{Answer, Command, End, Entry, Handle, OpenError, Options, Shared};
use crate::stream::Stream;

/// Bytes read at once, and the largest piece that a stream's reader gets.
const READ: usize = 32 << 10;

/// Where streams of the peer go.
pub(crate) struct Acceptor {
    pub(crate) accept: mpsc::Sender<(Headers, Stream)>,
    pub(crate) commands: mpsc::WeakSender<Command>,
}

pub(crate) struct Reader<R> {
    io: R,
    buffer: BytesMut,
    shared: Arc<Shared>,
    acceptor: Option<Acceptor>,
    /// Last stream that the peer opened.
    last: u32,
    options: Options,
}

impl<R: AsyncRead + Unpin> Reader<R> {
    pub(crate) fn new(io: R, shared: Arc<Shared>, acceptor: Option<Acceptor>, options: Options) -> Self {
        Self { io, buffer: BytesMut::new(), shared, acceptor, last: 0, options }
    }

    pub(crate) async fn run(mut self) -> Result<(), ConnectionError> {
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
