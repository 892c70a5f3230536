//! Who is connected, and who must go when there is no room.
//!
//! Strangers have few places, and a stranger who wants in when all are taken gets the place of another, of the origin that
//! holds most: one that never said a word before one that did, one without a request before one with, the oldest first. So a
//! flood evicts itself, and a caller from elsewhere always gets in.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::time::Instant;

use super::connection_state::{ConnectionState, Expiry, Phase, since_ms};
use super::counts::{Counts, add};
use super::settings::Limits;

#[derive(Debug, Default)]
struct Table {
    next: u64,
    strangers: BTreeMap<u64, Arc<ConnectionState>>,
    known: BTreeMap<u64, Arc<ConnectionState>>,
    /// Sockets that are open: those in the table, and those that lost their place and have not noticed yet.
    open: usize,
}

impl Table {
    fn len(&self) -> usize {
        self.strangers.len() + self.known.len()
    }

    /// The stranger who goes first, if any may be made to.
    fn stranger_to_go(&self, places: usize) -> Option<u64> {
        // By origin: all, and those who were not let in.
        let mut held: BTreeMap<IpAddr, (usize, usize)> = BTreeMap::new();
        for conn in self.strangers.values() {
            let (all, outside) = held.entry(conn.origin).or_default();
            *all += 1;
            *outside += usize::from(!conn.is_granted());
        }
        // Who was let in keeps the place, unless one origin takes most of them.
        let claims = |conn: &ConnectionState| {
            let (all, outside) = held.get(&conn.origin).copied().unwrap_or_default();
            if all * 2 > places { all } else { outside }
        };
        let may_go = self.strangers.values().filter(|c| !c.is_granted() || claims(c) * 2 > places);
        may_go
            .min_by_key(|c| {
                let spoke = c.spoke.load(Ordering::Relaxed);
                (Reverse(claims(c)), c.is_granted(), c.is_busy(), spoke, c.id)
            })
            .map(|c| c.id)
    }
}

/// All connections of a server.
#[derive(Debug)]
pub(super) struct Places {
    table: Mutex<Table>,
    limits: Limits,
    counts: Arc<Counts>,
    began: Instant,
    /// Ticks when a place becomes free.
    freed: Notify,
}

impl Places {
    pub(super) fn new(limits: Limits, counts: Arc<Counts>) -> Arc<Self> {
        let table = Mutex::new(Table::default());
        Arc::new(Self { table, limits, counts, began: Instant::now(), freed: Notify::new() })
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now_ms(&self) -> u64 {
        since_ms(self.began)
    }

    /// A place for a new caller; `None`: there is none to be had.
    pub(super) fn admit(self: &Arc<Self>, peer: SocketAddr) -> Option<Place> {
        let mut table = self.table();
        let full = table.strangers.len() >= self.limits.strangers || table.len() >= self.limits.connections;
        if full {
            let goes = table.stranger_to_go(self.limits.strangers).and_then(|id| table.strangers.remove(&id));
            let goes = goes.or_else(|| {
                // All places are held by known callers: the one that was idle longest goes.
                let idle = table.known.values().filter(|c| !c.is_busy());
                let id = idle.min_by_key(|c| c.idle_ms.load(Ordering::Relaxed)).map(|c| c.id)?;
                (table.strangers.len() < self.limits.strangers).then(|| table.known.remove(&id))?
            });
            let Some(goes) = goes else {
                add(&self.counts.refused);
                return None;
            };
            goes.close();
            add(&self.counts.evicted);
        }
        add(&self.counts.accepted);
        table.next += 1;
        table.open += 1;
        let id = table.next;
        let conn = Arc::new(ConnectionState::new(id, peer, self.began));
        table.strangers.insert(id, conn.clone());
        Some(Place { places: self.clone(), conn })
    }

    /// The caller turned out to be somebody.
    pub(super) fn trust(&self, conn: &ConnectionState) {
        let mut table = self.table();
        if let Some(conn) = table.strangers.remove(&conn.id) {
            table.known.insert(conn.id, conn);
        }
    }

    /// Ends those that are too slow or idle for too long.
    pub(super) fn sweep(&self) {
        let now = self.now_ms();
        let table = self.table();
        for conn in table.strangers.values().chain(table.known.values()).filter(|c| !c.is_closed()) {
            match conn.expiry(now, &self.limits) {
                Expiry::Alive => {}
                Expiry::Graceful => {
                    conn.leaving_ms.store(now, Ordering::Relaxed);
                    conn.leave.notify_one();
                    add(&self.counts.expired);
                }
                Expiry::Abrupt => {
                    conn.close();
                    if conn.leaving_ms.load(Ordering::Relaxed) == 0 {
                        add(&self.counts.expired);
                    }
                }
            }
        }
    }

    pub(super) fn len(&self) -> usize {
        self.table().len()
    }

    /// Connections that lost their place and are open still.
    pub(super) fn ending(&self) -> usize {
        let table = self.table();
        table.open.saturating_sub(table.len())
    }

    /// Asks all to end in good order; who is still in the handshake has nothing to lose.
    pub(super) fn leave_all(&self) {
        let table = self.table();
        for conn in table.strangers.values().chain(table.known.values()) {
            match conn.phase() {
                Phase::Handshake => conn.close(),
                _ => conn.leave.notify_one(),
            }
        }
    }

    /// Ends all at once.
    pub(super) fn close_all(&self) {
        let table = self.table();
        for conn in table.strangers.values().chain(table.known.values()) {
            conn.close();
        }
    }

    /// Resolves when nobody is connected any more.
    pub(super) async fn emptied(&self) {
        loop {
            let freed = self.freed.notified();
            tokio::pin!(freed);
            freed.as_mut().enable();
            if self.len() == 0 {
                return;
            }
            freed.await;
        }
    }
}

/// The place of one connection; free again when this is dropped.
#[derive(Debug)]
pub(super) struct Place {
    places: Arc<Places>,
    pub(super) conn: Arc<ConnectionState>,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut table = self.places.table();
        table.strangers.remove(&self.conn.id);
        table.known.remove(&self.conn.id);
        table.open = table.open.saturating_sub(1);
        drop(table);
        self.places.freed.notify_waiters();
    }
}

#[cfg(test)]
mod tests;
