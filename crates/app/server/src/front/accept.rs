//! The listener: takes connections, ends the slow ones, stops in good order.

use std::convert::Infallible;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use futures::FutureExt;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::time::MissedTickBehavior;

use super::counts::{Counts, add};
use super::error::ServeError;
use super::places::{Place, Places};
use super::serve::{self, Transport};
use super::service::Served;
use super::settings::Limits;
use crate::listener::{Accepting, Listener};

/// Connections that the kernel keeps until they are taken.
const BACKLOG: u32 = 1024;
/// Silence after which a peer is asked whether it is there, and between such questions.
const KEEPALIVE: Duration = Duration::from_secs(15);
/// How often slow and idle connections are looked for.
const SWEEP: Duration = if cfg!(test) { Duration::from_millis(50) } else { Duration::from_secs(1) };
/// Pause after a panic.
const BREATH: Duration = Duration::from_millis(100);
/// Connections that had to go and are open still, before the next one is taken at leisure.
const ENDING: usize = 16;
/// Time for connections to end after they were told to at once.
const LAST: Duration = Duration::from_secs(1);

/// A port that is open; nothing is answered before [`Listening::serve`].
pub struct Listening {
    listener: Listener<TcpListener>,
    transport: Transport,
    limits: Limits,
    counts: Arc<Counts>,
}

impl std::fmt::Debug for Listening {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Listening").field(&self.listener).finish()
    }
}

/// Opens a port. IPv4's "any" is taken for both families where the machine has both.
pub(super) fn listen(
    (address, port): (IpAddr, u16),
    flag: &'static str,
    transport: Transport,
    limits: Limits,
    accepting: Accepting,
) -> Result<Listening, ServeError> {
    let wanted = SocketAddr::new(address, port);
    let both = SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), port);
    let bound = match address {
        IpAddr::V4(v4) if v4.is_unspecified() => match bind(both) {
            // A machine without IPv6.
            Err(e) if e.kind() != std::io::ErrorKind::AddrInUse => bind(wanted),
            bound => bound,
        },
        _ => bind(wanted),
    };
    let failed = |source| ServeError::Listen { address: wanted, flag, source };
    let socket = bound.map_err(failed)?;
    let bound = socket.local_addr().map_err(failed)?;
    let listener = Listener::new(socket, format!("{flag} {bound}"), accepting, move || bind(bound));
    Ok(Listening { listener, transport, limits, counts: Arc::default() })
}

fn bind(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_reuseaddr(true)?;
    // Taken over by the connections: a peer that vanished is found out, as by a Go server, within some minutes.
    let keepalive = socket2::TcpKeepalive::new().with_time(KEEPALIVE).with_interval(KEEPALIVE);
    socket2::SockRef::from(&socket).set_tcp_keepalive(&keepalive)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

impl Listening {
    /// Where it listens.
    ///
    /// # Errors
    /// The socket is broken.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.listener.address()
    }

    /// What happens to callers.
    #[must_use]
    pub fn counts(&self) -> Arc<Counts> {
        self.counts.clone()
    }

    /// Serves until `stop` resolves. Then nobody new is taken, requests and streams get [`Limits::grace`] to end, and what is
    /// left is cut off.
    pub async fn serve(self, router: Router, stop: impl Future<Output = ()> + Send) {
        let Self { listener, transport, limits, counts } = self;
        let places = Places::new(limits, counts.clone());
        let access = match &transport {
            Transport::Plain => None,
            Transport::Tls { access, .. } => Some(access.clone()),
        };
        let served = Arc::new(Served { router, access, places: places.clone(), limits, counts });
        // Also when this future is dropped, connections end.
        let _last = Last(places.clone());
        let taking = again(&served.counts, || accept(&listener, &places, &transport, &served));
        // Cancel-safe: who was taken has a task of their own.
        tokio::select! {
            () = stop => {}
            never = taking => match never {},
        }
        drop(listener);
        places.leave_all();
        if tokio::time::timeout(limits.grace, places.emptied()).await.is_err() {
            tracing::info!(connections = places.len(), "connections are cut off at the end of the HTTP server");
            places.close_all();
            // Whoever does not even notice this goes with the process.
            let _ = tokio::time::timeout(LAST, places.emptied()).await;
        }
    }
}

/// Takes connections, and ends those that are too slow or idle.
async fn accept(
    listener: &Listener<TcpListener>,
    places: &Arc<Places>,
    transport: &Transport,
    served: &Arc<Served>,
) -> Infallible {
    let mut sweeps = tokio::time::interval(SWEEP);
    sweeps.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = sweeps.tick(), if places.len() > 0 => places.sweep(),
            (socket, peer) = listener.accept() => {
                if let Some(place) = places.admit(peer) {
                    begin(socket, place, transport.clone(), served.clone());
                }
                if places.ending() > ENDING {
                    // Those who had to go get the turn to do so: a flood must not run ahead of its own end.
                    tokio::task::yield_now().await;
                }
            }
        }
    }
}

/// Begins work anew that panicked: a dead accept loop would leave a port open on which nobody answers.
async fn again<F: Future<Output = Infallible>>(counts: &Counts, mut work: impl FnMut() -> F) -> Infallible {
    loop {
        let Err(_panic) = AssertUnwindSafe(work()).catch_unwind().await;
        add(&counts.panics);
        tracing::error!("the accept loop of the HTTP server panicked and begins anew");
        tokio::time::sleep(BREATH).await;
    }
}

struct Last(Arc<Places>);

impl Drop for Last {
    fn drop(&mut self) {
        self.0.close_all();
    }
}

fn begin(socket: TcpStream, place: Place, transport: Transport, served: Arc<Served>) {
    // Small answers at once; a socket that cannot is served all the same.
    let _ = socket.set_nodelay(true);
    tokio::spawn(async move {
        let counts = served.counts.clone();
        if AssertUnwindSafe(serve::serve_connection(socket, place, transport, served)).catch_unwind().await.is_err() {
            add(&counts.panics);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_accept_loop_that_panics_begins_anew() {
        let counts = Counts::default();
        let mut runs = 0;
        let taking = again(&counts, || {
            runs += 1;
            let broken = runs < 3;
            async move {
                assert!(!broken, "as a test wants it");
                std::future::pending().await
            }
        });
        let ended = tokio::time::timeout(Duration::from_secs(60), taking).await;
        assert!(ended.is_err(), "it goes on");
        assert_eq!((runs, counts.read().panics), (3, 2));
    }
}
