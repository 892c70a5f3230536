//! Callers over bare sockets and TLS, good and bad.

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};

use super::pki::Issued;

/// Longer than any limit that these callers can run into, and shorter than the life of an idle connection.
const PATIENCE: Duration = Duration::from_secs(25);

/// What became of a request or a connection.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Code(u16),
    Closed,
    Hangs,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "{code}"),
            Self::Closed => f.write_str("closed"),
            Self::Hangs => f.write_str("hangs"),
        }
    }
}

/// Requests for everything that a node has to give, in all forms.
pub(crate) const REQUESTS: &[&str] = &[
    "GET /pods HTTP/1.1\r\nHost: node\r\nConnection: close\r\n\r\n",
    "GET /healthz HTTP/1.1\r\nHost: node\r\nConnection: close\r\n\r\n",
    "HEAD /metrics HTTP/1.1\r\nHost: node\r\nConnection: close\r\n\r\n",
    "OPTIONS * HTTP/1.1\r\nHost: node\r\nConnection: close\r\n\r\n",
    "GET /logs/ HTTP/1.1\r\nHost: node\r\nConnection: close\r\n\r\n",
    "GET //pods HTTP/1.1\r\nHost: node\r\nConnection: close\r\n\r\n",
    "GET /healthz/../configz HTTP/1.1\r\nHost: node\r\nConnection: close\r\n\r\n",
    "GET /nothing HTTP/1.1\r\nHost: node\r\nConnection: close\r\n\r\n",
    "GET https://node:10250/configz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n",
    "CONNECT 127.0.0.1:10248 HTTP/1.1\r\nHost: node\r\n\r\n",
    "POST /run/default/a/b?cmd=id HTTP/1.1\r\nHost: node\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
    "POST /run/default/a/b?cmd=id HTTP/1.1\r\nHost: node\r\nContent-Length: 99999999\r\nExpect: 100-continue\r\n\r\n",
    "POST /x HTTP/1.1\r\nHost: node\r\nTransfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\nGET /pods HTTP/1.1\r\n\r\n",
    "GET /exec/default/a/b?command=id&output=1 HTTP/1.1\r\nHost: node\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
     Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: v5.channel.k8s.io\r\n\r\n",
    "POST /portForward/default/a HTTP/1.1\r\nHost: node\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n",
    "GET /pods HTTP/1.1\r\nHost: node\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n\r\n",
    "GET /pods HTTP/1.1\r\nHost: node\r\nX-Remote-User: admin\r\nX-Remote-Group: system:masters\r\nConnection: close\r\n\r\n",
    "GET /pods HTTP/1.1\r\nHost: node\r\nImpersonate-User: admin\r\nConnection: close\r\n\r\n",
    "GET /pods HTTP/1.1\r\nConnection: Authorization, close\r\nHost: node\r\nAuthorization: Basic YTpi\r\n\r\n",
];

/// Paths that must not be read as others, or lead out of a folder.
pub(crate) const TRICKS: &[&str] = &[
    "//pods",
    "/./pods",
    "/logs/../configz",
    "/logs/%2e%2e/configz",
    "/logs/..%2f..%2f..%2fetc%2fpasswd",
    "/logs/../../../etc/passwd",
    "/logs//etc/passwd",
    "/logs/%00",
    "/logs/%zz",
    "/logs/%c0%ae%c0%ae/etc/passwd",
    "/logs/..\\..\\etc\\passwd",
    "/containerLogs/default/a/..%2f..%2fb",
    "/containerLogs/..%2f..%2f/a/b",
    "/PODS",
    "/pods%2f",
    "/pods;x=1",
    "/%70ods/..",
    "pods",
    "*",
];

/// Requests with tokens that are nobody's.
pub(crate) fn tokens() -> Vec<String> {
    let websocket = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==";
    let headers = [
        "Authorization: Bearer abc".to_owned(),
        "Authorization: Bearer ".to_owned(),
        "authorization: bearer\tabc".to_owned(),
        "Authorization: Bearer a\r\nAuthorization: Bearer b".to_owned(),
        format!("Authorization: Bearer {}", "x".repeat(20_000)),
        "Authorization: Bearer \u{e4}\u{f6}".to_owned(),
        format!("{websocket}\r\nSec-WebSocket-Protocol: base64url.bearer.authorization.k8s.io.YWJj, v4.channel.k8s.io"),
        format!("{websocket}\r\nSec-WebSocket-Protocol: base64url.bearer.authorization.k8s.io.!, v4.channel.k8s.io"),
        format!(
            "{websocket}\r\nAuthorization: Bearer a\r\nSec-WebSocket-Protocol: base64url.bearer.authorization.k8s.io.YQ"
        ),
    ];
    headers.iter().map(|h| format!("GET /exec/default/a/b?command=id HTTP/1.1\r\nHost: node\r\n{h}\r\n\r\n")).collect()
}

/// Heads larger than what is taken.
pub(crate) fn oversized(bytes: usize) -> [Vec<u8>; 4] {
    let large = "a".repeat(bytes);
    let many = "A: b\r\n".repeat(bytes / 6);
    [
        format!("GET /pods?{large} HTTP/1.1\r\nHost: node\r\n\r\n").into_bytes(),
        format!("GET /pods HTTP/1.1\r\nHost: node\r\nX: {large}\r\n\r\n").into_bytes(),
        format!("GET /pods HTTP/1.1\r\nHost: node\r\n{many}\r\n").into_bytes(),
        large.into_bytes(),
    ]
}

fn config(issued: Option<&Issued>) -> Arc<ClientConfig> {
    let builder = tls::client(tls::Trust::Anyone);
    let config = match issued {
        None => builder.with_no_client_auth(),
        Some(issued) => {
            let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(issued.key.clone()));
            let chain = vec![CertificateDer::from(issued.certificate.clone())];
            builder.with_client_auth_cert(chain, key).expect("a key that fits")
        }
    };
    Arc::new(config)
}

