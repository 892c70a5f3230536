//! A volume of a driver whose file on the disk does not say which it is.

use std::path::PathBuf;

use model::PodUid;

/// A directory whose `vol_data.json` cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unreadable {
    /// The directory.
    pub path: PathBuf,
    /// The pod that it is, or may be, published to, and the name of its directory there; `None`: it is staged.
    pub published: Option<(PodUid, String)>,
    pub error: String,
}
