//! The source of a folder or of a single file (`staticPodPath`, pod-lifecycle 1.5): watched, and listed periodically.
//!
//! `read.rs` reads the files, `manifests.rs` says what follows from them (pure), `watch.rs` tells of changes.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use actor::{Actor, Class, Ctx, supervised};
use contract::board::ValuePoster;
use contract::config_sources::Source;
use contract::config_sources::folder::FolderManifests;
use contract::pod_manager::SetPods;
use contract::{Crew, FolderSource as Role};
use futures::StreamExt;
use model::Timestamp;
use model::event::{EventObject, EventType, NodeEvent};
use ports::host::HostFs;
use ports::watch::{Change, Changes, FolderWatch};

mod manifests;
mod read;
mod report;
mod watch;

pub use watch::InotifyWatch;

use manifests::FolderContent;
use read::{Found, Listing};
use report::Report;

use crate::handover::{HandOver, PodSource, hand_over};
use crate::view;

/// Changes that come within this time are read together: a file that is gone may be on its way to be replaced. What was written whole is read at once.
const GATHER: Duration = Duration::from_millis(2);
/// Changes taken per turn at most.
const CHUNK: usize = 64;
/// Pause before a lost watch is set up anew; doubled up to the ceiling while it fails for another reason than a missing
/// path.
const WATCH_RETRY: Duration = Duration::from_secs(1);
const WATCH_RETRY_MAX: Duration = Duration::from_secs(20);

/// Settings.
#[derive(Clone, Debug)]
pub struct Config {
    /// Name of this node, part of the pods' names.
    pub node_name: String,
    /// Folder or file (`staticPodPath`).
    pub path: PathBuf,
    /// Period of the complete listing (`fileCheckFrequency`).
    pub period: Duration,
}

/// What the source works with.
#[derive(Clone)]
pub struct Deps {
    /// The files.
    pub fs: Arc<dyn HostFs>,
    /// Tells of changes.
    pub watch: Arc<dyn FolderWatch>,
}

impl std::fmt::Debug for Deps {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("config_sources::folder::Deps")
    }
}

/// The actor.
#[derive(Debug)]
pub struct FolderSource {
    crew: Crew<Role>,
    view: ValuePoster<FolderManifests>,
    config: Arc<Config>,
    deps: Deps,
    content: FolderContent,
    /// Why the path cannot be read, if so.
    path_error: Option<String>,
    /// Files that changed since they were last read, with whether they are surely complete.
    changed: BTreeMap<OsString, bool>,
    /// A complete listing is due.
    list_due: bool,
    /// The folder is being read; what changes meanwhile is read afterwards.
    reading: bool,
    /// A timer runs that gathers changes.
    gathering: bool,
    hand_over: HandOver<Role>,
    watch_retry: Duration,
}

impl Actor for FolderSource {
    type Context = Ctx<Self>;

    fn started(&mut self, ctx: &mut Ctx<Self>) {
        self.start_watch(ctx);
        self.list_everything(ctx);
        ctx.every(self.config.period, |act, ctx| act.list_everything(ctx));
    }
}
supervised!(FolderSource);

impl PodSource for FolderSource {
    type Role = Role;

    fn hand_over_state(&mut self) -> &mut HandOver<Role> {
        &mut self.hand_over
    }

    fn set(&self) -> SetPods {
        SetPods { source: Source::File, pods: self.content.pods(), provisional: false, number: 0 }
    }

    fn delivered(&self) {
        view::delivered(&self.view, FolderManifests);
    }
}

/// Whether nothing that may come next is waited for: a file was written whole, or no manifest has that name.
fn is_read_at_once(change: &io::Result<Change>) -> bool {
    match change {
        Ok(Change::Written(_)) => true,
        Ok(Change::Created(name) | Change::Touched(name) | Change::Gone(name)) => !read::may_be_manifest(name),
        Ok(Change::Everything | Change::PathGone) | Err(_) => false,
    }
}

