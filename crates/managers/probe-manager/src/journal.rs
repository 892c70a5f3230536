//! Verdicts on disk: one small text per container instance.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::ContainerId;
use model::probe::{ProbeKind, ProbeVerdict};
use ports::journal::{Journal, JournalError};

const TABLE: &str = "probe/";

/// Verdicts of an earlier life of the daemon.
pub(crate) type Kept = BTreeMap<ContainerId, BTreeMap<ProbeKind, ProbeVerdict>>;

/// Has the line of an instance hold these verdicts. What is lost by a crash of the daemon is
/// what the API server was told ([`probe_schedule::told`]), or costs one probe's time.
pub(crate) fn save(journal: &dyn Journal, id: &ContainerId, verdicts: impl Iterator<Item = (ProbeKind, ProbeVerdict)>) {
    journal.put_soon(&key(id), Some(encode(verdicts)));
}

pub(crate) fn remove(journal: &dyn Journal, id: &ContainerId) {
    journal.put_soon(&key(id), None);
}

fn key(id: &ContainerId) -> String {
    format!("{TABLE}{id}")
}

/// Blocks. Text that is no verdict is left out.
pub(crate) fn load(journal: &Arc<dyn Journal>) -> Result<Kept, JournalError> {
    let mut kept = Kept::new();
    for key in journal.keys(TABLE)? {
        let Some(id) = key.strip_prefix(TABLE) else { continue };
        if let Some(value) = journal.load(&key)? {
            kept.insert(id.into(), decode(&value));
        }
    }
    Ok(kept)
}

fn encode(verdicts: impl Iterator<Item = (ProbeKind, ProbeVerdict)>) -> Vec<u8> {
    verdicts
        .flat_map(|(kind, verdict)| {
            let kind = match kind {
                ProbeKind::Startup => b's',
                ProbeKind::Readiness => b'r',
                ProbeKind::Liveness => b'l',
            };
            let verdict = match verdict {
                ProbeVerdict::Unknown => b'?',
                ProbeVerdict::Success => b'+',
                ProbeVerdict::Failure => b'-',
            };
            [kind, verdict]
        })
        .collect()
}

fn decode(text: &[u8]) -> BTreeMap<ProbeKind, ProbeVerdict> {
    text.chunks_exact(2)
        .filter_map(|pair| {
            let kind = match pair[0] {
                b's' => ProbeKind::Startup,
                b'r' => ProbeKind::Readiness,
                b'l' => ProbeKind::Liveness,
                _ => return None,
            };
            let verdict = match pair[1] {
                b'?' => ProbeVerdict::Unknown,
                b'+' => ProbeVerdict::Success,
                b'-' => ProbeVerdict::Failure,
                _ => return None,
            };
            Some((kind, verdict))
        })
        .collect()
}
