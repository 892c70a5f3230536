//! What one side says, in one order.

use std::collections::VecDeque;

use actor::TellError;
use contract::seam::Changes;
use futures::future::select_all;
use tokio::sync::{Mutex, mpsc};

use crate::boards::Feeds;
use crate::v1::{Answer, Call, Row, Rows, Unanswered, answer};
use crate::{FRAME_OF_ROWS, MAX_BODY, MAX_FRAME, WAITING_FRAMES};

/// What both sides say.
pub enum Said {
    /// Rows of a board.
    Rows(Rows),
    /// A message.
    Call(Call),
    /// The answer to one.
    Answer(Answer),
}

/// The other side is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the other side is gone")]
pub struct Ended;

/// The way to the other side. It waits while the other side does not read.
pub struct Out<T> {
    order: Mutex<Order<T>>,
    frames: mpsc::Sender<T>,
}

/// What is said next.
struct Order<T> {
    feeds: Feeds,
    /// Rows that somebody began to say and gave up: they are said by whoever comes next.
    unsaid: VecDeque<T>,
}

impl<T> std::fmt::Debug for Out<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Out")
    }
}

impl<T: From<Said> + Send + 'static> Out<T> {
    /// A way, and its other end. `feeds`: the boards that the other side follows.
    #[must_use]
    pub fn new(feeds: Feeds) -> (Self, mpsc::Receiver<T>) {
        let (frames, ready) = mpsc::channel(WAITING_FRAMES);
        (Self::over(frames, feeds), ready)
    }

    /// As [`Self::new`], where the other end is there already.
    #[must_use]
    pub fn over(frames: mpsc::Sender<T>, feeds: Feeds) -> Self {
        Out { order: Mutex::new(Order { feeds, unsaid: VecDeque::new() }), frames }
    }

    /// Says what has happened on the boards, then `what`. Who gives up waiting loses `what`, and no row.
    ///
    /// # Errors
    /// [`Ended`].
    pub async fn say(&self, what: impl Into<T>) -> Result<(), Ended> {
        let mut order = self.order.lock().await;
        self.rows(&mut order).await?;
        self.frames.send(what.into()).await.map_err(|_| Ended)
    }

    /// Says `what` now, before what has happened on boards: a sign of life, or what nobody waits for.
    ///
    /// # Errors
    /// Too much waits already, or the other side is gone.
    pub fn say_now(&self, what: T) -> Result<(), TellError> {
        self.frames.try_send(what).map_err(|e| match e {
            mpsc::error::TrySendError::Full(_) => TellError::Full,
            mpsc::error::TrySendError::Closed(_) => TellError::Gone,
        })
    }

    /// Says once what stands on boards that the other side does not follow.
    ///
    /// # Errors
    /// [`Ended`].
    pub async fn say_once(&self, mut boards: Feeds) -> Result<(), Ended> {
        let mut order = self.order.lock().await;
        order.unsaid.extend(happened(&mut boards));
        self.rows(&mut order).await
    }

    /// Answers a call; one whose answer is too large has none.
    ///
    /// # Errors
    /// [`Ended`].
    pub async fn answer(&self, id: u64, answer: Result<Vec<u8>, Unanswered>) -> Result<(), Ended> {
        let what = match answer {
            Ok(body) if body.len() < MAX_BODY => answer::What::Body(body),
            Ok(_) => answer::What::Unanswered(Unanswered::Crashed.into()),
            Err(why) => answer::What::Unanswered(why.into()),
        };
        self.say(Said::Answer(Answer { id, what: Some(what) })).await
    }

    /// Says what happens on the boards from now on, until the other side is gone.
    pub async fn follow(&self) {
        let mut changes: Vec<_> = self.order.lock().await.feeds.iter().map(|(_, feed)| feed.changes()).collect();
        loop {
            if self.rows(&mut *self.order.lock().await).await.is_err() {
                return;
            }
            if changes.is_empty() {
                return self.frames.closed().await;
            }
            let any = select_all(changes.iter_mut().map(|c| Box::pin(c.changed())));
            tokio::select! {
                _ = any => {}
                () = self.frames.closed() => return,
            }
        }
    }

    async fn rows(&self, order: &mut Order<T>) -> Result<(), Ended> {
        let Order { feeds, unsaid } = order;
        unsaid.extend(happened(feeds));
        while !unsaid.is_empty() {
            let room = self.frames.reserve().await.map_err(|_| Ended)?;
            if let Some(frame) = unsaid.pop_front() {
                room.send(frame);
            }
        }
        Ok(())
    }
}

/// What has happened on boards, in frames.
fn happened<T: From<Said>>(feeds: &mut Feeds) -> Vec<T> {
    let changes = feeds.iter_mut().filter_map(|(board, feed)| Some((*board, feed.next()?)));
    changes.flat_map(|(board, changes)| frames(board, changes)).map(|frame| Said::Rows(frame).into()).collect()
}

/// A change in frames that are not too large. A row that is too large for any frame is left out, and told.
pub(crate) fn frames(board: &str, changes: Changes) -> Vec<Rows> {
    let Changes { number, whole, rows } = changes;
    let empty = || Rows { board: board.to_owned(), number, whole, more: true, rows: Vec::new() };
    let (mut all, mut size) = (vec![empty()], 0);
    for (key, value) in rows {
        let of_row = key.len() + value.as_ref().map_or(0, Vec::len);
        if of_row > MAX_FRAME - FRAME_OF_ROWS {
            tracing::error!(board, size = of_row, "a row is too large to be told to another process");
            continue;
        }
        if size > 0 && size + of_row > FRAME_OF_ROWS {
            all.push(empty());
            size = 0;
        }
        size += of_row;
        if let Some(last) = all.last_mut() {
            last.rows.push(Row { key, value });
        }
    }
    if let Some(last) = all.last_mut() {
        last.more = false;
    }
    all
}

/// A frame of each direction, of what both sides say and of what only one does.
macro_rules! says {
    ($($frame:ident: $what:ident),*) => {
        $(impl From<Said> for crate::v1::$frame {
            fn from(said: Said) -> Self {
                use crate::v1::$what::What;
                match said {
                    Said::Rows(rows) => What::Rows(rows).into(),
                    Said::Call(call) => What::Call(call).into(),
                    Said::Answer(answer) => What::Answer(answer).into(),
                }
            }
        }

        impl From<crate::v1::$what::What> for crate::v1::$frame {
            fn from(what: crate::v1::$what::What) -> Self {
                Self { what: Some(what) }
            }
        })*
    };
}

says!(ToManager: to_manager, FromManager: from_manager);
