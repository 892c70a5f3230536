//! The socket: in a folder of ours, for processes of ours.

use std::fs::{DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream as Std;
use std::path::Path;

use futures::StreamExt;
use futures::stream::Stream;
use tokio::net::{UnixListener, UnixStream};
use tokio_stream::wrappers::UnixListenerStream;

/// Listens. The folder is made where it is missing; it must be ours alone. A socket that nobody serves any more is replaced.
pub(crate) fn listen(socket: &Path) -> io::Result<impl Stream<Item = io::Result<UnixStream>> + Send + use<>> {
    let me = rustix::process::geteuid().as_raw();
    let folder = socket.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.ok_or_else(|| io::Error::other("the socket has no folder"))?;
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(e),
        _ => {}
    }
    let found = std::fs::symlink_metadata(folder)?;
    if !found.is_dir() || found.uid() != me || found.mode() & 0o077 != 0 {
        let text = format!("{} must be a folder of user {me} that nobody else may enter (mode 0700)", folder.display());
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
    }
    match Std::connect(socket) {
        Ok(_) => return Err(io::Error::new(io::ErrorKind::AddrInUse, "another process serves there")),
        Err(e) if e.kind() == io::ErrorKind::ConnectionRefused => std::fs::remove_file(socket)?,
        Err(e) if e.kind() == io::ErrorKind::NotFound => {}
        Err(e) => return Err(e),
    }
    let listener = UnixListener::bind(socket)?;
    std::fs::set_permissions(socket, Permissions::from_mode(0o600))?;
    Ok(UnixListenerStream::new(listener).filter(move |stream| futures::future::ready(is_ours(stream, me))))
}

/// Whether a process of this user, or of root, has connected.
fn is_ours(stream: &io::Result<UnixStream>, me: u32) -> bool {
    let Ok(stream) = stream else { return true };
    match stream.peer_cred().map(|cred| cred.uid()) {
        Ok(uid) if uid == 0 || uid == me => true,
        peer => {
            tracing::warn!(?peer, "a process of another user is turned away");
            false
        }
    }
}
