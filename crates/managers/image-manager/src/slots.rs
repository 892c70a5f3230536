//! How many pulls run at a time, and the view of them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use contract::board::ValuePoster;
use contract::image::ImageView;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Pull slots. Outlive the actor, because pulls do.
#[derive(Clone, Debug)]
pub struct Slots {
    free: Option<Arc<Semaphore>>,
    board: Arc<Board>,
}

#[derive(Debug, Default)]
struct Board {
    rows: Mutex<Rows>,
}

#[derive(Debug, Default)]
struct Rows {
    /// Board of the actor's current generation.
    poster: Option<ValuePoster<ImageView>>,
    next: u64,
    pulling: BTreeMap<u64, String>,
    queued: usize,
}

impl Slots {
    /// `serializeImagePulls` and `maxParallelImagePulls`: one at a time, so many, or (`None`) as many as come.
    #[must_use]
    pub fn new(serial: bool, parallel_max: Option<usize>) -> Self {
        let n = if serial { Some(1) } else { parallel_max.map(|n| n.max(1)) };
        Self { free: n.map(|n| Arc::new(Semaphore::new(n))), board: Arc::default() }
    }

    /// From now on what runs and waits is shown here.
    pub(crate) fn show_on(&self, poster: ValuePoster<ImageView>) {
        self.board.change(|rows| rows.poster = Some(poster));
    }

    /// Waits in line for a slot.
    pub(crate) async fn acquire(&self, image: &str) -> Slot {
        let waiting = Waiting::new(self.board.clone());
        let permit = match &self.free {
            // Never closed, so the wait always ends with a permit.
            Some(free) => free.clone().acquire_owned().await.ok(),
            None => None,
        };
        drop(waiting);
        let mut id = 0;
        self.board.change(|rows| {
            id = rows.next;
            rows.next += 1;
            rows.pulling.insert(id, image.to_owned());
        });
        Slot { id, board: self.board.clone(), _permit: permit }
    }
}

impl Board {
    fn change(&self, f: impl FnOnce(&mut Rows)) {
        let mut rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        f(&mut rows);
        if let Some(poster) = &rows.poster {
            poster.publish(ImageView { pulling: rows.pulling.values().cloned().collect(), queued: rows.queued });
        }
    }
}

/// A request in the line.
struct Waiting(Arc<Board>);

impl Waiting {
    fn new(board: Arc<Board>) -> Self {
        board.change(|rows| rows.queued += 1);
        Self(board)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.change(|rows| rows.queued -= 1);
    }
}

/// A running pull; over when dropped.
pub(crate) struct Slot {
    id: u64,
    board: Arc<Board>,
    _permit: Option<OwnedSemaphorePermit>,
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.board.change(|rows| drop(rows.pulling.remove(&self.id)));
    }
}
