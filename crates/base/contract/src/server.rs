//! Server: the node's ports and the local socket. No actor: it reads what the others post.

use crate::certificates::CertificateView;
use crate::config_sources::ApiSourceView;
use crate::config_sources::folder::FolderManifests;
use crate::config_sources::http::UrlManifests;
use crate::event::EventView;
use crate::node::NodeView;
use crate::pod_manager::DesiredPod;
use crate::pod_worker::WorkerState;
use crate::runtime::{Observed, RuntimeInfo};
use crate::stats::{Cadvisor, Resource, Summarise};
use crate::status::StatusEntry;
use crate::volume::PodVolumes;

role! {
    /// The node's ports and the local socket.
    Server in server;
    answers {}
    posts {}
    asks { Summarise, Resource, Cadvisor }
    reads {
        DesiredPod, WorkerState, StatusEntry, Observed, RuntimeInfo, FolderManifests, UrlManifests, ApiSourceView, EventView,
        NodeView, CertificateView, PodVolumes,
    }
}
