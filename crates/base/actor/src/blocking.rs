//! The door for work that blocks its thread: files, the journal, name look-ups.
//!
//! Each [`Class`] has threads of its own, made on demand and ended when idle, so that one class that hangs (a dead NFS server)
//! cannot hold up another. In simulated time there are no threads: work runs in the poll that asks for it, in a fixed order, and
//! how long a call is out is told by the simulated clock.

mod class;
mod effects;
mod hold;
mod pool;
mod serial;

use crate::crash::Caught;
use crate::record::Record;
use pool::Pool;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

pub use class::Class;
pub use effects::{Effects, WorkPanicked};
pub use hold::Hold;
pub use pool::ClassInfo;
pub(crate) use pool::{hang, is_inline};
pub use serial::Serial;

/// A call is overdue after this long: it is named with its actor, and a vital class that finishes nothing meanwhile makes
/// the kernel unhealthy. Longer than any disk takes that will answer at all.
const PATIENCE: Duration = Duration::from_secs(60);

/// A call that runs for this part of the patience (10 s) hangs: it gives its place in the class to the next one, where the
/// class has further threads for that.
const SOONER: u32 = 6;

/// The pools of a kernel. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Blocking(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    pools: Vec<Pool>,
    inline: bool,
    patience: Duration,
}

impl Blocking {
    /// Without threads when `inline`.
    pub(crate) fn new(inline: bool, patience: Option<Duration>) -> Self {
        let patience = patience.unwrap_or(PATIENCE);
        let pools = Class::ALL.into_iter().map(|class| Pool::new(class, patience / SOONER)).collect();
        Blocking(Arc::new(Inner { pools, inline, patience }))
    }

    fn pool(&self, class: Class) -> &Pool {
        &self.0.pools[class as usize]
    }

    pub(crate) async fn run<R: Send + 'static>(
        &self,
        class: Class,
        actor: &Arc<Record>,
        work: impl FnOnce() -> R + Send + 'static,
    ) -> Result<R, Caught> {
        if !self.0.inline {
            return self.pool(class).run(actor, work).await;
        }
        match self.pool(class).inline(actor, work) {
            Some(out) => out,
            None => std::future::pending().await,
        }
    }

    /// A class on which the whole node rests and which finishes nothing for longer than the patience, with the actor
    /// whose call is out for longest.
    pub(crate) fn stands_still(&self) -> Option<(Class, Arc<str>)> {
        let now = Instant::now();
        let mut vital = self.0.pools.iter().filter(|p| p.class().is_vital());
        vital.find_map(|p| Some((p.class(), p.stands_still(now, self.0.patience)?)))
    }

    /// What each class is at.
    pub(crate) fn classes(&self) -> Vec<ClassInfo> {
        let now = Instant::now();
        self.0.pools.iter().map(|p| p.info(now, self.0.patience)).collect()
    }

    /// Calls of that actor that have not come back for longer than the patience, as `class for seconds`.
    pub(crate) fn overdue(&self, actor: &Record) -> Vec<String> {
        let now = Instant::now();
        let of_class = |p: &Pool| p.overdue(actor.id, now, self.0.patience);
        self.0.pools.iter().flat_map(of_class).collect()
    }

    /// Logs each overdue call once.
    pub(crate) fn log_overdue(&self) {
        let now = Instant::now();
        self.0.pools.iter().for_each(|p| p.log_overdue(now, self.0.patience));
    }

    /// Waits, blocking, until the vital classes have finished what they run, `limit` at most; whether they have.
    pub(crate) fn settle(&self, limit: Duration) -> bool {
        let until = Instant::now() + limit;
        self.0.pools.iter().filter(|p| p.class().is_vital()).all(|p| p.settle(until))
    }
}
