//! What is wanted of each volume, and what this process knows of it. Outlives the actor; a new process begins with what the disk
//! shows.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use actor::{Clock, Serial};
use csi_api::CsiOutcome;
use model::PodUid;
use model::quantity::Quantity;
use tokio::time::Instant;
use volume_plan::backoff::Backoff;
use volume_plan::state::{Mount, after_failure};

use crate::abilities::Said;
use crate::placed::Placed;
use crate::unreadable::Unreadable;

mod in_use;
mod labels;
mod rows;

pub(crate) use labels::Labelled;

/// Persistent volumes of the node. Make it once, outside of the actor.
#[derive(Clone, Debug, Default)]
pub struct Volumes(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    volumes: BTreeMap<String, Entry>,
    /// Whose turn it is with the sessions of a target of disks.
    targets: BTreeMap<String, Arc<tokio::sync::Mutex<()>>>,
    /// Order among what makes and what takes away a directory that is given to a driver.
    places: Serial<PathBuf>,
    placed: BTreeMap<(PodUid, String), Placed>,
    /// Why a volume of a pod is not in place.
    errors: BTreeMap<(PodUid, String), String>,
    /// What is on the disk and does not say which volume it is.
    unreadable: Vec<Unreadable>,
    /// What drivers can do, by their names.
    abilities: Said,
    /// Set by the first actor.
    clock: Option<Clock>,
    /// Looks at the disk that were begun.
    looks: u64,
    /// The disk was looked at.
    is_read: bool,
    /// All of it could be seen.
    is_known: bool,
    /// What counts as in use until then, by the names that controllers attach it by.
    assumed: Option<BTreeSet<String>>,
    /// The folders of pods were looked at.
    has_looked: bool,
    began: Option<Instant>,
}

/// What an operation is on: the volume for one pod, or (without a pod) for the node.
pub(crate) type Part = Option<PodUid>;

#[derive(Debug, Default)]
struct Entry {
    turn: Arc<tokio::sync::Mutex<()>>,
    /// It needs a controller to attach it; `None`: nobody knows here.
    is_attachable: Option<bool>,
    /// The Node said that it is attached, since somebody wants it.
    is_attached: bool,
    /// Name by which a controller attaches it, where that is another one.
    attach_name: Option<String>,
    /// Pods that want it, with its names there.
    wanted: BTreeMap<PodUid, BTreeSet<String>>,
    /// SELinux labels that they want it with, where it can have one.
    labels: BTreeMap<PodUid, String>,
    is_on_disk: bool,
    /// How many looks at the disk had been begun when that was last noted by who did it.
    changed_in: u64,
    parts: BTreeMap<Part, Known>,
    size: Size,
}

/// What is known of a volume's size.
#[derive(Debug, Default)]
struct Size {
    /// That it has here; zero: nobody knows.
    here: Quantity,
    /// The driver lets it not grow while it is in use.
    stays: bool,
    /// An attempt to let it grow failed.
    has_failed: bool,
    backoff: Backoff,
}

/// What is known of a part.
#[derive(Clone, Debug, Default)]
struct Known {
    mount: Mount,
    /// Since when it is so.
    since: Option<Instant>,
    /// A former process made it, or may have: what a driver refuses now says nothing of that.
    is_found: bool,
    backoff: Backoff,
    /// The call that is under way, and since when.
    doing: Option<(&'static str, Instant)>,
    error: Option<String>,
}

/// A call is under way until this goes.
pub(crate) struct Doing<'a>(&'a Volumes, String, Part);

impl Drop for Doing<'_> {
    fn drop(&mut self) {
        self.0.part(&self.1, &self.2, |k| k.doing = None);
    }
}

impl Volumes {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn entry<T>(&self, name: &str, f: impl FnOnce(&mut Entry) -> T) -> T {
        f(self.state().volumes.entry(name.to_owned()).or_default())
    }

    /// As [`Volumes::entry`], of one of which something on the disk changes: a look that was begun before does not know of it.
    fn changed<T>(&self, name: &str, f: impl FnOnce(&mut Entry) -> T) -> T {
        let mut state = self.state();
        let changed_in = state.looks;
        let entry = state.volumes.entry(name.to_owned()).or_default();
        entry.changed_in = changed_in;
        f(entry)
    }

    fn part<T>(&self, name: &str, part: &Part, f: impl FnOnce(&mut Known) -> T) -> T {
        self.entry(name, |e| f(e.parts.entry(part.clone()).or_default()))
    }

    fn since_start(&self, now: Instant) -> Duration {
        now.saturating_duration_since(*self.state().began.get_or_insert(now))
    }

    /// What drivers said that they can do.
    pub(crate) fn abilities<T>(&self, f: impl FnOnce(&mut Said) -> T) -> T {
        f(&mut self.state().abilities)
    }

