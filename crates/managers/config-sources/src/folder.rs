//! The actor: watches, reads, hands the set over.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use actor::{Actor, Class, Ctx, supervised};
use contract::board::ValuePoster;
use contract::config_sources::folder::FolderManifests;
use contract::config_sources::{Manifests, Source};
use contract::pod_manager::SetPods;
use contract::{Crew, FolderSource as Role};
use futures::StreamExt;
use model::event::{EventObject, EventType, NodeEvent};
use ports::host::HostFs;

use crate::folder::{self, Found, Listing};
use crate::handover::{HandOver, PodSource, hand_over};
use crate::store::{Report, Store};
use crate::watch::{Change, Changes, FolderWatch};

/// Changes that come within this time are read together.
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
    /// Period of the complete look (`fileCheckFrequency`).
    pub period: Duration,
}

/// What the source works with.
#[derive(Clone)]
pub struct Deps {
    /// The files.
    pub fs: Arc<dyn HostFs>,
    /// Who tells of changes.
    pub watch: Arc<dyn FolderWatch>,
}

impl std::fmt::Debug for Deps {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("config_sources::Deps")
    }
}

/// The actor.
#[derive(Debug)]
pub struct FolderSource {
    crew: Crew<Role>,
    view: ValuePoster<FolderManifests>,
    config: Arc<Config>,
    deps: Deps,
    store: Store,
    /// Why the path cannot be read, if so.
    path_error: Option<String>,
    /// Files that changed since the last look, with whether they are surely complete.
    changed: BTreeMap<OsString, bool>,
    /// A complete look is due.
    look: bool,
    /// The folder is being read; what changes meanwhile is read afterwards.
    reading: bool,
    /// A timer gathers changes.
    gathering: bool,
    hand_over: HandOver,
    watch_retry: Duration,
}

impl Actor for FolderSource {
    type Context = Ctx<Self>;

    fn started(&mut self, ctx: &mut Ctx<Self>) {
        self.start_watch(ctx);
        self.look_at_everything(ctx);
        ctx.every(self.config.period, |act, ctx| act.look_at_everything(ctx));
    }
}
supervised!(FolderSource);

impl PodSource for FolderSource {
    type Role = Role;

    fn hand_over_state(&mut self) -> &mut HandOver {
        &mut self.hand_over
    }

    fn crew(&self) -> &Crew<Role> {
        &self.crew
    }

    fn set(&self) -> SetPods {
        SetPods { source: Source::File, pods: self.store.pods(), provisional: false }
    }