/// Somebody with or without a certificate, at an address.
pub(crate) struct Caller {
    to: SocketAddr,
    from: Ipv4Addr,
    tls: Arc<ClientConfig>,
}

impl Caller {
    pub(crate) fn new(to: SocketAddr, from: Ipv4Addr, issued: Option<&Issued>) -> Self {
        Self { to, from, tls: config(issued) }
    }

    pub(crate) async fn get(&self, path: &str) -> Outcome {
        self.raw(format!("GET {path} HTTP/1.1\r\nHost: node\r\nConnection: close\r\n\r\n").as_bytes()).await
    }

    /// Sends bytes over a connection of its own; the code of the first answer.
    pub(crate) async fn raw(&self, bytes: &[u8]) -> Outcome {
        let asked = async {
            let mut stream = self.connect().await.ok()?;
            // An answer may come, and the connection be closed, before all is sent.
            let (mut reader, mut writer) = tokio::io::split(&mut stream);
            let sent = async { drop(writer.write_all(bytes).await) };
            let (code, ()) = tokio::join!(code(&mut reader), sent);
            code
        };
        match tokio::time::timeout(PATIENCE, asked).await {
            Ok(code) => code.map_or(Outcome::Closed, Outcome::Code),
            Err(_) => Outcome::Hangs,
        }
    }

    async fn connect(&self) -> io::Result<TlsStream<TcpStream>> {
        let socket = dial(self.to, self.from).await?;
        let name = ServerName::try_from("node").expect("a name");
        TlsConnector::from(self.tls.clone()).connect(name, socket).await
    }
}

/// Code of the first final answer; `None`: there is none.
async fn code(stream: &mut (impl AsyncRead + Unpin)) -> Option<u16> {
    let mut got = Vec::new();
    while !got.windows(4).any(|w| w == b"\r\n\r\n") {
        if stream.read_buf(&mut got).await.ok()? == 0 {
            return None;
        }
    }
    let text = String::from_utf8_lossy(&got);
    text.split(' ').nth(1)?.parse().ok()
}

pub(crate) async fn dial(to: SocketAddr, from: Ipv4Addr) -> io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.bind(SocketAddr::new(from.into(), 0))?;
    socket.connect(to).await
}

/// Whether the other side has ended a connection on which it has nothing to say.
pub(crate) fn is_ended(socket: &TcpStream) -> bool {
    match socket.try_read(&mut [0; 1]) {
        Ok(n) => n == 0,
        Err(e) => e.kind() != io::ErrorKind::WouldBlock,
    }
}

/// How somebody holds on to a connection.
#[derive(Clone, Copy)]
pub(crate) enum Manner {
    /// Noise, some of it in the shape of TLS or plain HTTP.
    Garbage,
    /// The same, and gone without waiting for an end.
    Hurried,
    /// A first message of TLS that comes byte by byte.
    SlowHandshake,
    /// A request whose head comes byte by byte.
    SlowHead,
}

/// Holds on until the other side ends it.
pub(crate) async fn linger(to: SocketAddr, from: Ipv4Addr, how: Manner, n: usize) -> Outcome {
    let held = async {
        match how {
            Manner::Garbage => {
                let mut socket = dial(to, from).await.ok()?;
                // It may be ended before it is sent.
                let _ = socket.write_all(&noise(n)).await;
                until_closed(&mut socket, b"").await
            }
            Manner::Hurried => {
                let mut socket = dial(to, from).await.ok()?;
                let _ = socket.write_all(&noise(n)).await;
                None
            }
            Manner::SlowHandshake => {
                let mut socket = dial(to, from).await.ok()?;
                socket.write_all(b"\x16\x03\x01\x01\x00\x01\x00\x00\xfc\x03\x03").await.ok()?;
                until_closed(&mut socket, b"\x07").await
            }
            Manner::SlowHead => {
                let mut stream = Caller::new(to, from, None).connect().await.ok()?;
                stream.write_all(b"GET /pods HTTP/1.1\r\nHost: node\r\nX-Slow: ").await.ok()?;
                until_closed(&mut stream, b"a").await
            }
        }
    };
    match tokio::time::timeout(PATIENCE, held).await {
        Ok(code) => code.map_or(Outcome::Closed, Outcome::Code),
        Err(_) => Outcome::Hangs,
    }
}

/// Sends a piece each second until the other side says something final or nothing more.
async fn until_closed<S: AsyncRead + tokio::io::AsyncWrite + Unpin>(stream: &mut S, piece: &[u8]) -> Option<u16> {
    let (mut reader, mut writer) = tokio::io::split(stream);
    let feed = async {
        loop {
            tokio::time::sleep(Duration::from_secs(1)).await;
            if writer.write_all(piece).await.is_err() || writer.flush().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    };
    let drain = async {
        let mut got = Vec::new();
        while let Ok(1..) = reader.read_buf(&mut got).await {}
        let text = String::from_utf8_lossy(&got);
        text.strip_prefix("HTTP/1.1 ").and_then(|t| t.split(' ').next()?.parse().ok())
    };
    tokio::select! {
        () = feed => None,
        code = drain => code,
    }
}

/// Bytes that look random and are the same in each run.
fn noise(n: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64 ^ (n as u64).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mut out = match n % 4 {
        0 => b"GET /pods HTTP/1.1\r\nHost: node\r\n\r\n".to_vec(),
        1 => b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
        2 => b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec(),
        _ => Vec::new(),
    };
    for _ in 0..700 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        out.extend_from_slice(&state.to_be_bytes()[..1]);
    }
    out
}
