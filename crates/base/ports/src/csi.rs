//! The Node service of CSI drivers (node-and-resources 6.13).

use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use csi_api::{CsiOutcome, v1};

use crate::grpc::Code;

/// How long a call to a driver may take, but for statistics.
pub const DEADLINE: Duration = Duration::from_secs(2 * 60);
/// How long NodeGetVolumeStats may take.
pub const STATS_DEADLINE: Duration = Duration::from_secs(60);

/// Result of one call.
pub type CsiResult<T> = Result<T, CsiError>;

/// The node services of all drivers of this node. `driver` is the unix socket of the driver that is meant: the endpoint that
/// PluginManager posts of it.
///
/// Each call ends within `deadline`, connecting included, as [`Code::DeadlineExceeded`]; a driver that hangs costs its own calls
/// only. No call is repeated here. Dropping the future gives a call up; the driver may carry it out all the same.
#[async_trait]
pub trait CsiNode: Send + Sync + 'static {
    /// The driver's name of this node, how many volumes it may have, where it is. `node_id` is not empty.
    async fn get_info(&self, driver: &Path, deadline: Duration) -> CsiResult<v1::NodeGetInfoResponse>;
    /// What the driver can do.
    async fn get_capabilities(&self, driver: &Path, deadline: Duration) -> CsiResult<v1::NodeGetCapabilitiesResponse>;
    /// Makes a volume ready on this node, for all pods. Repeatable.
    async fn stage(&self, driver: &Path, request: v1::NodeStageVolumeRequest, deadline: Duration) -> CsiResult<()>;
    /// Undoes [`Self::stage`]. Repeatable.
    async fn unstage(&self, driver: &Path, request: v1::NodeUnstageVolumeRequest, deadline: Duration) -> CsiResult<()>;
    /// Makes a volume ready at one pod's path. Repeatable.
    async fn publish(&self, driver: &Path, request: v1::NodePublishVolumeRequest, deadline: Duration) -> CsiResult<()>;
    /// Undoes [`Self::publish`]. Repeatable.
    async fn unpublish(
        &self,
        driver: &Path,
        request: v1::NodeUnpublishVolumeRequest,
        deadline: Duration,
    ) -> CsiResult<()>;
    /// Room, and how the volume is. No number in the answer is negative.
    async fn get_volume_stats(
        &self,
        driver: &Path,
        request: v1::NodeGetVolumeStatsRequest,
        deadline: Duration,
    ) -> CsiResult<v1::NodeGetVolumeStatsResponse>;
    /// Lets a file system or device take the room that its volume has got. Repeatable.
    async fn expand(
        &self,
        driver: &Path,
        request: v1::NodeExpandVolumeRequest,
        deadline: Duration,
    ) -> CsiResult<v1::NodeExpandVolumeResponse>;
}

/// Why a volume cannot be expanded, where the code tells (node-and-resources 6.13, Expansion).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ExpandRefusal {
    /// Not to this size: status `NodeResizeInfeasible`.
    Infeasible,
    /// Not while it is in use: not tried again before the next mount.
    InUse,
}

/// A failed call. Displays as a Go client prints it: that text goes into events.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CsiError {
    /// Answered by the driver, or by the connection to it ([`Code::Unavailable`]), or not in time.
    #[error("{}", .code.go_text(.message))]
    Status {
        /// gRPC code.
        code: Code,
        /// The driver's description.
        message: String,
    },
    /// An answer that breaks the protocol, such as an empty node ID or a negative number: no gRPC error.
    #[error("{0}")]
    Nonsense(String),
    /// The driver was not called: too many calls to it were under way until the deadline.
    #[error("{0}")]
    Busy(String),
    /// There is no such driver on this node, at the moment.
    #[error("driver name {0} not found in the list of registered CSI drivers")]
    NotRegistered(String),
}

/// The gRPC code of an answer, as metrics name it; `None`: a failure without one.
#[must_use]
pub fn grpc_code<T>(answer: &CsiResult<T>) -> Option<&'static str> {
    match answer {
        Ok(_) => Some("OK"),
        Err(e) => e.code().map(Code::as_str),
    }
}

impl CsiError {
    /// A gRPC status.
    #[must_use]
    pub fn status(code: Code, message: impl Into<String>) -> Self {
        Self::Status { code, message: message.into() }
    }

    /// The gRPC code, if there is one.
    #[must_use]
    pub fn code(&self) -> Option<Code> {
        match self {
            Self::Status { code, .. } => Some(*code),
            Self::Nonsense(_) | Self::Busy(_) | Self::NotRegistered(_) => None,
        }
    }

    /// What is to be believed of the volume now (node-and-resources 6.13, final and uncertain errors).
    #[must_use]
    pub fn outcome(&self) -> CsiOutcome {
        match self {
            Self::Busy(_) | Self::NotRegistered(_) => CsiOutcome::Transient,
            Self::Nonsense(_) => CsiOutcome::Uncertain,
            Self::Status { code, .. } => match code {
                Code::Cancelled
                | Code::DeadlineExceeded
                | Code::Unavailable
                | Code::ResourceExhausted
                | Code::Aborted => CsiOutcome::Uncertain,
                _ => CsiOutcome::Final,
            },
        }
    }

    /// What a failed NodeExpandVolume says of further tries; `None`: an ordinary failure.
    #[must_use]
    pub fn expand_refusal(&self) -> Option<ExpandRefusal> {
        match self.code()? {
            Code::InvalidArgument | Code::OutOfRange | Code::NotFound => Some(ExpandRefusal::Infeasible),
            Code::FailedPrecondition => Some(ExpandRefusal::InUse),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{CsiError, CsiOutcome, ExpandRefusal};
    use crate::grpc::Code;

    #[test]
    fn each_code_leaves_behind_what_the_book_says() {
        use CsiOutcome::{Final, Uncertain};
        use ExpandRefusal::{InUse, Infeasible};
        let rows = [
            (Code::Cancelled, Uncertain, None),
            (Code::Unknown, Final, None),
            (Code::InvalidArgument, Final, Some(Infeasible)),
            (Code::DeadlineExceeded, Uncertain, None),
            (Code::NotFound, Final, Some(Infeasible)),
            (Code::AlreadyExists, Final, None),
            (Code::PermissionDenied, Final, None),
            (Code::ResourceExhausted, Uncertain, None),
            (Code::FailedPrecondition, Final, Some(InUse)),
            (Code::Aborted, Uncertain, None),
            (Code::OutOfRange, Final, Some(Infeasible)),
            (Code::Unimplemented, Final, None),
            (Code::Internal, Final, None),
            (Code::Unavailable, Uncertain, None),
            (Code::DataLoss, Final, None),
            (Code::Unauthenticated, Final, None),
        ];
        for (code, outcome, refusal) in rows {
            let e = CsiError::status(code, "words");
            assert_eq!((e.code(), e.outcome(), e.expand_refusal()), (Some(code), outcome, refusal), "{code:?}");
        }
        assert_eq!(CsiError::Nonsense(String::new()).outcome(), Uncertain);
        for not_called in [CsiError::NotRegistered(String::new()), CsiError::Busy(String::new())] {
            assert_eq!(not_called.outcome(), CsiOutcome::Transient);
        }
    }

    #[test]
    fn texts_are_a_kubelets() {
        let status = CsiError::status(Code::Internal, "no room");
        assert_eq!(status.to_string(), "rpc error: code = Internal desc = no room");
        let gone = CsiError::NotRegistered("d.example".into());
        assert_eq!(gone.to_string(), "driver name d.example not found in the list of registered CSI drivers");
    }
}
