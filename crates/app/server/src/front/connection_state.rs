//! What is known of one connection, and when it has to end.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use futures::task::AtomicWaker;
use tokio::sync::Notify;
use tokio::time::Instant;

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
pub(super) struct ConnectionState {
    pub(super) id: u64,
    pub(super) peer: SocketAddr,
    pub(super) origin: IpAddr,
    began: Instant,
    since_ms: u64,
    phase: AtomicU8,
    requests: AtomicU32,
    /// A request on it was authorised and is under way.
    granted: AtomicBool,
    /// It has sent anything at all.
    pub(super) spoke: AtomicBool,
    pub(super) idle_ms: AtomicU64,
    /// First byte of a head that is not complete; 0: none.
    head_ms: AtomicU64,
    /// Since when the peer takes nothing of what is to be sent; 0: it does.
    blocked_ms: AtomicU64,
    pub(super) leaving_ms: AtomicU64,
    closed: AtomicBool,
    pub(super) reader: AtomicWaker,
    pub(super) writer: AtomicWaker,
    /// Wakes the connection's task, so that it ends in good order.
    pub(super) leave: Notify,
}

impl ConnectionState {
    /// In the handshake, since now. `began`: when the server did.
    pub(super) fn new(id: u64, peer: SocketAddr, began: Instant) -> Self {
        let now_ms = since_ms(began);
        Self {
            id,
            peer,
            origin: origin(peer),
            began,
            since_ms: now_ms,
            phase: AtomicU8::new(Phase::Handshake as u8),
            requests: AtomicU32::new(0),
            granted: AtomicBool::new(false),
            spoke: AtomicBool::new(false),
            idle_ms: AtomicU64::new(now_ms),
            head_ms: AtomicU64::new(0),
            blocked_ms: AtomicU64::new(0),
            leaving_ms: AtomicU64::new(0),
            closed: AtomicBool::new(false),
            reader: AtomicWaker::new(),
            writer: AtomicWaker::new(),
            leave: Notify::new(),
        }
    }

    fn now_ms(&self) -> u64 {
        since_ms(self.began)
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

    pub(super) fn is_busy(&self) -> bool {
        self.requests.load(Ordering::Relaxed) > 0 || self.phase() == Phase::Upgraded
    }

    pub(super) fn is_granted(&self) -> bool {
        self.granted.load(Ordering::Relaxed) || self.phase() == Phase::Upgraded
    }

    /// What is to be done with it now, for being too slow or idle.
    pub(super) fn expiry(&self, now_ms: u64, limits: &Limits) -> Expiry {
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

/// What time makes of a connection.
pub(super) enum Expiry {
    Alive,
    /// In good order.
    Graceful,
    /// At once.
    Abrupt,
}

/// Time that an idle connection gets to end in good order.
const LEAVING: Duration = Duration::from_secs(5);

/// Milliseconds since the server began; never 0, which means never.
pub(super) fn since_ms(began: Instant) -> u64 {
    u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX).max(1)
}

/// Where a caller comes from: one machine may have a whole /64 of IPv6.
pub(super) fn origin(peer: SocketAddr) -> IpAddr {
    match peer.ip().to_canonical() {
        IpAddr::V6(v6) => IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() >> 64 << 64)),
        v4 => v4,
    }
}
