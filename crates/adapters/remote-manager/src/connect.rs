//! Connects to a manager: whose socket it is, who answers there, what it is.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use actor::{Class, Effects};
use contract::{Role, Wiring};
use futures::stream;
use hyper_util::rt::TokioIo;
use model::unix_address::UnixAddress;
use seam::v1::{Begin, DescribeRequest, Description, FromManager, Ping, Pong, ToManager, from_manager, to_manager};
use seam::{Boards, MAX_FRAME, Out};
use tokio::net::UnixStream;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tonic::transport::{Channel, Endpoint, Uri};
use tonic::{Request, Status, Streaming};
use tower::service_fn;

use crate::judge::{Owners, Unfit, admit, is_wanted};
use crate::stub::manager_client::ManagerClient;

/// How long connecting may take, and each of the first words.
const PATIENCE: Duration = Duration::from_secs(5);

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// Nobody listens there.
    #[error("dial unix {0}: {1}")]
    Dial(String, io::Error),
    /// Somebody does who is not talked to.
    #[error("{0}: {1}")]
    Unfit(String, Unfit),
    /// It says no, or nonsense.
    #[error("the first words failed: {}", .0.message())]
    Refused(#[from] Status),
    /// It is not gRPC.
    #[error("it does not speak gRPC: {0}")]
    Transport(#[from] tonic::transport::Error),
    /// It is silent.
    #[error("no answer within 5 s")]
    Silent,
    /// It ended the connection.
    #[error("it ended the connection when it was shown the rows of this node")]
    Ended,
    /// It acted.
    #[error("it acted before it was told to start")]
    Premature,
}

impl ConnectError {
    fn unfit(address: &UnixAddress) -> impl Fn(Unfit) -> Self {
        let address = address.to_string();
        move |unfit| Self::Unfit(address.clone(), unfit)
    }
}

/// A connection whose other end is ours.
async fn dial(address: &UnixAddress, effects: &Effects) -> Result<ManagerClient<Channel>, ConnectError> {
    let failed = |e| ConnectError::Dial(address.socket().display().to_string(), e);
    let folder = address.socket().parent().map(std::path::Path::to_path_buf).unwrap_or_default();
    let folder = effects.blocking(Class::HostFiles, move || std::fs::symlink_metadata(folder)).await.map_err(failed)?;
    let stream = UnixStream::connect(address.socket()).await.map_err(failed)?;
    let peer = stream.peer_cred().map_err(failed)?.uid();
    let owners = Owners { folder: folder.uid(), mode: folder.mode(), peer };
    admit(owners, rustix::process::geteuid().as_raw()).map_err(ConnectError::unfit(address))?;
    let mut stream = Some(TokioIo::new(stream));
    let once = service_fn(move |_: Uri| {
        let stream = stream.take().ok_or_else(|| io::Error::other("the connection is used up"));
        futures::future::ready(stream)
    });
    let channel = Endpoint::from_static("http://manager")
        .initial_stream_window_size(2 << 20)
        .initial_connection_window_size(2 << 20)
        .connect_with_connector(once)
        .await?;
    Ok(ManagerClient::new(channel).max_decoding_message_size(MAX_FRAME).max_encoding_message_size(MAX_FRAME))
}

async fn ask_who(
    client: &mut ManagerClient<Channel>,
    address: &UnixAddress,
    role: &'static str,
    hash: &str,
) -> Result<Description, ConnectError> {
    let said = client.describe(Request::new(DescribeRequest {})).await?.into_inner();
    is_wanted(&said, role, hash).map_err(ConnectError::unfit(address))?;
    Ok(said)
}

/// Whether a manager that is wanted listens there: asks, and goes.
///
/// # Errors
/// See [`ConnectError`].
pub async fn describe(
    address: &UnixAddress,
    role: &'static str,
    hash: &str,
    effects: &Effects,
) -> Result<Description, ConnectError> {
    let asked = async { ask_who(&mut dial(address, effects).await?, address, role, hash).await };
    timeout(PATIENCE, asked).await.map_err(|_| ConnectError::Silent)?
}

/// Whether a manager that is wanted listens there and takes what a life begins with: all rows of its boards. It is not started,
/// so nothing comes of it. An older connection to the same process ends by it.
///
/// # Errors
/// See [`ConnectError`].
pub async fn check<R: Role>(
    address: &UnixAddress,
    wiring: &Wiring,
    effects: &Effects,
) -> Result<Description, ConnectError> {
    let (own, others) = Boards::shown_to::<R>(wiring);
    let (out, frames) = Out::new(others);
    let hash = contract::seam::hash(&R::DECLARATION);
    let Connection { description, mut incoming, .. } = open(address, (R::NAME, &hash), frames, effects).await?;
    let begin = to_manager::What::Begin(Begin { generation: 0, hash });
    let said = async {
        out.say(begin).await?;
        out.say_once(own).await?;
        out.say(to_manager::What::Ping(Ping { number: CHECK })).await
    };
    let heard = async {
        match incoming.message().await?.and_then(|frame| frame.what) {
            Some(from_manager::What::Pong(Pong { number: CHECK })) => Ok(()),
            Some(_) => Err(ConnectError::Premature),
            None => Err(ConnectError::Ended),
        }
    };
    let (said, heard) =
        timeout(PATIENCE, async { futures::join!(said, heard) }).await.map_err(|_| ConnectError::Silent)?;
    heard?;
    said.map_err(|_| ConnectError::Ended)?;
    Ok(description)
}

/// Number of the ping with which rows are acknowledged.
const CHECK: u64 = 1;

/// What is said and heard over one connection.
pub(crate) struct Connection {
    pub(crate) client: ManagerClient<Channel>,
    pub(crate) description: Description,
    pub(crate) incoming: Streaming<FromManager>,
}

/// Connects, and begins to say what comes out of `frames`.
pub(crate) async fn open(
    address: &UnixAddress,
    (role, hash): (&'static str, &str),
    frames: mpsc::Receiver<ToManager>,
    effects: &Effects,
) -> Result<Connection, ConnectError> {
    let opened = async {
        let mut client = dial(address, effects).await?;
        let description = ask_who(&mut client, address, role, hash).await?;
        let frames = stream::unfold(frames, |mut frames| async { Some((frames.recv().await?, frames)) });
        let incoming = client.serve(Request::new(frames)).await?.into_inner();
        Ok(Connection { client, description, incoming })
    };
    timeout(PATIENCE, opened).await.map_err(|_| ConnectError::Silent)?
}
