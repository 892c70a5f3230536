//! Connection pools: one for all requests, and more where many watches share HTTP/2 connections.
//!
//! A server allows so many streams per connection (100 to 1000), and a client that waits for a free one would wait for a
//! watch to end. So each pool carries a limited number of follows; the first also carries everything else.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use bytes::Bytes;
use http_body_util::Full;
use hyper::rt::Executor;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioTimer;
use tokio::runtime::Handle;

use crate::connect::Connector;

pub(crate) type Http = Client<Connector, Full<Bytes>>;

/// Follows per pool: below the least limit that servers are known to have, with room for requests.
const FOLLOWS: usize = 64;
/// HTTP/2: a silent connection is asked for a sign of life, and given up when none comes (interfaces 9.1).
const PING_EVERY: Duration = Duration::from_secs(30);
const PING_LIMIT: Duration = Duration::from_secs(15);
/// HTTP/2: what a server may send ahead of its reader. The library's 2 MiB per stream are meant for downloads.
const STREAM_WINDOW: u32 = 256 << 10;
const CONNECTION_WINDOW: u32 = 4 << 20;

/// Drives connections where the client was made, whoever asks first: they are shared.
#[derive(Clone)]
struct AtHome(Handle);

impl<F> Executor<F> for AtHome
where
    F: Future<Output: Send> + Send + 'static,
{
    fn execute(&self, connection: F) {
        self.0.spawn(connection);
    }
}

pub(crate) struct Pools {
    connector: Connector,
    home: AtHome,
    all: ArcSwap<Vec<Http>>,
    /// Follows that live on each.
    follows: Mutex<Vec<usize>>,
}

/// A follow's place; given back when dropped.
pub(crate) struct Place {
    pools: Arc<Pools>,
    pub(crate) index: usize,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut follows = self.pools.follows.lock().unwrap_or_else(PoisonError::into_inner);
        follows[self.index] -= 1;
    }
}

impl Pools {
    pub(crate) fn new(connector: Connector) -> Arc<Self> {
        let home = AtHome(Handle::current());
        let all = ArcSwap::from_pointee(vec![pool(&connector, &home)]);
        Arc::new(Self { connector, home, all, follows: Mutex::new(vec![0]) })
    }

    /// The pool of a place; 0 is the one for requests.
    pub(crate) fn get(&self, index: usize) -> Http {
        let all = self.all.load();
        all.get(index).unwrap_or(&all[0]).clone()
    }

    /// A place for a follow.
    pub(crate) fn place(self: &Arc<Self>) -> Place {
        let mut follows = self.follows.lock().unwrap_or_else(PoisonError::into_inner);
        let index = follows.iter().position(|n| *n < FOLLOWS).unwrap_or_else(|| {
            follows.push(0);
            let mut all = Vec::clone(&self.all.load());
            all.push(pool(&self.connector, &self.home));
            self.all.store(Arc::new(all));
            follows.len() - 1
        });
        follows[index] += 1;
        Place { pools: self.clone(), index }
    }

    /// New pools in place of the old ones, whose connections end with what is under way on them.
    pub(crate) fn exchange(&self) {
        // Locked, so that no place is made meanwhile.
        let follows = self.follows.lock().unwrap_or_else(PoisonError::into_inner);
        self.all.store(Arc::new(follows.iter().map(|_| pool(&self.connector, &self.home)).collect()));
    }
}

fn pool(connector: &Connector, home: &AtHome) -> Http {
    Client::builder(home.clone())
        .pool_timer(TokioTimer::new())
        .timer(TokioTimer::new())
        .pool_idle_timeout(Duration::from_secs(90))
        .pool_max_idle_per_host(8)
        .http2_keep_alive_interval(PING_EVERY)
        .http2_keep_alive_timeout(PING_LIMIT)
        .http2_keep_alive_while_idle(true)
        .http2_initial_stream_window_size(STREAM_WINDOW)
        .http2_initial_connection_window_size(CONNECTION_WINDOW)
        .build(connector.clone())
}
