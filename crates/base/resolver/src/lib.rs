//! Names to addresses, without a thread: dropping a look-up ends it, and nothing of it stays.
//!
//! As Go's own resolver, which a kubelet uses, from files that are read for each look-up: changes count at once (decision 0019).
//! Never decides which name is wanted, and dials nothing but name servers.

#![forbid(unsafe_code)]

mod ask;
mod config;
mod packet;
mod words;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6, UdpSocket};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::join;

use crate::ask::{Failure, Servers};
use crate::config::{Config, Order, in_hosts, is_domain_name};
use crate::packet::Kind;
pub use crate::words::io_text;

/// The files of the host, and where its name servers listen.
#[derive(Debug)]
struct Host {
    etc: PathBuf,
    port: u16,
    /// Counts look-ups, for servers that take turns.
    turn: AtomicUsize,
}

/// Looks names up. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Resolver(Arc<Host>);

impl Resolver {
    /// As this host's files say.
    #[must_use]
    pub fn new() -> Self {
        Self::with_etc(PathBuf::from("/etc"), 53)
    }

    /// `etc`: the folder of `resolv.conf`, `hosts` and `nsswitch.conf`; `port`: of the name servers.
    #[must_use]
    pub fn with_etc(etc: PathBuf, port: u16) -> Self {
        Resolver(Arc::new(Host { etc, port, turn: AtomicUsize::new(0) }))
    }

    /// The places to dial for a host, the best first; never empty.
    ///
    /// # Errors
    /// Go's text, from `lookup NAME` on: the name does not exist, or no server says so or otherwise in time.
    pub async fn places(&self, host: &str, port: u16) -> Result<Vec<SocketAddr>, String> {
        if let Some(literal) = literal(host, port) {
            return Ok(vec![literal]);
        }
        let mut found = self.look_up(host).await?;
        found.sort_by_key(|address| rank(*address));
        Ok(found.into_iter().map(|address| SocketAddr::new(address, port)).collect())
    }

    async fn look_up(&self, name: &str) -> Result<Vec<IpAddr>, String> {
        let nowhere = || format!("lookup {name}: no such host");
        let order = Order::read(&self.read("nsswitch.conf"));
        let hosts = || Some(in_hosts(&self.read("hosts"), name)).filter(|found| !found.is_empty());
        match order {
            Order::Files => hosts().ok_or_else(nowhere),
            Order::FilesDns => match hosts() {
                Some(found) => Ok(found),
                None => self.ask(name).await,
            },
            Order::Dns => self.ask(name).await,
            Order::DnsFiles => self.ask(name).await.or_else(|why| hosts().ok_or(why)),
        }
    }

    async fn ask(&self, name: &str) -> Result<Vec<IpAddr>, String> {
        let mut last = None;
        if is_domain_name(name) {
            let config = Config::read(&self.read("resolv.conf"), &hostname());
            let first = if config.rotate { self.0.turn.fetch_add(1, Ordering::Relaxed) } else { 0 };
            let servers = Servers { config: &config, port: self.0.port, first };
            for full in config.names(name) {
                let (v4, v6) = if config.single_request {
                    (servers.ask(&full, Kind::V4).await, servers.ask(&full, Kind::V6).await)
                } else {
                    join(servers.ask(&full, Kind::V4), servers.ask(&full, Kind::V6)).await
                };
                let mut found = Vec::new();
                for answer in [v4, v6] {
                    match answer {
                        Ok(addresses) => found.extend(addresses),
                        // What became of the longer names says more than that of the name alone.
                        Err(why) if last.is_none() || full.len() != name.len() + 1 => last = Some(why),
                        Err(_) => {}
                    }
                }
                if !found.is_empty() {
                    return Ok(found);
                }
            }
        }
        Err(match last {
            Some(Failure { server, why }) => format!("lookup {name} on {server}: {why}"),
            None => format!("lookup {name}: no such host"),
        })
    }

    /// A missing file is an empty one. Small files of the host's own disk: no thread is worth their while.
    fn read(&self, file: &str) -> String {
        std::fs::read(self.0.etc.join(file)).map(|b| String::from_utf8_lossy(&b).into_owned()).unwrap_or_default()
    }
}

impl Default for Resolver {
    fn default() -> Self {
        Self::new()
    }
}

fn hostname() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname").map(|name| name.trim().to_owned()).unwrap_or_default()
}

/// An address instead of a name, perhaps with an interface behind it (`fe80::1%eth0`).
fn literal(host: &str, port: u16) -> Option<SocketAddr> {
    if let Ok(address) = host.parse::<IpAddr>() {
        return Some(SocketAddr::new(address, port));
    }
    let (address, zone) = host.split_once('%')?;
    let index = || std::fs::read_to_string(format!("/sys/class/net/{zone}/ifindex")).ok()?.trim().parse().ok();
    let zone = if zone.contains('/') { None } else { zone.parse().ok().or_else(index) };
    Some(SocketAddrV6::new(address.parse().ok()?, port, 0, zone?).into())
}

/// Small is good: a place that this host has a way to, then by the order of RFC 6724.
fn rank(address: IpAddr) -> (bool, u8) {
    let (any, precedence) = match address {
        IpAddr::V4(_) => (Ipv4Addr::UNSPECIFIED.into(), 1),
        IpAddr::V6(a) => (Ipv6Addr::UNSPECIFIED.into(), if a.is_unique_local() { 2 } else { 0 }),
    };
    // Connecting a UDP socket sends nothing: the kernel only looks for the way.
    let way = UdpSocket::bind(SocketAddr::new(any, 0)).and_then(|s| s.connect((address, 9)));
    (way.is_err(), precedence)
}

#[cfg(test)]
mod tests;
