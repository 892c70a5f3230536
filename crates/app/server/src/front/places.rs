//! Who is connected, and who must go when there is no room.
//!
//! Strangers have few places, and a stranger who wants in when all are taken gets the place of another, of the origin that
//! holds most: one that never said a word before one that did, one without a request before one with, the oldest first. So a
//! flood evicts itself, and a caller from elsewhere always gets in.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::task::AtomicWaker;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::counts::{Counts, add};
use super::settings::Limits;

/// Where a connection stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Phase {
    Handshake = 0,
    Http1 = 1,
    Http2 = 2,
    Upgraded = 3,
}

/// One connection, as all who touch it see it. Times are milliseconds since the server began.
#[derive(Debug)]
pub(super) struct Conn {
    id: u64,
    pub(super) peer: SocketAddr,
    pub(super) origin: IpAddr,
    began: Instant,
    since_ms: u64,
    phase: AtomicU8,
    requests: AtomicU32,
    /// A request on it was authorised and is under way.
    granted: AtomicBool,
    /// It has sent anything at all.
    spoke: AtomicBool,
    idle_ms: AtomicU64,
    /// First byte of a head that is not complete; 0: none.
    head_ms: AtomicU64,
    /// Since when the peer takes nothing of what is to be sent; 0: it does.
    blocked_ms: AtomicU64,
    leaving_ms: AtomicU64,
    closed: AtomicBool,
    pub(super) reader: AtomicWaker,
    pub(super) writer: AtomicWaker,
    /// Wakes the connection's task, so that it ends in good order.
    pub(super) leave: Notify,
}

impl Conn {
    fn now_ms(&self) -> u64 {
        // 0 means never.
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX).max(1)
    }

    pub(super) fn phase(&self) -> Phase {
        match self.phase.load(Ordering::Relaxed) {
            0 => Phase::Handshake,
            1 => Phase::Http1,
            2 => Phase::Http2,
            _ => Phase::Upgraded,
        }
    }

    pub(super) fn enter(&self, phase: Phase) {
        self.idle_ms.store(self.now_ms(), Ordering::Relaxed);
        self.head_ms.store(0, Ordering::Relaxed);
        self.phase.store(phase as u8, Ordering::Relaxed);
    }

    /// Bytes came in.
    pub(super) fn heard(&self) {
        self.spoke.store(true, Ordering::Relaxed);
        if self.phase() == Phase::Http1 && !self.is_busy() && self.head_ms.load(Ordering::Relaxed) == 0 {
            self.head_ms.store(self.now_ms(), Ordering::Relaxed);
        }
    }

    /// Something was to be sent: the peer took some of it, or nothing.
    pub(super) fn sent(&self, some: bool) {
        if some {
            self.blocked_ms.store(0, Ordering::Relaxed);
            self.idle_ms.store(self.now_ms(), Ordering::Relaxed);
        } else if self.blocked_ms.load(Ordering::Relaxed) == 0 {
            self.blocked_ms.store(self.now_ms(), Ordering::Relaxed);
        }
    }

    pub(super) fn request_begins(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.head_ms.store(0, Ordering::Relaxed);
    }

    pub(super) fn request_ends(&self) {
        if self.requests.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.idle_ms.store(self.now_ms(), Ordering::Relaxed);
            self.granted.store(false, Ordering::Relaxed);
        }
    }

    pub(super) fn grant(&self) {
        self.granted.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Ends the connection at once: its next read or write fails.
    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.reader.wake();
        self.writer.wake();
    }

    fn is_busy(&self) -> bool {
        self.requests.load(Ordering::Relaxed) > 0 || self.phase() == Phase::Upgraded
    }

    fn is_granted(&self) -> bool {
        self.granted.load(Ordering::Relaxed) || self.phase() == Phase::Upgraded
    }

    /// What is to be done with it now, for being too slow or idle.
    fn expiry(&self, now_ms: u64, limits: &Limits) -> Expiry {
        let past = |since: u64, limit: Duration| Duration::from_millis(now_ms.saturating_sub(since)) > limit;
        let (leaving, head) = (self.leaving_ms.load(Ordering::Relaxed), self.head_ms.load(Ordering::Relaxed));
        let blocked = self.blocked_ms.load(Ordering::Relaxed);
        match self.phase() {
            Phase::Handshake if past(self.since_ms, limits.handshake) => Expiry::Abrupt,
            Phase::Handshake | Phase::Upgraded => Expiry::Alive,
            // The last answer is not read yet.
            _ if blocked > 0 && past(blocked, limits.request) => Expiry::Abrupt,
            _ if blocked > 0 => Expiry::Alive,
            _ if self.is_busy() => Expiry::Alive,
            _ if leaving > 0 && past(leaving, LEAVING) => Expiry::Abrupt,
            _ if head > 0 && past(head, limits.head) => Expiry::Abrupt,
            _ if leaving == 0 && past(self.idle_ms.load(Ordering::Relaxed), limits.idle) => Expiry::Graceful,
            _ => Expiry::Alive,
        }
    }
}

enum Expiry {
    Alive,
    /// In good order.
    Graceful,
    /// At once.
    Abrupt,
}

/// Time that an idle connection gets to end in good order.
const LEAVING: Duration = Duration::from_secs(5);

#[derive(Debug, Default)]
struct Table {
    next: u64,
    strangers: BTreeMap<u64, Arc<Conn>>,
    known: BTreeMap<u64, Arc<Conn>>,
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
        let claims = |conn: &Conn| {
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

/// Where a caller comes from: one machine may have a whole /64 of IPv6.
fn origin(peer: SocketAddr) -> IpAddr {
    match peer.ip().to_canonical() {
        IpAddr::V6(v6) => IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() >> 64 << 64)),
        v4 => v4,
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
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX).max(1)
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
        let conn = Arc::new(Conn {
            id,
            peer,
            origin: origin(peer),
            began: self.began,
            since_ms: self.now_ms(),
            phase: AtomicU8::new(Phase::Handshake as u8),
            requests: AtomicU32::new(0),
            granted: AtomicBool::new(false),
            spoke: AtomicBool::new(false),
            idle_ms: AtomicU64::new(self.now_ms()),
            head_ms: AtomicU64::new(0),
            blocked_ms: AtomicU64::new(0),
            leaving_ms: AtomicU64::new(0),
            closed: AtomicBool::new(false),
            reader: AtomicWaker::new(),
            writer: AtomicWaker::new(),
            leave: Notify::new(),
        });
        table.strangers.insert(id, conn.clone());
        Some(Place { places: self.clone(), conn })
    }

    /// The caller turned out to be somebody.
    pub(super) fn trust(&self, conn: &Conn) {
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
    pub(super) conn: Arc<Conn>,
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