impl FolderSource {
    /// A fresh instance; it reads the folder when it starts.
    #[must_use]
    pub fn new(crew: Crew<Role>, config: Arc<Config>, deps: Deps) -> Self {
        // A trailing slash would make other paths, and so other UIDs, of the same files.
        let path: PathBuf = config.path.components().collect();
        Self {
            view: crew.publisher(),
            hand_over: HandOver::new(crew.clone()),
            crew,
            content: FolderContent::new(&path),
            config: Arc::new(Config { path, ..(*config).clone() }),
            deps,
            path_error: None,
            changed: BTreeMap::new(),
            list_due: false,
            reading: false,
            gathering: false,
            watch_retry: WATCH_RETRY,
        }
    }

    /// Watches the path; whether that worked. What changed while nobody watched is found by a listing afterwards.
    fn start_watch(&mut self, ctx: &mut Ctx<Self>) -> bool {
        match self.deps.watch.start(&self.config.path) {
            Ok(changes) => {
                self.watch_retry = WATCH_RETRY;
                Self::await_changes(changes.ready_chunks(CHUNK), ctx);
                true
            }
            Err(error) => {
                self.watch_later(&error, ctx);
                false
            }
        }
    }

    fn watch_later(&mut self, error: &io::Error, ctx: &mut Ctx<Self>) {
        let path = self.config.path.display();
        let mut pause = WATCH_RETRY;
        if error.kind() == ErrorKind::NotFound {
            tracing::debug!(%path, "nothing to watch there yet");
        } else {
            tracing::warn!(%path, %error, "cannot watch; changes are seen every {:?} only", self.config.period);
            pause = self.watch_retry;
            self.watch_retry = (pause * 2).min(WATCH_RETRY_MAX);
        }
        ctx.after(pause, |act, ctx| {
            if act.start_watch(ctx) {
                act.list_everything(ctx);
            }
        });
    }

    fn await_changes(mut changes: futures::stream::ReadyChunks<Changes>, ctx: &mut Ctx<Self>) {
        ctx.run(
            async move {
                let next = changes.next().await;
                (next, changes)
            },
            |act: &mut Self, (next, changes), ctx| {
                if act.note_changes(next.unwrap_or_default(), ctx) {
                    Self::await_changes(changes, ctx);
                } else {
                    act.start_watch(ctx);
                    act.list_everything(ctx);
                }
            },
        );
    }

    /// Whether the watch is still good.
    fn note_changes(&mut self, changes: Vec<io::Result<Change>>, ctx: &mut Ctx<Self>) -> bool {
        ctx.fault_point("changes");
        let mut good = !changes.is_empty();
        let at_once = changes.iter().all(is_read_at_once);
        for change in changes {
            match change {
                Ok(Change::Created(name)) => self.note_change(name, false),
                Ok(Change::Written(name) | Change::Touched(name) | Change::Gone(name)) => self.note_change(name, true),
                Ok(Change::Everything) => self.list_due = true,
                Ok(Change::PathGone) => good = false,
                Err(error) => {
                    tracing::warn!(%error, "the watch broke");
                    good = false;
                }
            }
        }
        let work = self.list_due || !self.changed.is_empty();
        let is_due = good && work && !self.gathering;
        if is_due && at_once {
            self.read_due(ctx);
        } else if is_due {
            self.gathering = true;
            ctx.after(GATHER, |act, ctx| {
                act.gathering = false;
                act.read_due(ctx);
            });
        }
        good
    }

    fn note_change(&mut self, name: OsString, complete: bool) {
        if read::may_be_manifest(&name) {
            *self.changed.entry(name).or_insert(false) |= complete;
        }
    }

    fn list_everything(&mut self, ctx: &mut Ctx<Self>) {
        self.list_due = true;
        self.read_due(ctx);
    }

    /// Reads what is due, one thing at a time: so what was read later also counts later.
    fn read_due(&mut self, ctx: &mut Ctx<Self>) {
        if self.reading {
            return;
        }
        if std::mem::take(&mut self.list_due) {
            self.changed.clear();
            self.list(ctx);
        } else if !self.changed.is_empty() {
            self.read_changed(ctx);
        }
    }

