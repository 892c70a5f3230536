//! Why a call failed, and what a caller of the CRI is told.

use std::io;
use std::path::{Path, PathBuf};

use container_spec::SpecError;
use tonic::Status;

use crate::images::ImageError;
use crate::network::NetworkError;
use crate::supervisor::SupervisorError;

/// A call that could not be done.
#[derive(Debug, thiserror::Error)]
pub enum RuntimeError {
    /// No such pod sandbox or container.
    #[error("{kind} {id:?}: not found")]
    NotFound {
        /// Which kind of thing.
        kind: &'static str,
        /// What was asked for.
        id: String,
    },
    /// The call does not go with where the thing stands, or its words are no good.
    #[error("{0}")]
    Refused(String),
    /// A server that this process had before has not let go of the folder.
    #[error("{}: an earlier server in this process has not ended and holds this lock", path.display())]
    HeldHere {
        /// The lock.
        path: PathBuf,
    },
    /// This runtime does not do that.
    #[error("{0}")]
    Unsupported(String),
    /// Out of time.
    #[error("{0}")]
    Late(String),
    /// A name that is taken.
    #[error("name {name:?} is reserved for {id:?}")]
    Reserved {
        /// The name.
        name: String,
        /// Whose it is.
        id: String,
    },
    /// A file or mount.
    #[error("{what}: {source}")]
    Io {
        /// Which call and path.
        what: String,
        /// The system's answer.
        source: io::Error,
    },
    /// The host.
    #[error(transparent)]
    Host(#[from] ports::host::HostError),
    /// The config.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The image.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// The network.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// The pod's supervisor.
    #[error(transparent)]
    Supervisor(#[from] SupervisorError),
}

/// A result of this crate.
pub(crate) type Done<T> = Result<T, RuntimeError>;

/// Names the call and the path of what failed.
pub(crate) trait At<T> {
    fn at(self, call: &str, path: &Path) -> Done<T>;
}

impl<T, E: Into<io::Error>> At<T> for Result<T, E> {
    fn at(self, call: &str, path: &Path) -> Done<T> {
        self.map_err(|e| RuntimeError::Io { what: format!("{call} {}", path.display()), source: e.into() })
    }
}

impl From<RuntimeError> for Status {
    fn from(e: RuntimeError) -> Self {
        let text = e.to_string();
        match e {
            RuntimeError::NotFound { .. } => Self::not_found(text),
            RuntimeError::Image(ImageError::NotFound(_) | ImageError::Nowhere { .. }) => Self::not_found(text),
            RuntimeError::Unsupported(_) => Self::unimplemented(text),
            RuntimeError::Late(_) => Self::deadline_exceeded(text),
            RuntimeError::Refused(_) | RuntimeError::Spec(_) => Self::invalid_argument(text),
            RuntimeError::Reserved { .. } => Self::already_exists(text),
            // What containerd says of everything else, and what kubelets expect.
            _ => Self::unknown(text),
        }
    }
}
