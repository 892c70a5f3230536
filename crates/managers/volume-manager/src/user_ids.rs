//! Which ids of the host the users of pods are: given out here, kept in the pods' directories in a kubelet's format.
//! Every function blocks and may be repeated.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use actor::chain;
use contract::volume::VolumeError;
use model::PodUid;
use model::userns::UserNamespace;
use ports::host::{HostError, HostFs, HostResult, Mounter, ProgramEnd};
use volume_plan::userns::{self, Holders, IdRange, OWNER};

use crate::layout::{self, PodLayout};
use crate::listing::dirs;

/// Longest that the host may look for a user or its ids: that may be a question to another machine.
const LOOK_UP: Duration = Duration::from_secs(10);
/// Longest file that is read.
const FILE_MAX: u64 = 64 << 10;
/// Mode of a pod's file.
const MODE: u32 = 0o600;

/// How many ids pods have.
#[derive(Clone, Copy, Debug, Default)]
pub struct IdRules {
    /// `userNamespaces.idsPerPod`: ids of a pod with `hostUsers: false`.
    pub per_pod: u32,
    /// `maxPods`: so many pods must find ids.
    pub max_pods: u32,
}

/// Ids that pods have. Make it once, outside of the actor.
#[derive(Clone, Debug, Default)]
pub struct UserIds(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// What pods may have; `None`: not known yet.
    range: Option<IdRange>,
    /// Who has what; `None`: the files were not read yet.
    holders: Option<Holders>,
}

impl UserIds {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the host need not be asked any more which ids there are.
    pub(crate) fn knows_range(&self) -> bool {
        self.state().range.is_some()
    }

    /// Ids for pods. What the host says is kept; a failure is not: the next pod asks again.
    fn range(&self, mounts: &dyn Mounter, rules: IdRules) -> Result<IdRange, String> {
        if let Some(range) = self.state().range {
            return Ok(range);
        }
        let ids = match subordinate(mounts)? {
            Some(said) => userns::parse_ids(&said)?,
            None => userns::default_ids(rules.per_pod),
        };
        let range = IdRange::new(ids, rules.per_pod, rules.max_pods)?;
        self.state().range = Some(range);
        Ok(range)
    }
}

/// What `getsubids` says of users and groups alike; `None`: the host has no such user, or no such program.
fn subordinate(mounts: &dyn Mounter) -> Result<Option<String>, String> {
    let Some(user) = run(mounts, "getent", &["passwd", OWNER])? else { return Ok(None) };
    match user.code {
        Some(0) => {}
        // There is no such user.
        Some(2) => return Ok(None),
        _ => return Err(format!("error looking for user {OWNER:?}: {}", user.words.trim())),
    }
    let Some(users) = run(mounts, "getsubids", &[OWNER])? else { return Ok(None) };
    let Some(groups) = run(mounts, "getsubids", &["-g", OWNER])? else { return Ok(None) };
    for (end, kind) in [(&users, "uids"), (&groups, "gids")] {
        if end.code != Some(0) {
            return Err(format!("error retrieving additional {kind} for user {OWNER:?}: {}", end.words.trim()));
        }
    }
    if users.words != groups.words {
        return Err(format!("mismatched subuids and subgids for user {OWNER:?}"));
    }
    Ok(Some(users.words))
}

/// How a program ended; `None`: the host does not have it.
fn run(mounts: &dyn Mounter, program: &'static str, arguments: &[&str]) -> Result<Option<ProgramEnd>, String> {
    let arguments: Vec<String> = arguments.iter().map(|&a| a.to_owned()).collect();
    match mounts.run_program(program, &arguments, LOOK_UP) {
        Err(e) if e.is_not_found() => Ok(None),
        other => other.map(Some).map_err(|e| format!("looking for the ids of user {OWNER:?}: {}", chain(&e))),
    }
}

/// The pod's ids, written down before anybody has them.
pub(crate) fn assign(
    ids: &UserIds,
    (fs, mounts): (&dyn HostFs, &dyn Mounter),
    rules: IdRules,
    layout: &PodLayout,
    random: u32,
) -> Result<UserNamespace, VolumeError> {
    let uid = PodUid::from(layout.uid());
    let range = ids.range(mounts, rules).map_err(VolumeError::new)?;
    // Held over the write: who reads the files anew meanwhile would not find this pod's.
    let mut state = ids.state();
    let known = state.holders.as_mut().and_then(|holders| holders.assign(&uid, &range, random).ok());
    let own = match known {
        Some(own) => own,
        None => {
            // Files may have gone, or been mended, since they were read.
            let read = read_all(fs, layout.root());
            let read = read.map_err(|e| VolumeError::new(format!("user namespace: {}", chain(&e))))?;
            state.holders.insert(read).assign(&uid, &range, random).map_err(VolumeError::new)?
        }
    };
    keep(fs, layout, &own).map_err(|e| {
        // Whatever of it reached the disk is read before anything else is given out.
        state.holders = None;
        VolumeError::new(format!("create user namespace: {}", chain(&e)))
    })?;
    Ok(own)
}

fn keep(fs: &dyn HostFs, layout: &PodLayout, ids: &UserNamespace) -> HostResult<()> {
    let path = layout.user_namespace();
    if fs.stat_link(&path)?.is_some() {
        return Ok(());
    }
    fs.write_file_synced(&path, &userns::file(ids), MODE)
}

fn read_all(fs: &dyn HostFs, root: &Path) -> HostResult<Holders> {
    let mut found = Holders::default();
    let pods = layout::pods(root);
    for uid in dirs(fs, &pods)? {
        match fs.read_file(&layout::user_namespace(&pods.join(&uid)), FILE_MAX) {
            Ok(file) => found.read(&PodUid::from(uid.as_str()), &file),
            Err(e) if e.is_not_found() => {}
            Err(e) => return Err(e),
        }
    }
    Ok(found)
}

/// The pod has ended: its ids are free.
pub(crate) fn release(ids: &UserIds, fs: &dyn HostFs, layout: &PodLayout) -> Result<(), String> {
    let uid = PodUid::from(layout.uid());
    let mut state = ids.state();
    if state.holders.as_ref().is_some_and(|holders| !holders.has(&uid)) {
        return Ok(());
    }
    let gone = |e: HostError| if e.is_not_found() { Ok(()) } else { Err(chain(&e)) };
    fs.remove_file(&layout.user_namespace()).or_else(gone)?;
    if let Some(holders) = &mut state.holders {
        holders.release(&uid);
    }
    Ok(())
}
