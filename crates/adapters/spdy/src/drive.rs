//! A connection while it lives: one loop reads frames, one writes them.

use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio::time::MissedTickBehavior;

use crate::error::ConnectionError;
use crate::reader::{Acceptor, Reader};
use crate::shared::{Command, Options, Shared};
use crate::writer::Writer;

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
    let (ping_every, max_streams) = (options.ping_every, options.max_streams);
    let reader = Reader::new(read, Arc::clone(&shared), acceptor, options);
    let ping = ping_every.map(|every| {
        let mut ticks = tokio::time::interval_at(tokio::time::Instant::now() + every, every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        ticks
    });
    let first = if is_client { 1 } else { 2 };
    let writer = Writer::new(write, shared, first, max_streams);
    // Cancel-safe: whichever ends first ends the connection.
    let result = tokio::select! {
        read = reader.run() => read,
        written = writer.run(commands, ping, first) => written,
    };
    drop(closer);
    result
}
