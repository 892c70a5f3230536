//! What a driver is made with.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Settings, as JSON in a file for the program.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Name of the driver.
    pub name: String,
    /// Its own name of the node.
    pub node_id: String,
    /// Folder of the driver: its socket `csi@node.sock`, its volumes, `log.jsonl`, and `control.json` with faults
    /// (a list of [`crate::Rule`]), which is read before each call.
    pub folder: PathBuf,
    /// `plugins_registry`, where it makes `<name>@reg.sock`; `None`: it does not register.
    pub registry: Option<PathBuf>,
    /// Type that it registers as.
    pub kind: String,
    /// Versions that it registers.
    pub versions: Vec<String>,
    /// `STAGE_UNSTAGE_VOLUME`.
    pub stage: bool,
    /// `EXPAND_VOLUME`.
    pub expand: bool,
    /// `GET_VOLUME_STATS`.
    pub stats: bool,
    /// `VOLUME_CONDITION`. A volume with a file `abnormal` in it is so, and says what stands in the file.
    pub condition: bool,
    /// `SINGLE_NODE_MULTI_WRITER`.
    pub single_node_multi_writer: bool,
    /// `VOLUME_MOUNT_GROUP`.
    pub volume_mount_group: bool,
    /// Most volumes of the node; 0: no limit.
    pub max_volumes: i64,
    /// Where the node is.
    pub topology: BTreeMap<String, String>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            name: "dir.csi.bosun.test".to_owned(),
            node_id: "node".to_owned(),
            folder: PathBuf::new(),
            registry: None,
            kind: "CSIPlugin".to_owned(),
            versions: vec!["1.0.0".to_owned()],
            stage: true,
            expand: true,
            stats: true,
            condition: false,
            single_node_multi_writer: false,
            volume_mount_group: false,
            max_volumes: 0,
            topology: BTreeMap::new(),
        }
    }
}
