//! `bosun port-forward`: local ports that lead into a pod.

use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;
use hyper::StatusCode;
use streaming::client::{ForwardError, PortForward};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use crate::args::{PodArg, SocketArg};
use crate::client::{Refused, dial};
use crate::exec::refused;
use crate::target::{self, endpoint};

mod ports;

use ports::{Mapping, Spec};

/// What `bosun port-forward` takes.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    bosun port-forward web 8080:80             here 8080, there 80\n  \
    bosun port-forward web 5432 :9090 8443:https   the same port; any free one; one by its name in the pod's spec\n  \
    bosun port-forward --address 0.0.0.0 web 8080:80   for other machines, too: whoever reaches this one\n\n\
    A connection that fails is told and does not end the others. Ends on Ctrl-C, or with exit code 1 when the pod has gone.")]
pub struct PortForwardArgs {
    #[command(flatten)]
    pub(crate) socket: SocketArg,
    #[command(flatten)]
    pub(crate) pod: PodArg,
    /// Ports: REMOTE, LOCAL:REMOTE, or :REMOTE for any free one here; REMOTE is a number or a name in the pod's spec.
    #[arg(required = true, value_name = "[LOCAL:]REMOTE")]
    pub(crate) ports: Vec<Spec>,
    /// Addresses to listen on: IP addresses or `localhost`, with commas between.
    #[arg(long, value_delimiter = ',', default_value = "localhost")]
    pub(crate) address: Vec<String>,
}

pub(crate) async fn run(args: &PortForwardArgs) -> Result<ExitCode> {
    let mut forward = Forward::start(args).await?;
    for (address, remote) in &forward.open {
        say(&format!("Forwarding from {address} -> {remote}"));
    }
    Err(forward.lost().await)
}

/// A line to stdout. Whoever read may go; forwarding goes on.
fn say(line: &str) {
    let _nobody_reads = writeln!(io::stdout().lock(), "{line}");
}

/// Listeners at work.
#[derive(Debug)]
pub(crate) struct Forward {
    /// Where it listens, and the pod's port behind it.
    pub(crate) open: Vec<(SocketAddr, u16)>,
    lost: mpsc::Receiver<anyhow::Error>,
}

impl Forward {
    /// Opens a tunnel, then the listeners: a pod that is not there is told before anybody may connect.
    pub(crate) async fn start(args: &PortForwardArgs) -> Result<Self> {
        let pod = target::find(&args.socket.socket, &args.pod).await?;
        let mappings = args.ports.iter().map(|spec| spec.resolve(&pod)).collect::<Result<Vec<_>>>()?;
        let path = endpoint("portForward", &pod, None);
        let upstream = Upstream { socket: args.socket.socket.clone(), path, spare: Mutex::default() };
        let first = upstream.open().await?;
        let upstream = Arc::new(Upstream { spare: Mutex::new(Some(first)), ..upstream });
        let (gone, lost) = mpsc::channel(1);
        let mut open = Vec::new();
        for mapping in mappings {
            for listener in listen(&args.address, mapping.local).await? {
                let here = listener.local_addr()?;
                open.push((here, mapping.remote));
                let mapping = Mapping { local: here.port(), ..mapping };
                tokio::spawn(accept(listener, mapping, upstream.clone(), gone.clone()));
            }
        }
        Ok(Self { open, lost })
    }

    /// Waits until nothing can be forwarded any more.
    pub(crate) async fn lost(&mut self) -> anyhow::Error {
        self.lost.recv().await.unwrap_or_else(|| anyhow::anyhow!("no listener is left"))
    }
}

/// The way into the pod. Each connection has a tunnel of its own: within one, who does not read stops everybody, and the
/// servers of runtimes (Go's spdystream) stop reading a fifth of all streams once one was refused with bytes on the way.
/// kubectl closes its only tunnel then, and with it every other connection.
struct Upstream {
    socket: PathBuf,
    path: String,
    /// Opened and not used yet.
    spare: Mutex<Option<PortForward>>,
}

impl Upstream {
    async fn open(&self) -> Result<PortForward> {
        let opened = streaming::client::port_forward(dial(&self.socket).await?, &self.path).await;
        opened.map_err(|e| refused(e, &self.path))
    }

    async fn get(&self) -> Result<PortForward> {
        let spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner).take();
        match spare.filter(|tunnel| !tunnel.is_closed()) {
            Some(tunnel) => Ok(tunnel),
            None => self.open().await,
        }
    }
}

/// Listeners of one port. `localhost` is both families, and one of them is enough; without a port of one's own, the first
/// one that was free is taken for all.
async fn listen(addresses: &[String], port: u16) -> Result<Vec<TcpListener>> {
    let (mut all, mut port, mut failed) = (Vec::new(), port, Vec::new());
    for address in addresses {
        let ips: Vec<IpAddr> = if address == "localhost" {
            vec![std::net::Ipv4Addr::LOCALHOST.into(), std::net::Ipv6Addr::LOCALHOST.into()]
        } else {
            match address.parse() {
                Ok(ip) => vec![ip],
                Err(_) => bail!("--address {address:?}: allowed are IP addresses and `localhost`"),
            }
        };
        let before = all.len();
        for ip in ips {
            match TcpListener::bind((ip, port)).await {
                Ok(listener) => {
                    port = listener.local_addr()?.port();
                    all.push(listener);
                }
                Err(e) => failed.push(format!("{}: {e}", SocketAddr::from((ip, port)))),
            }
        }
        if all.len() == before {
            bail!("unable to listen on port {port}: {}; choose another with LOCAL:REMOTE", failed.join("; "));
        }
    }
    Ok(all)
}

async fn accept(listener: TcpListener, mapping: Mapping, upstream: Arc<Upstream>, gone: mpsc::Sender<anyhow::Error>) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                say(&format!("Handling connection for {}", mapping.local));
                tokio::spawn(connection(stream, mapping, upstream.clone(), gone.clone()));
            }
            Err(e) => {
                // Mostly too many open files: others will close.
                eprintln!("bosun: port {}: {e}", mapping.local);
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

async fn connection(stream: TcpStream, mapping: Mapping, upstream: Arc<Upstream>, gone: mpsc::Sender<anyhow::Error>) {
    let Mapping { local, remote } = mapping;
    let _slower = stream.set_nodelay(true);
    let tunnel = match upstream.get().await {
        Ok(tunnel) => tunnel,
        Err(e) if is_gone(&e) => {
            let _told_already = gone.try_send(e.context("lost connection to pod"));
            return;
        }
        Err(e) => {
            eprintln!("bosun: an error occurred forwarding {local} -> {remote}: {e:#}");
            return;
        }
    };
    match tunnel.forward(remote, stream).await {
        // Whoever connected has left.
        Ok(()) | Err(ForwardError::Local(_)) => {}
        Err(e) => eprintln!("bosun: an error occurred forwarding {local} -> {remote}: {}", chain(&e)),
    }
}

fn chain(e: &ForwardError) -> String {
    match e {
        ForwardError::Remote(text) => text.trim().to_owned(),
        e => e.to_string(),
    }
}

/// The pod will not come back under this name and place by waiting.
fn is_gone(e: &anyhow::Error) -> bool {
    e.downcast_ref::<Refused>().is_some_and(|r| r.status == StatusCode::NOT_FOUND)
}
