//! Ways to a collector.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use grpc::{Connector, Link};
use resolver::Resolver;
use tokio::net::{TcpStream, UnixStream};

/// Where a collector listens.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Endpoint {
    /// Host or address, and port.
    Tcp(String, u16),
    /// A socket in the file system.
    Unix(PathBuf),
    /// A socket of the kernel's own, without a file.
    Abstract(String),
}

impl Endpoint {
    /// Opens connections to it. A name is looked up each time: it may lead to another place after a restart.
    pub(crate) fn connector(&self, resolver: &Resolver) -> Connector {
        match self.clone() {
            Self::Tcp(host, port) => {
                let resolver = resolver.clone();
                Arc::new(move || {
                    let (resolver, host) = (resolver.clone(), host.clone());
                    Box::pin(async move { Ok(Link::Stream(Box::new(dial(&resolver, &host, port).await?))) })
                })
            }
            Self::Unix(path) => grpc::unix(path),
            Self::Abstract(name) => {
                let path = PathBuf::from(format!("\0{name}"));
                Arc::new(move || {
                    let path = path.clone();
                    Box::pin(async move { Ok(Link::Stream(Box::new(UnixStream::connect(path).await?))) })
                })
            }
        }
    }
}

/// The first place that answers.
async fn dial(resolver: &Resolver, host: &str, port: u16) -> io::Result<TcpStream> {
    let places = resolver.places(host, port).await.map_err(io::Error::other)?;
    let mut failed = None;
    for place in places {
        match TcpStream::connect(place).await {
            Ok(stream) => {
                // Failing to set it costs time only.
                let _slower = stream.set_nodelay(true);
                return Ok(stream);
            }
            Err(e) => {
                failed.get_or_insert(io::Error::new(e.kind(), format!("dial tcp {place}: {}", resolver::io_text(&e))));
            }
        }
    }
    Err(failed.unwrap_or_else(|| io::Error::other(format!("{host} has no address"))))
}
