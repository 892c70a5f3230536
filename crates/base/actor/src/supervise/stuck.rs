//! Finds an actor that holds its mailbox shut while messages wait.

use crate::record::Record;
use std::pin::Pin;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::{Instant, Sleep};

/// Rounds per patience: found after `patience` to `patience * 5 / 4` with messages queued.
const ROUNDS: u32 = 4;

pub(super) struct Stuck {
    timer: Pin<Box<Sleep>>,
    round: Duration,
    turns: u64,
    bad_rounds: u32,
}

impl Stuck {
    pub(super) fn new(patience: Duration) -> Self {
        let round = (patience / ROUNDS).max(Duration::from_millis(1));
        Stuck { timer: Box::pin(tokio::time::sleep(round)), round, turns: u64::MAX, bad_rounds: 0 }
    }

    /// Ready when the actor made no turn for its patience while messages were queued.
    pub(super) fn poll(&mut self, record: &Record, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            ready!(self.timer.as_mut().poll(cx));
            let turns = record.count.turns.load(Relaxed);
            let bad = record.depth() > 0 && (turns == self.turns || self.bad_rounds == 0);
            self.bad_rounds = if bad { self.bad_rounds + 1 } else { 0 };
            self.turns = turns;
            if self.bad_rounds > ROUNDS {
                return Poll::Ready(());
            }
            self.timer.as_mut().reset(Instant::now() + self.round);
        }
    }
}
