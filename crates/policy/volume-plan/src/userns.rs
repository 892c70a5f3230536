//! Which ids of the host the users of a pod get that has its own (`hostUsers: false`; node-and-resources 10.7).

use std::collections::{BTreeMap, BTreeSet};

use model::PodUid;
use model::userns::UserNamespace;
use serde::Deserialize;

/// User of the host whose subordinate ids pods get, where there is one.
pub const OWNER: &str = "kubelet";
/// Sizes are multiples of this: what an image may use of ids.
const UNIT: u32 = 65_536;

/// Ids that may be given to pods, in blocks of one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdRange {
    first: u32,
    blocks: u32,
    per_pod: u32,
}

impl IdRange {
    /// The range that starts at `first` and has `length` ids.
    ///
    /// # Errors
    /// It is not made of whole blocks, has ids of the host's own users, or too few for `max_pods`.
    pub fn new((first, length): (u32, u32), per_pod: u32, max_pods: u32) -> Result<Self, String> {
        if per_pod == 0 || !per_pod.is_multiple_of(UNIT) {
            return Err(format!("kubelet user namespace length {per_pod} is not a multiple of {UNIT}"));
        }
        if !first.is_multiple_of(per_pod) {
            return Err(format!("kubelet user assigned ID {first} is not a multiple of {per_pod}"));
        }
        if first < per_pod {
            return Err(format!("kubelet user assigned ID {first} must be greater or equal to {per_pod}"));
        }
        if !length.is_multiple_of(per_pod) {
            return Err(format!("kubelet user assigned IDs length {length} is not a multiple of {per_pod}"));
        }
        if u64::from(first) + u64::from(length) > 1 << 32 {
            return Err(format!("kubelet user assigned IDs {first} and {length} more end beyond the last id"));
        }
        let blocks = length / per_pod;
        if blocks < max_pods {
            return Err(format!("kubelet user assigned IDs are not enough to support {max_pods} pods"));
        }
        Ok(Self { first, blocks, per_pod })
    }

    fn block(&self, index: u32) -> UserNamespace {
        UserNamespace { host_id: self.first + index * self.per_pod, length: self.per_pod }
    }

    /// Numbers of the blocks that have an id of these.
    fn touched(&self, ids: &UserNamespace) -> impl Iterator<Item = u32> {
        let number = |id: u64| id.saturating_sub(self.first.into()) / u64::from(self.per_pod);
        let end = u64::from(ids.host_id) + u64::from(ids.length);
        let beyond = number(end + u64::from(self.per_pod) - 1).min(self.blocks.into());
        let (low, high) = (number(ids.host_id.into()), if end <= u64::from(self.first) { 0 } else { beyond });
        (low..high).filter_map(|n| u32::try_from(n).ok())
    }
}

/// Where nothing else is said, every id but those of the first block is for pods: first id and number of ids.
#[must_use]
pub fn default_ids(per_pod: u32) -> (u32, u32) {
    (per_pod, 0_u32.wrapping_sub(per_pod))
}

/// First id and number of ids, from what `getsubids` says: `0: kubelet 65536 2147483648`.
///
/// # Errors
/// It says anything else: exactly one range must be there.
pub fn parse_ids(said: &str) -> Result<(u32, u32), String> {
    let line = said.trim_matches('\n');
    if line.contains('\n') {
        return Err(format!("error parsing line {said:?}: it must contain only one line"));
    }
    let parts: Vec<&str> = line.split_whitespace().collect();
    let &[_, _, first, length] = parts.as_slice() else { return Err(format!("invalid line {line:?}")) };
    let number = |text: &str| text.parse().map_err(|e| format!("error parsing line {said:?}: {e}"));
    Ok((number(first)?, number(length)?))
}

/// What is known of one pod's ids.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Held {
    /// Its own.
    Own(UserNamespace),
    /// Its file says these, and another pod has some of them.
    Taken(UserNamespace, String),
    /// Its file does not say which; why.
    Unknown(String),
}

/// Pods with ids of their own. No id is given twice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holders(BTreeMap<PodUid, Held>);

