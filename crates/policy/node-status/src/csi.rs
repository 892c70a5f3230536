//! What CSI drivers have said on the Node (node-and-resources 6.13).

use std::collections::BTreeMap;

use model::core::Node;

/// Annotation with the drivers' names of the node, as a JSON map.
const NODE_IDS: &str = "csi.volume.kubernetes.io/nodeid";

fn node_ids(node: &Node) -> Result<BTreeMap<String, String>, String> {
    let said = node.metadata.annotations.as_ref().and_then(|a| a.get(NODE_IDS)).map(String::as_str).unwrap_or_default();
    if said.is_empty() {
        return Ok(BTreeMap::new());
    }
    serde_json::from_str(said)
        .map_err(|e| format!("failed to parse node's {NODE_IDS:?} annotation value ({said:?}) err={e}"))
}

fn note(node: &mut Node, ids: &BTreeMap<String, String>) -> Result<(), String> {
    let annotations = node.metadata.annotations.get_or_insert_default();
    if ids.is_empty() {
        annotations.remove(NODE_IDS);
    } else {
        annotations.insert(NODE_IDS.to_owned(), serde_json::to_string(ids).map_err(|e| e.to_string())?);
    }
    Ok(())
}

/// The Node with what a driver calls it, and with the labels of its topology; `None`: it says so already.
///
/// # Errors
/// A label is there with another value, or the annotation is no map.
pub fn with_driver(
    node: &Node,
    driver: &str,
    node_id: &str,
    topology: &BTreeMap<String, String>,
) -> Result<Option<Node>, String> {
    let mut new = node.clone();
    let mut ids = node_ids(node)?;
    if ids.insert(driver.to_owned(), node_id.to_owned()).as_deref() != Some(node_id) {
        note(&mut new, &ids)?;
    }
    let labels = new.metadata.labels.get_or_insert_default();
    for (key, value) in topology {
        if let Some(is) = labels.insert(key.clone(), value.clone()).filter(|is| is != value) {
            return Err(format!(
                "detected topology value collision: driver reported {key:?}:{value:?} but existing label is {key:?}:{is:?}"
            ));
        }
    }
    let same = new.metadata.annotations == node.metadata.annotations && labels_of(&new).eq(labels_of(node));
    Ok((!same).then_some(new))
}

fn labels_of(node: &Node) -> impl Iterator<Item = (&String, &String)> {
    node.metadata.labels.iter().flatten()
}

/// The Node without what a driver calls it; `None`: it does not say so. Labels stay.
///
/// # Errors
/// The annotation is no map.
pub fn without_driver(node: &Node, driver: &str) -> Result<Option<Node>, String> {
    let mut ids = node_ids(node)?;
    if ids.remove(driver).is_none() {
        return Ok(None);
    }
    let mut new = node.clone();
    note(&mut new, &ids)?;
    Ok(Some(new))
}
