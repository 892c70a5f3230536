//! The socket.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures::Future;
use host_linux::LinuxCgroups;
use tokio::net::{UnixListener, UnixStream};
use tokio_stream::wrappers::UnixListenerStream;
use tracing::warn;

use crate::cri::image_service_server::ImageServiceServer;
use crate::cri::runtime_service_server::RuntimeServiceServer;
use crate::error::{At, RuntimeError};
use crate::handlers::Handlers;
use crate::images::Images;
use crate::network::PodNetworks;
use crate::options::Options;
use crate::recover;
use crate::runtime::Runtime;
use crate::service::{ImageApi, RuntimeApi};
use crate::sessions::Streams;

/// Bytes of a message, as containerd has it.
const MAX_MESSAGE: usize = 16 << 20;
/// How long calls may go on when this process is to end: what they began is found again by the next one.
const DRAIN: Duration = Duration::from_secs(5);

/// How long whoever may listen at the socket has to take a connection.
const ANSWER: Duration = Duration::from_secs(2);

/// A runtime that has found everything again and is about to take calls.
pub struct Server {
    runtime: Arc<Runtime>,
    listener: UnixListener,
}

impl Server {
    /// Looks at the node, recovers, and makes the socket.
    ///
    /// # Errors
    /// Options that cannot be, another process that serves these folders, a socket that cannot be made.
    pub async fn start(
        options: Options,
        images: Arc<dyn Images>,
        networks: Arc<dyn PodNetworks>,
    ) -> Result<Self, RuntimeError> {
        options.check()?;
        crate::users::make_way(&options.run)?;
        for dir in [&options.root, &options.run] {
            crate::options::make_private(dir)?;
        }
        let lock = crate::options::lock_soon(&options.root).await?;
        let cgroups = LinuxCgroups::detect()?;
        let handlers = Handlers::look(&options, &cgroups).await;
        if let Some((_, handler)) = handlers.all().find(|(_, handler)| handler.node.idmap_mounts) {
            crate::users::open_way(&options.run)?;
            if let Err(e) = crate::users::check(&handler.node, &options.run) {
                warn!("{e}");
            }
        }
        let listen = options.listen.clone();
        let (streams, streaming) = Streams::bind().await.at("bind", Path::new("127.0.0.1:0"))?;
        let runtime = Arc::new(Runtime::new(options, images, networks, handlers, cgroups, streams)?);
        runtime.keep(lock);
        let rest = recover::everything(&runtime).await?;
        tokio::spawn(crate::streams::serve(Arc::clone(&runtime), streaming));
        let listener = bind(&listen).await?;
        tokio::spawn(recover::take_down(Arc::clone(&runtime), rest));
        Ok(Self { runtime, listener })
    }

    /// Answers calls until `end`. Then streams of events end, and calls that are under way have [`DRAIN`] to.
    ///
    /// # Errors
    /// The socket fails.
    pub async fn run(self, end: impl Future<Output = ()> + Send) -> Result<(), RuntimeError> {
        let runtime = RuntimeServiceServer::new(RuntimeApi(Arc::clone(&self.runtime)));
        let images = ImageServiceServer::new(ImageApi(Arc::clone(&self.runtime)));
        let served = tonic::transport::Server::builder()
            .add_service(runtime.max_decoding_message_size(MAX_MESSAGE).max_encoding_message_size(usize::MAX))
            .add_service(images.max_decoding_message_size(MAX_MESSAGE).max_encoding_message_size(usize::MAX))
            .serve_with_incoming_shutdown(UnixListenerStream::new(self.listener), async {
                end.await;
                self.runtime.ending.send_replace(true);
            });
        let mut ending = self.runtime.ending.subscribe();
        let late = async {
            // It cannot be dropped before this ends.
            let _ = ending.wait_for(|ending| *ending).await;
            tokio::time::sleep(DRAIN).await;
        };
        tokio::select! {
            served = served => served.map_err(io::Error::other).at("serve", &self.runtime.options.listen),
            () = late => {
                warn!("calls were under way for more than {DRAIN:?}; they end with this process");
                Ok(())
            }
        }
    }
}

/// For root alone. What another process left of a socket goes; one that somebody listens at stays his, also where he takes no calls.
async fn bind(path: &Path) -> Result<UnixListener, RuntimeError> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).at("mkdir", folder)?;
    }
    let connected = tokio::time::timeout(ANSWER, UnixStream::connect(path)).await;
    // Out of time, or the queue is full: somebody listens.
    let is_served = connected.map_or(true, |c| c.map_or_else(|e| e.kind() == io::ErrorKind::WouldBlock, |_| true));
    if is_served {
        let why = "another process serves this socket, and would not be reached any more";
        return Err(RuntimeError::Refused(format!("{}: {why}", path.display())));
    }
    match fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e).at("remove", path),
        _ => {}
    }
    let listener = UnixListener::bind(path).at("bind", path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).at("chmod", path)?;
    Ok(listener)
}

/// Serves the CRI until `end`.
///
/// # Errors
/// As [`Server::start`] and [`Server::run`].
pub async fn serve(
    options: Options,
    images: Arc<dyn Images>,
    networks: Arc<dyn PodNetworks>,
    end: impl Future<Output = ()> + Send,
) -> Result<(), RuntimeError> {
    Server::start(options, images, networks).await?.run(end).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_socket_that_is_served_is_left_and_one_that_is_not_is_made_anew() {
        let dir = tempfile::tempdir().expect("folder");
        let path = dir.path().join("run/cri.sock");
        let served = bind(&path).await.expect("bound");
        let refused = bind(&path).await.expect_err("served").to_string();
        assert!(refused.contains("run/cri.sock: another process serves this socket"), "{refused}");
        drop(served);
        bind(&path).await.expect("nobody answers any more");
        assert_eq!(fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o600);
    }

    #[tokio::test]
    async fn one_that_listens_and_takes_no_calls_keeps_its_socket() {
        use rustix::net::{AddressFamily, SocketAddrUnix, SocketType};
        let dir = tempfile::tempdir().expect("folder");
        let path = dir.path().join("cri.sock");
        let hung = rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None).expect("socket");
        rustix::net::bind(&hung, &SocketAddrUnix::new(&path).expect("address")).expect("bound");
        rustix::net::listen(&hung, 0).expect("listens");
        let _fills_the_queue = std::os::unix::net::UnixStream::connect(&path).expect("connected");
        let began = std::time::Instant::now();
        assert!(bind(&path).await.is_err());
        assert!(began.elapsed() < 2 * ANSWER && path.exists());
    }
}