impl Holders {
    /// Takes over what the file of a pod says.
    pub fn read(&mut self, uid: &PodUid, file: &[u8]) {
        let held = match parse(file) {
            Err(why) => Held::Unknown(why),
            Ok(ids) => match self.known().find(|(other, held)| *other != uid && held.overlaps(&ids)) {
                Some((other, _)) => {
                    let (uid, other) = (uid.as_str(), other.as_str());
                    Held::Taken(ids, format!("range picked for pod {uid:?} already taken by {other:?}"))
                }
                None => Held::Own(ids),
            },
        };
        self.0.insert(uid.clone(), held);
    }

    fn known(&self) -> impl Iterator<Item = (&PodUid, &UserNamespace)> {
        self.0.iter().filter_map(|(uid, held)| match held {
            Held::Own(ids) | Held::Taken(ids, _) => Some((uid, ids)),
            Held::Unknown(_) => None,
        })
    }

    /// Whether anything is known of the pod.
    #[must_use]
    pub fn has(&self, uid: &PodUid) -> bool {
        self.0.contains_key(uid)
    }

    /// The ids of a pod: its own, else the first free block from the one that `random` picks.
    ///
    /// # Errors
    /// Its file cannot be used; no block is free; or of some other pod it is not known which ids it has.
    pub fn assign(&mut self, uid: &PodUid, range: &IdRange, random: u32) -> Result<UserNamespace, String> {
        match self.0.get(uid) {
            Some(Held::Own(ids)) => return Ok(*ids),
            Some(Held::Taken(_, why) | Held::Unknown(why)) => return Err(format!("user namespace: {why}")),
            None => {}
        }
        let failed = |why: String| format!("create user namespace: {why}");
        for (other, held) in &self.0 {
            if let Held::Unknown(why) = held {
                let other = other.as_str();
                return Err(failed(format!(
                    "which ids pod {other:?} has is not known ({why}), so none can be given out"
                )));
            }
        }
        let used: BTreeSet<u32> = self.known().flat_map(|(_, ids)| range.touched(ids)).collect();
        let from = random % range.blocks.max(1);
        let free = (from..range.blocks).chain(0..from).find(|n| !used.contains(n));
        let full = || failed("could not find an empty slot to allocate a user namespace".to_owned());
        let ids = range.block(free.ok_or_else(full)?);
        self.0.insert(uid.clone(), Held::Own(ids));
        Ok(ids)
    }

    /// The pod needs its ids no more.
    pub fn release(&mut self, uid: &PodUid) {
        self.0.remove(uid);
    }
}

/// A pod's file, `pods/<uid>/userns`, as a kubelet writes it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct File {
    #[serde(default)]
    uid_mappings: Vec<Mapping>,
    #[serde(default)]
    gid_mappings: Vec<Mapping>,
}

#[derive(Clone, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", default)]
struct Mapping {
    host_id: u32,
    container_id: u32,
    length: u32,
}

/// Content of the file of a pod that has these ids.
#[must_use]
pub fn file(ids: &UserNamespace) -> Vec<u8> {
    let all = format!("[{{\"hostId\":{},\"containerId\":0,\"length\":{}}}]", ids.host_id, ids.length);
    format!("{{\"uidMappings\":{all},\"gidMappings\":{all}}}").into_bytes()
}

fn parse(file: &[u8]) -> Result<UserNamespace, String> {
    let File { uid_mappings, gid_mappings } =
        serde_json::from_slice(file).map_err(|e| format!("invalid user namespace mappings file: {e}"))?;
    let invalid = |what: &str| Err(format!("invalid user namespace configuration: {what}"));
    let [ids] = uid_mappings.as_slice() else { return invalid("no more than one mapping allowed.") };
    if uid_mappings != gid_mappings {
        return invalid("GID and UID mapping should be identical");
    }
    if ids.container_id != 0 {
        return invalid("UID 0 must be mapped");
    }
    if ids.length == 0 || !ids.length.is_multiple_of(UNIT) {
        return invalid(&format!("wrong user namespace length {}", ids.length));
    }
    if ids.host_id < UNIT || ids.host_id.checked_add(ids.length - 1).is_none() {
        return invalid(&format!("wrong user namespace offset specified {}", ids.host_id));
    }
    Ok(UserNamespace { host_id: ids.host_id, length: ids.length })
}