    fn delivered(&mut self) {
        let before = self.view.get();
        if !before.delivered {
            self.view.publish(FolderManifests(Manifests { delivered: true, ..before.0.clone() }));
        }
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
            crew,
            store: Store::new(&path),
            config: Arc::new(Config { path, ..(*config).clone() }),
            deps,
            path_error: None,
            changed: BTreeMap::new(),
            look: false,
            reading: false,
            gathering: false,
            hand_over: HandOver::default(),
            watch_retry: WATCH_RETRY,
        }
    }

    /// Watches the path, and says whether that worked. What changed while nobody watched is found by a look afterwards.
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
                act.look_at_everything(ctx);
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
                if act.take_changes(next.unwrap_or_default(), ctx) {
                    Self::await_changes(changes, ctx);
                } else {
                    act.start_watch(ctx);
                    act.look_at_everything(ctx);
                }
            },
        );
    }

    /// Whether the watch is still good.
    fn take_changes(&mut self, changes: Vec<io::Result<Change>>, ctx: &mut Ctx<Self>) -> bool {
        ctx.fault_point("changes");
        let mut good = !changes.is_empty();
        for change in changes {
            match change {
                Ok(Change::Created(name)) => self.note_change(name, false),
                Ok(Change::Written(name) | Change::Gone(name)) => self.note_change(name, true),
                Ok(Change::Everything) => self.look = true,
                Ok(Change::PathGone) => good = false,
                Err(error) => {
                    tracing::warn!(%error, "the watch broke");
                    good = false;
                }
            }
        }
        let work = self.look || !self.changed.is_empty();
        if good && work && !self.gathering {
            self.gathering = true;
            ctx.after(GATHER, |act, ctx| {
                act.gathering = false;
                act.read_on(ctx);
            });
        }
        good
    }

    fn note_change(&mut self, name: OsString, complete: bool) {
        if folder::may_be_manifest(&name) {
            *self.changed.entry(name).or_insert(false) |= complete;
        }
    }

    fn look_at_everything(&mut self, ctx: &mut Ctx<Self>) {
        self.look = true;
        self.read_on(ctx);
    }

    /// Reads what is due, one thing at a time: so what was read later is also taken later.
    fn read_on(&mut self, ctx: &mut Ctx<Self>) {
        if self.reading {
            return;
        }
        if std::mem::take(&mut self.look) {
            self.changed.clear();
            self.read_everything(ctx);
        } else if !self.changed.is_empty() {
            self.read_changed(ctx);
        }
    }

    /// LIFE-OF-A-POD 1b/12: the manifests are found and decoded, and the set is handed to PodManager.
    fn read_everything(&mut self, ctx: &mut Ctx<Self>) {
        self.reading = true;
        let (config, known, effects) = (self.config.clone(), self.store.marks(), ctx.effects());
        let fs = self.deps.fs.clone();
        let work = async move {
            effects.hit("list").await;
            let list = move || folder::list(&*fs, &config.path, &config.node_name, &known);
            effects.attempt(Class::UserPaths, list).await
        };
        ctx.run(work, |act: &mut Self, listing, ctx| {
            act.reading = false;
            match listing {
                Ok(listing) => act.take_listing(listing, ctx),
                Err(error) => tracing::error!(%error, "reading the manifests failed"),
            }
            act.read_on(ctx);
        });
    }

    fn take_listing(&mut self, listing: Listing, ctx: &mut Ctx<Self>) {
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
        if let Some(reports) = self.store.list(listing) {
            self.tell(reports);
            // Said again even when nothing changed: PodManager may have lost it.
            hand_over(self, ctx);
        }
        self.publish();
    }

    fn read_changed(&mut self, ctx: &mut Ctx<Self>) {
        self.reading = true;
        let changed = std::mem::take(&mut self.changed);
        let (config, known, effects) = (self.config.clone(), self.store.marks(), ctx.effects());
        let fs = self.deps.fs.clone();
        let work = async move {
            effects.hit("read").await;
            let read = move || {
                let one = |(name, complete): (OsString, bool)| {
                    let path = config.path.join(&name);
                    let wait = !complete && !folder::is_complete_when_created(&*fs, &path);
                    (!wait).then(|| (folder::read(&*fs, &path, &config.node_name, known.get(&name)), name))
                };
                changed.into_iter().filter_map(one).map(|(found, name)| (name, found)).collect::<Vec<_>>()
            };
            effects.attempt(Class::UserPaths, read).await
        };
        ctx.run(work, |act: &mut Self, found: Result<Vec<(OsString, Found)>, _>, ctx| {
            act.reading = false;
            match found {
                Ok(found) if found.is_empty() => {}
                Ok(found) => {
                    let reports = act.store.events(found);
                    act.tell(reports);
                    act.publish();
                    hand_over(act, ctx);
                }
                Err(error) => {
                    tracing::error!(%error, "reading a manifest failed");
                    act.look = true;
                }
            }
            act.read_on(ctx);
        });
    }

    fn publish(&self) {
        let old = self.view.get();
        let new = Manifests { manifests: self.store.view(), error: self.path_error.clone(), delivered: old.delivered };
        if **old != new {
            self.view.publish(FolderManifests(new));
        }
    }

    fn tell(&self, reports: Vec<Report>) {
        for report in reports {
            match report {
                Report::Refused { file, errors, keeps_old } => {
                    let until = if keeps_old { "; its former version runs until the next look" } else { "" };
                    for error in &errors {
                        tracing::error!(file = %file.display(), "manifest refused: {error}{until}");
                    }
                    self.emit(format!("Manifest {} refused: {}", file.display(), errors.join("; ")));
                }
                Report::Dropped { file, pod } => {
                    tracing::error!(file = %file.display(), pod, "manifest still refused, its pod is given up");
                }
                Report::Skipped { file, reason } => tracing::warn!(file = %file.display(), "skipped: {reason}"),
                Report::Warned { file, warnings } => {
                    for warning in warnings {
                        tracing::warn!(file = %file.display(), "{warning}");
                    }
                }
                Report::Shadowed { file, by, pod } => {
                    let (file, by): (&Path, &Path) = (&file, &by);
                    tracing::error!(file = %file.display(), by = %by.display(), pod, "two manifests define one pod");
                    self.emit(format!("Manifest {} ignored: {} defines {pod} too", file.display(), by.display()));
                }
            }
        }
    }

    fn emit(&self, message: String) {
        let object = EventObject::Node;
        self.crew.emit(NodeEvent { kind: EventType::Warning, reason: "FailedValidation".into(), message, object });
    }
}
