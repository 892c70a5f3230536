//! What containers had when they started, and what their pods were granted then: written down by a script in the place of runc, which
//! no daemon can talk round.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::Value;

use crate::BedError;
use crate::error::file;

const RUNC: &str = include_str!("runc");

/// Puts the script to `at`. `notes` and `granted` are its own paths of the folder of notes and of the daemon's file
/// `allocated_pods_state`.
///
/// # Errors
/// When it cannot be written.
pub fn write_noting_runc(at: &Path, notes: &Path, granted: &Path) -> Result<(), BedError> {
    let text = RUNC.replacen("NOTES", &notes.to_string_lossy(), 1);
    let text = text.replacen("GRANTED", &granted.to_string_lossy(), 1);
    file("write", at, std::fs::write(at, text))?;
    file("chmod", at, std::fs::set_permissions(at, std::fs::Permissions::from_mode(0o755)))
}

/// A start of a container, or a change of what it has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// UID of the pod.
    pub uid: String,
    /// Its id.
    pub id: String,
    /// It started; else what it had was changed.
    pub is_start: bool,
    /// Most memory, in bytes; `None`: not named.
    pub memory: Option<i64>,
    /// Microseconds of processor in 100 ms; `None`: not named.
    pub quota: Option<i64>,
    /// What its pod's container of this name had been granted when it was noted (`v1.ResourceRequirements`); null where the file
    /// knew nothing of the pod.
    pub granted: Value,
}

/// All notes of containers named `container`, in the order in which they were made.
///
/// # Errors
/// When a note cannot be read or understood.
pub fn notes(folder: &Path, container: &str) -> Result<Vec<Note>, BedError> {
    let mut files = Vec::new();
    for entry in file("list", folder, std::fs::read_dir(folder))? {
        files.push(file("list", folder, entry)?.path());
    }
    // Their names begin with microseconds since the epoch.
    files.sort();
    let mut all = Vec::new();
    for path in files {
        let text = file("read", &path, std::fs::read_to_string(&path))?;
        let note = serde_json::from_str(&text)
            .map_err(|e| BedError::Answer { from: path.display().to_string(), detail: format!("{e}: {text}") })?;
        all.push(note);
    }
    Ok(of_container(&all, container))
}

/// An update names only an id; whose it is was said by its start.
fn of_container(all: &[Value], container: &str) -> Vec<Note> {
    let mut uids: BTreeMap<String, String> = BTreeMap::new();
    let mut out = Vec::new();
    for note in all {
        let (told, id) = (&note["told"], note["id"].as_str().unwrap_or_default().to_owned());
        let is_start = note["call"] == "create";
        if is_start && told["annotations"]["io.kubernetes.cri.container-name"] == container {
            uids.insert(id.clone(), pod_of(told));
        }
        let Some(uid) = uids.get(&id).cloned() else { continue };
        let resources = if is_start { &told["linux"]["resources"] } else { told };
        let granted = granted(&note["granted"], &uid, container);
        let amount = |group: &str, field: &str| resources[group][field].as_i64();
        out.push(Note { uid, id, is_start, memory: amount("memory", "limit"), quota: amount("cpu", "quota"), granted });
    }
    out
}

/// `/kubepods/burstable/podUID/CONTAINER`.
fn pod_of(told: &Value) -> String {
    let path = told["linux"]["cgroupsPath"].as_str().unwrap_or_default();
    let pod = path.rsplit('/').nth(1).unwrap_or_default();
    pod.strip_prefix("pod").unwrap_or(pod).to_owned()
}

/// What a checkpoint of a kubelet (`allocated_pods_state`, `actuated_pods_state`) says of a container.
#[must_use]
pub fn granted(checkpoint: &Value, uid: &str, container: &str) -> Value {
    let data = checkpoint["data"].as_str().and_then(|text| serde_json::from_str::<Value>(text).ok());
    data.map_or(Value::Null, |data| data["entries"][uid]["ContainerResources"][container].clone())
}

/// By the name of their pod: starts that containerd gave up, by its log. It does so when who asked for them dies, and they count as
/// restarts.
#[must_use]
pub fn failed_starts(log: &str) -> BTreeMap<String, u64> {
    let mut names: BTreeMap<&str, &str> = BTreeMap::new();
    let mut failed = BTreeMap::new();
    for line in log.lines() {
        let ids: Vec<&str> = line.split("\\\"").skip(1).step_by(2).collect();
        let name = line.split_once("Name:").and_then(|(_, rest)| rest.split(',').next()).unwrap_or_default();
        match ids.as_slice() {
            [sandbox] if line.contains("returns sandbox id") => drop(names.insert(sandbox, name)),
            [sandbox, id] if line.contains("returns container id") => {
                if let Some(pod) = names.get(sandbox).copied() {
                    names.insert(id, pod);
                }
            }
            [id, ..] if line.contains("StartContainer for") && line.contains("failed") => {
                *failed.entry(names.get(id).copied().unwrap_or_default().to_owned()).or_default() += 1;
            }
            _ => {}
        }
    }
    failed
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_start_says_whose_the_later_changes_are() {
        let data = json!({"entries": {"u1": {"ContainerResources": {"main": {"limits": {"memory": "64Mi"}}}}}});
        let checkpoint = json!({"data": data.to_string(), "checksum": 1});
        let start = |name: &str, id: &str| {
            json!({"call": "create", "id": id, "granted": checkpoint, "told": {
                "annotations": {"io.kubernetes.cri.container-name": name},
                "linux": {"cgroupsPath": format!("/kubepods/burstable/podu1/{id}"),
                          "resources": {"memory": {"limit": 64 << 20}, "cpu": {"quota": 10000}}},
            }})
        };
        let update = json!({"call": "update", "id": "a", "granted": null, "told": {"cpu": {"quota": 20000}}});
        let found = of_container(&[start("main", "a"), start("other", "b"), update], "main");
        let note = |is_start, memory, quota, granted| Note {
            uid: "u1".into(),
            id: "a".into(),
            is_start,
            memory,
            quota: Some(quota),
            granted,
        };
        let first = note(true, Some(64 << 20), 10_000, json!({"limits": {"memory": "64Mi"}}));
        assert_eq!(found, [first, note(false, None, 20_000, Value::Null)]);
    }

    #[test]
    fn a_start_that_was_given_up_is_its_pods() {
        let log = r#"
time="1" level=info msg="RunPodSandbox for &PodSandboxMetadata{Name:p0,Uid:u,Namespace:default,Attempt:0,} returns sandbox id \"s0\""
time="2" level=info msg="CreateContainer within sandbox \"s0\" for &ContainerMetadata{Name:main,Attempt:1,} returns container id \"c1\""
time="3" level=error msg="StartContainer for \"c1\" failed" error="failed to start containerd task \"c1\": context canceled: unknown"
time="4" level=info msg="StartContainer for \"c1\" returns successfully""#;
        assert_eq!(failed_starts(log), BTreeMap::from([("p0".to_owned(), 1)]));
    }
}