    /// A pod wants a volume from now on.
    pub(crate) fn want(
        &self,
        name: &str,
        (uid, volume): (&PodUid, &str),
        is_attachable: bool,
        is_live: impl FnOnce() -> bool,
    ) -> bool {
        let mut state = self.state();
        // As in `note_placed`.
        let is_live = is_live();
        if is_live {
            let entry = state.volumes.entry(name.to_owned()).or_default();
            entry.wanted.entry(uid.clone()).or_default().insert(volume.to_owned());
            entry.is_attachable = Some(is_attachable);
        }
        is_live
    }

    /// The Node says that a volume is attached. Answers whether that is new to those who want it.
    pub(crate) fn is_newly_attached(&self, name: &str) -> bool {
        self.entry(name, |e| !std::mem::replace(&mut e.is_attached, true))
    }

    /// A controller attaches a volume by another name.
    pub(crate) fn is_attached_as(&self, name: &str, attach_name: &str) {
        self.entry(name, |e| e.attach_name = Some(attach_name.to_owned()));
    }

    /// A pod wants none of its volumes any more. Answers whether it wanted some.
    pub(crate) fn unwant(&self, uid: &PodUid) -> bool {
        let mut state = self.state();
        let mut wanted = false;
        for entry in state.volumes.values_mut() {
            wanted |= entry.wanted.remove(uid).is_some();
            entry.is_attached &= !entry.wanted.is_empty();
            entry.labels.remove(uid);
        }
        state.placed.retain(|(of, _), _| of != uid);
        state.errors.retain(|(of, _), _| of != uid);
        wanted
    }

    /// All that a pod had is gone from its folder.
    pub(crate) fn taken_from(&self, uid: &PodUid) {
        for entry in self.state().volumes.values_mut().filter(|e| !e.wanted.contains_key(uid)) {
            let part = Some(uid.clone());
            if entry.parts.get(&part).is_some_and(|k| k.doing.is_none()) {
                entry.parts.remove(&part);
            }
        }
    }

    /// Whether some pod wants it.
    pub(crate) fn is_wanted(&self, name: &str) -> bool {
        self.entry(name, |e| !e.wanted.is_empty())
    }

    /// Whether this pod wants it.
    pub(crate) fn is_wanted_by(&self, name: &str, uid: &PodUid) -> bool {
        self.entry(name, |e| e.wanted.contains_key(uid))
    }

    /// Whose turn it is with a volume.
    pub(crate) fn turn(&self, name: &str) -> Arc<tokio::sync::Mutex<()>> {
        self.entry(name, |e| e.turn.clone())
    }

    /// Whose turn it is with the sessions of a target of disks: it is no volume.
    pub(crate) fn target_turn(&self, target: &str) -> Arc<tokio::sync::Mutex<()>> {
        self.state().targets.entry(target.to_owned()).or_default().clone()
    }

    /// Order among what makes and what takes away a directory that is given to a driver, by its path.
    pub(crate) fn places(&self) -> Serial<PathBuf> {
        self.state().places.clone()
    }

    pub(crate) fn mount(&self, name: &str, part: &Part) -> Mount {
        self.part(name, part, |k| k.mount)
    }

    /// Something is about to be done to a part, of which there was a file on the disk already (`found`) or not.
    pub(crate) fn intend(&self, name: &str, part: &Part, found: bool) {
        let now = self.now();
        self.changed(name, |e| {
            e.is_on_disk = true;
            let known = e.parts.entry(part.clone()).or_default();
            if known.mount == Mount::Absent {
                (known.mount, known.since, known.is_found) = (Mount::Uncertain, now, found);
            }
        });
    }

    /// What an error of the driver makes of a part that was so before it was called.
    pub(crate) fn after_failure(&self, name: &str, part: &Part, before: Mount, error: CsiOutcome) -> Mount {
        self.part(name, part, |k| after_failure(if k.is_found { Mount::Uncertain } else { before }, error, k.is_found))
    }

    /// Notes how far a part is.
    pub(crate) fn note(&self, name: &str, part: &Part, mount: Mount) {
        let now = self.now();
        self.changed(name, |e| {
            e.is_on_disk |= mount != Mount::Absent;
            let known = e.parts.entry(part.clone()).or_default();
            if known.mount != mount {
                (known.mount, known.since) = (mount, now);
            }
            known.is_found &= mount == Mount::Uncertain;
        });
    }

