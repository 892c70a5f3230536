//! Serves a manager until it is told to end.

use std::future::Future;
use std::io;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use actor::{Kernel, KernelConfig, Watchdog, run_system};
use contract::{Answers, Crew, Role};
use seam::MAX_FRAME;
use seam::v1::Description;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tonic::transport::Server;

use crate::listen::listen;
use crate::outside::Outside;
use crate::service::{Attached, Service};
use crate::session;
use crate::stub::manager_server::ManagerServer;

/// How a manager is served.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where it listens. Its folder belongs to this user alone.
    pub socket: PathBuf,
    /// Name of the program, which the node shows.
    pub program: String,
}

/// Why a manager is not served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The socket cannot be had.
    #[error("{0}")]
    Socket(PathBuf, #[source] io::Error),
    /// Something of this process cannot be had.
    #[error("this process cannot run it")]
    Process(#[from] io::Error),
    /// The server has ended.
    #[error("the server has ended")]
    Server(#[from] tonic::transport::Error),
}

/// A turn that holds the thread so long ends the process: who started it starts it again.
const BLOCKED_LIMIT: Duration = Duration::from_secs(30);

/// Serves until SIGTERM or SIGINT. The node may come and go; the latest one that comes is served.
///
/// # Errors
/// See [`ServeError`].
pub fn serve<R: Role, A: Answers<R>>(
    options: Options,
    factory: impl Fn(Crew<R>, &Outside) -> A + Send + Sync + 'static,
) -> Result<(), ServeError> {
    let factory = Arc::new(factory);
    let for_each = move |outside: &Outside| {
        let (factory, outside) = (factory.clone(), outside.clone());
        move |crew: Crew<R>| factory(crew, &outside)
    };
    run_system(|| serve_each(options, for_each))?
}

/// As [`serve`], within [`run_system`] already. `for_each` is called for each node that comes, and makes what builds the manager
/// for it: what that holds ends with the node, and another one begins without it, as a manager that takes a place does.
/// Work on other threads may outlast a life: what keeps it apart from that of the next one is made once, outside of `for_each`.
///
/// # Errors
/// See [`ServeError`].
pub async fn serve_each<R: Role, A: Answers<R>, F: FnMut(Crew<R>) -> A + Send + 'static>(
    options: Options,
    for_each: impl Fn(&Outside) -> F + 'static,
) -> Result<(), ServeError> {
    let end = told_to_end()?;
    serving(options, Rc::new(move |outside: &Outside| Box::new(for_each(outside)) as session::Factory<R, A>), end).await
}

fn told_to_end() -> io::Result<impl Future<Output = ()>> {
    let (mut term, mut int) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    Ok(async move {
        tokio::select! {
            _ = term.recv() => {}
            _ = int.recv() => {}
        }
    })
}

fn kernel() -> Kernel {
    let seed = std::process::id().into();
    Kernel::new(KernelConfig {
        seed,
        on_fatal: Some(Arc::new(|last: &str| {
            eprintln!("{last} crashes again and again; this process ends, to be started anew");
            std::process::exit(2);
        })),
        watchdog: Some(Watchdog {
            limit: BLOCKED_LIMIT,
            on_blocked: Arc::new(|blocked| {
                eprintln!("a turn is blocked for good ({blocked:?}); this process ends, to be started anew");
                std::process::exit(3);
            }),
        }),
        ..KernelConfig::default()
    })
}

async fn serving<R: Role, A: Answers<R>>(
    options: Options,
    for_each: session::ForEach<R, A>,
    end: impl Future<Output = ()>,
) -> Result<(), ServeError> {
    let Options { socket, program } = options;
    let incoming = listen(&socket).map_err(|e| ServeError::Socket(socket.clone(), e))?;
    let description = Description {
        role: R::NAME.to_owned(),
        hash: contract::seam::hash(&R::DECLARATION),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        program,
    };
    let (attached, mut nodes) = mpsc::channel::<Attached>(1);
    let service = ManagerServer::new(Service { description, attached })
        .max_decoding_message_size(MAX_FRAME)
        .max_encoding_message_size(MAX_FRAME);
    let server = Server::builder()
        .initial_stream_window_size(2 << 20)
        .initial_connection_window_size(2 << 20)
        .add_service(service)
        .serve_with_incoming(incoming);
    let kernel = kernel();
    let sessions = async {
        let mut life: Option<tokio::task::JoinHandle<()>> = None;
        while let Some(node) = nodes.recv().await {
            if let Some(former) = life.take() {
                former.abort();
                let _it_was_ended = former.await;
            }
            life = Some(tokio::task::spawn_local(session::live(kernel.clone(), for_each.clone(), node)));
        }
    };
    tracing::info!(role = R::NAME, socket = %socket.display(), "serving");
    let ended = tokio::select! {
        ended = server => ended.map_err(ServeError::from),
        () = sessions => Ok(()),
        () = end => Ok(()),
    };
    let _gone = std::fs::remove_file(&socket);
    ended
}