    /// LIFE-OF-A-POD 1b/12: the manifests are found and decoded, and the set is handed to PodManager.
    fn list(&mut self, ctx: &mut Ctx<Self>) {
        self.reading = true;
        let (config, known, effects) = (self.config.clone(), self.content.marks(), ctx.effects());
        let fs = self.deps.fs.clone();
        let work = async move {
            effects.hit("list").await;
            let list = move || read::list(&*fs, &config.path, &config.node_name, &known);
            effects.attempt(Class::Manifests, list).await
        };
        ctx.run(work, |act: &mut Self, listing, ctx| {
            act.reading = false;
            match listing {
                Ok(listing) => act.apply_listing(listing, ctx),
                Err(error) => tracing::error!(%error, "reading the manifests failed"),
            }
            act.read_due(ctx);
        });
    }

    fn apply_listing(&mut self, listing: Listing, ctx: &mut Ctx<Self>) {
        let path = self.config.path.display();
        let error = match &listing {
            Listing::Missing => Some(format!("{path} does not exist")),
            Listing::Unreadable(reason) => Some(format!("{path} cannot be read: {reason}")),
            Listing::Folder(_) | Listing::Single(_) => None,
        };
        if let Some(error) = error.as_ref().filter(|_| self.path_error != error) {
            tracing::warn!("no static pods: {error}");
        }
        self.path_error = error;
        if let Some(reports) = self.content.list(listing, Timestamp(ctx.clock().unix_nanos())) {
            self.report(reports);
            // Also when nothing changed: PodManager may have lost the set.
            hand_over(self, ctx);
        }
        self.publish();
    }

    fn read_changed(&mut self, ctx: &mut Ctx<Self>) {
        self.reading = true;
        let changed = std::mem::take(&mut self.changed);
        let (config, known, effects) = (self.config.clone(), self.content.marks(), ctx.effects());
        let fs = self.deps.fs.clone();
        let work = async move {
            effects.hit("read").await;
            let read = move || {
                let one = |(name, complete): (OsString, bool)| {
                    let path = config.path.join(&name);
                    let wait = !complete && !read::is_complete_when_created(&*fs, &path);
                    (!wait).then(|| (read::read(&*fs, &path, &config.node_name, known.get(&name)), name))
                };
                changed.into_iter().filter_map(one).map(|(found, name)| (name, found)).collect::<Vec<_>>()
            };
            effects.attempt(Class::Manifests, read).await
        };
        ctx.run(work, |act: &mut Self, found: Result<Vec<(OsString, Found)>, _>, ctx| {
            act.reading = false;
            match found {
                Ok(found) if found.is_empty() => {}
                Ok(found) => {
                    let reports = act.content.events(found, Timestamp(ctx.clock().unix_nanos()));
                    act.report(reports);
                    act.publish();
                    hand_over(act, ctx);
                }
                Err(error) => {
                    tracing::error!(%error, "reading a manifest failed");
                    act.list_due = true;
                }
            }
            act.read_due(ctx);
        });
    }

    fn publish(&self) {
        view::publish(&self.view, FolderManifests, self.content.view(), self.path_error.clone());
    }

    /// Logs what happened to files; where a pod does not run for it there is an event, too.
    fn report(&self, reports: Vec<Report>) {
        for report in reports {
            report.log();
            if let Some(message) = report.event() {
                self.emit(message);
            }
        }
    }

    fn emit(&self, message: String) {
        let object = EventObject::Node;
        self.crew.emit(NodeEvent { kind: EventType::Warning, reason: "FailedValidation".into(), message, object });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_may_be_followed_by_more_of_the_same_file_is_waited_for() {
        let (a, hidden) = (|| OsString::from("a.yaml"), || OsString::from(".a.yaml.new"));
        for (change, at_once) in [
            (Change::Written(a()), true),
            (Change::Created(a()), false),
            (Change::Touched(a()), false),
            (Change::Gone(a()), false),
            // What a file is written under before it is renamed.
            (Change::Created(hidden()), true),
            (Change::Touched(hidden()), true),
            (Change::Gone(hidden()), true),
            (Change::Everything, false),
            (Change::PathGone, false),
        ] {
            let words = format!("{change:?}");
            assert_eq!(is_read_at_once(&Ok(change)), at_once, "{words}");
        }
        assert!(!is_read_at_once(&Err(io::Error::other("broken"))));
    }
}
