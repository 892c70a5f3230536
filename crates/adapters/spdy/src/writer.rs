//! The loop of a connection that writes frames.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::time::Interval;

use crate::error::ConnectionError;
use crate::frame;
use crate::headers::{Encoder, Headers};
use crate::shared::{Answer, COMMANDS, Command, Entry, Open, OpenError, Shared};

/// Bytes gathered before they are written.
const WRITE: usize = 64 << 10;
/// Payload of one data frame of ours.
const PAYLOAD: usize = 32 << 10;

pub(crate) struct Writer<W> {
    io: W,
    out: BytesMut,
    encoder: Encoder,
    shared: Arc<Shared>,
    next: u32,
    max_streams: usize,
}

impl<W: AsyncWrite + Unpin> Writer<W> {
    /// `first`: the first stream of this side.
    pub(crate) fn new(io: W, shared: Arc<Shared>, first: u32, max_streams: usize) -> Self {
        Self { io, out: BytesMut::new(), encoder: Encoder::default(), shared, next: first, max_streams }
    }

    pub(crate) async fn run(
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
