//! Questions to name servers, over UDP and TCP.

use std::fmt::Display;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use ring::rand::{SecureRandom, SystemRandom};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::timeout;

use crate::config::Config;
use crate::packet::{self, Answer, Kind, MAX_UDP};
use crate::words::io_text;

/// Why no address was found, and at which server.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) server: SocketAddr,
    pub(crate) why: String,
}

/// The servers of a look-up.
pub(crate) struct Servers<'a> {
    pub(crate) config: &'a Config,
    pub(crate) port: u16,
    /// Which of them comes first, modulo their number.
    pub(crate) first: usize,
}

impl Servers<'_> {
    /// Asks one after the other for a full name, until one knows whether it has an address.
    pub(crate) async fn ask(&self, name: &str, kind: Kind) -> Result<Vec<IpAddr>, Failure> {
        let all = &self.config.servers;
        let mut last = None;
        for turn in (0..self.config.attempts).flat_map(|_| 0..all.len()) {
            let server = SocketAddr::new(all[(self.first + turn) % all.len()], self.port);
            let why = match self.exchange(server, name, kind).await {
                Ok(Answer::Addresses(found)) => return Ok(found),
                Ok(Answer::NoSuchHost) => return Err(Failure { server, why: "no such host".to_owned() }),
                Ok(Answer::Useless(why)) => why.to_owned(),
                Ok(Answer::Truncated) => "no answer from DNS server".to_owned(),
                Err(why) => why,
            };
            last = Some(Failure { server, why });
        }
        Err(last.expect("there is at least one server and one attempt"))
    }

    async fn exchange(&self, server: SocketAddr, name: &str, kind: Kind) -> Result<Answer, String> {
        if !self.config.tcp {
            let answer = self.by_udp(server, name, kind).await?;
            if answer != Answer::Truncated {
                return Ok(answer);
            }
        }
        self.by_tcp(server, name, kind).await
    }

    async fn by_udp(&self, server: SocketAddr, name: &str, kind: Kind) -> Result<Answer, String> {
        let asked = packet::question(id()?, name, kind);
        let dial = |e: io::Error| format!("dial udp {server}: {}", io_text(&e));
        let any = if server.is_ipv4() { IpAddr::from(Ipv4Addr::UNSPECIFIED) } else { Ipv6Addr::UNSPECIFIED.into() };
        let socket = UdpSocket::bind((any, 0)).await.map_err(dial)?;
        socket.connect(server).await.map_err(dial)?;
        let way = Way("udp", socket.local_addr().map_err(dial)?, server);
        socket.send(&asked).await.map_err(|e| way.broke("write", &e))?;
        let receive = async {
            let mut buffer = [0; MAX_UDP as usize];
            loop {
                let length = socket.recv(&mut buffer).await?;
                if let Some(answer) = packet::answer(&asked, &buffer[..length], kind) {
                    return Ok(answer);
                }
            }
        };
        self.answered(way, receive).await
    }

    async fn by_tcp(&self, server: SocketAddr, name: &str, kind: Kind) -> Result<Answer, String> {
        let asked = packet::question(id()?, name, kind);
        let mut stream = match timeout(self.config.timeout, TcpStream::connect(server)).await {
            Ok(connected) => connected.map_err(|e| format!("dial tcp {server}: connect: {}", io_text(&e)))?,
            Err(_) => return Err(format!("dial tcp {server}: i/o timeout")),
        };
        let way = Way("tcp", stream.local_addr().map_err(|e| io_text(&e))?, server);
        let talk = async {
            let length = u16::try_from(asked.len()).map_err(io::Error::other)?;
            stream.write_all(&[&length.to_be_bytes(), &*asked].concat()).await?;
            let mut buffer = vec![0; usize::from(stream.read_u16().await?)];
            stream.read_exact(&mut buffer).await?;
            Ok(packet::answer(&asked, &buffer, kind).unwrap_or(Answer::Useless("cannot unmarshal DNS message")))
        };
        self.answered(way, talk).await
    }

    async fn answered(&self, way: Way, answer: impl Future<Output = io::Result<Answer>>) -> Result<Answer, String> {
        match timeout(self.config.timeout, answer).await {
            Ok(answer) => answer.map_err(|e| way.broke("read", &e)),
            Err(_) => Err(way.failed("read", "i/o timeout")),
        }
    }
}

/// Between which places a packet goes: network, from, to.
struct Way(&'static str, SocketAddr, SocketAddr);

impl Way {
    fn failed(&self, what: &str, why: impl Display) -> String {
        format!("{what} {} {}->{}: {why}", self.0, self.1, self.2)
    }

    fn broke(&self, what: &str, e: &io::Error) -> String {
        self.failed(what, format_args!("{what}: {}", io_text(e)))
    }
}

/// Nobody who did not see the question knows its number.
fn id() -> Result<u16, String> {
    let mut id = [0; 2];
    SystemRandom::new().fill(&mut id).map_err(|_| "the kernel has no random numbers".to_owned())?;
    Ok(u16::from_be_bytes(id))
}
