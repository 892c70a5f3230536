//! Who gets a network.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::Value;

use crate::call::Environment;

/// Who gets a network.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Attachment {
    /// The pod sandbox's id.
    pub container: String,
    /// The file of its network namespace; `None`: it is gone.
    pub namespace: Option<PathBuf>,
    /// The interface's name in it.
    pub interface: String,
    /// `CNI_ARGS`.
    pub args: Vec<(String, String)>,
    /// What plugins may ask for (`portMappings`, `bandwidth`, `ipRanges`, `mac`, `dns`, ...).
    pub capabilities: BTreeMap<String, Value>,
}

impl Attachment {
    pub(crate) fn environment(&self) -> Environment {
        let args: Vec<String> = self.args.iter().map(|(k, v)| format!("{k}={v}")).collect();
        Environment {
            container: self.container.clone(),
            namespace: self.namespace.as_ref().map(|n| n.display().to_string()).unwrap_or_default(),
            interface: self.interface.clone(),
            args: args.join(";"),
        }
    }
}