    /// A call is under way.
    pub(crate) fn doing(&self, name: &str, part: &Part, call: &'static str, now: Instant) -> Doing<'_> {
        self.part(name, part, |k| k.doing = Some((call, now)));
        Doing(self, name.to_owned(), part.clone())
    }

    /// How long until a part may be tried again, and why its last try failed.
    pub(crate) fn wait(&self, name: &str, part: &Part, now: Instant) -> Option<(Duration, String)> {
        let now = self.since_start(now);
        self.part(name, part, |k| {
            let wait = k.backoff.wait(now);
            (!wait.is_zero()).then(|| (wait, k.error.clone().unwrap_or_default()))
        })
    }

    /// A try on a part failed: how long until the next.
    pub(crate) fn failed(&self, name: &str, part: &Part, now: Instant, error: &str) -> Duration {
        let now = self.since_start(now);
        self.part(name, part, |k| {
            k.backoff.failed(now);
            k.error = Some(error.to_owned());
            k.backoff.wait(now)
        })
    }

    /// A try on a part was good.
    pub(crate) fn succeeded(&self, name: &str, part: &Part) {
        self.part(name, part, |k| {
            k.backoff.reset();
            k.error = None;
        });
    }

    pub(crate) fn placed(&self, uid: &PodUid, volume: &str) -> Option<Placed> {
        self.state().placed.get(&(uid.clone(), volume.to_owned())).cloned()
    }

    /// A volume of a pod is in place, unless the pod took its wish back meanwhile (`is_live`).
    pub(crate) fn note_placed(&self, uid: &PodUid, volume: &str, placed: Placed, is_live: impl FnOnce() -> bool) {
        let mut state = self.state();
        // Asked with the lock held: the wish is taken back first, then what is noted here.
        if is_live() {
            state.errors.remove(&(uid.clone(), volume.to_owned()));
            state.placed.insert((uid.clone(), volume.to_owned()), placed);
        }
    }

    /// A volume of a pod is not in place, unless the pod took its wish back meanwhile (`is_live`).
    pub(crate) fn note_error(&self, uid: &PodUid, volume: &str, error: &str, is_live: impl FnOnce() -> bool) {
        let mut state = self.state();
        if is_live() {
            state.errors.insert((uid.clone(), volume.to_owned()), error.to_owned());
        }
    }

    /// Whether a driver is told of some volume of the pod again and again.
    pub(crate) fn is_republished(&self, uid: &PodUid) -> bool {
        let of_pod = (uid.clone(), String::new())..;
        self.state().placed.range(of_pod).take_while(|((of, _), _)| of == uid).any(|(_, placed)| placed.republish)
    }

    /// Every volume that is in place, with its pod.
    pub(crate) fn all_placed(&self) -> Vec<(PodUid, Placed)> {
        self.state().placed.iter().map(|((uid, _), placed)| (uid.clone(), placed.clone())).collect()
    }

    /// The size of a volume that may grow while it is in use.
    pub(crate) fn growing_size(&self, name: &str) -> Option<Quantity> {
        self.entry(name, |e| (!e.size.stays && !e.size.here.is_zero()).then_some(e.size.here))
    }

    /// What the claim says of the size, where nothing is known here.
    pub(crate) fn learn_size(&self, name: &str, size: Quantity) {
        self.entry(name, |e| {
            if e.size.here.is_zero() {
                e.size.here = size;
            }
        });
    }

    /// A volume has this size from now on.
    pub(crate) fn grew(&self, name: &str, size: Quantity) {
        self.entry(name, |e| e.size = Size { here: size, stays: e.size.stays, ..Size::default() });
    }

    /// Whether an attempt to let it grow failed since it last grew.
    pub(crate) fn growth_has_failed(&self, name: &str) -> bool {
        self.entry(name, |e| e.size.has_failed)
    }

    /// The driver was asked to let it grow, and did not.
    pub(crate) fn note_growth_failure(&self, name: &str) {
        self.entry(name, |e| e.size.has_failed = true);
    }

    /// The driver lets it not grow while it is in use.
    pub(crate) fn note_stays(&self, name: &str) {
        self.entry(name, |e| e.size.stays = true);
    }

    /// An attempt to let it grow while it is in use failed: how long until the next.
    pub(crate) fn growth_failed(&self, name: &str, now: Instant) -> Duration {
        let now = self.since_start(now);
        self.entry(name, |e| {
            e.size.backoff.failed(now);
            e.size.backoff.wait(now)
        })
    }

    /// What was just found on the disk and does not say which volume it is.
    pub(crate) fn note_unreadable(&self, found: Vec<Unreadable>) {
        self.state().unreadable = found;
    }

    /// The clock that the times of later changes are read from.
    pub(crate) fn set_clock(&self, clock: Clock) {
        self.state().clock = Some(clock);
    }

    fn now(&self) -> Option<Instant> {
        self.state().clock.as_ref().map(Clock::now)
    }

    /// Whether the folders of pods are looked at for the first time in this process.
    pub(crate) fn is_first_look(&self) -> bool {
        !std::mem::replace(&mut self.state().has_looked, true)
    }

    /// What the volumes of a pod wait for: calls that are under way.
    pub(crate) fn calls_of(&self, uid: &PodUid, now: Instant) -> Vec<String> {
        let state = self.state();
        let of = state.volumes.iter().filter(|(_, e)| e.wanted.contains_key(uid));
        let calls = of.flat_map(|(name, e)| {
            let doing = e.parts.values().filter_map(|k| k.doing);
            doing.map(move |(call, since)| {
                let seconds = now.saturating_duration_since(since).as_secs();
                format!("{call} of {name} is under way for {seconds}s")
            })
        });
        calls.collect()
    }
}
