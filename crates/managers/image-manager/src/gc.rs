//! Making room (node-and-resources 4.1): one pass from start to end.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use actor::{Class, Clock, Effects};
use contract::Crew;
use contract::runtime::Observed;
use cri_api::v1::{Image, ImageSpec, ListImagesRequest, RemoveImageRequest};
use image_pull::gc::{self, Listed, Memory, Thresholds};
use model::Timestamp;
use model::event::{EventObject, EventType, NodeEvent};
use ports::runtime::RuntimeError;

use crate::actor::{Config, Deps};

/// What a pass works with.
pub(crate) struct Pass {
    pub crew: Crew<contract::ImageManager>,
    pub deps: Arc<Deps>,
    pub config: Arc<Config>,
    pub clock: Clock,
    pub effects: Effects,
    pub memory: Memory,
    /// Nothing was known before.
    pub first: bool,
    pub watching_since: Timestamp,
    /// Images that pods asked for and may be about to use.
    pub asked_for: BTreeSet<String>,
}

/// How it ended: what is known now, and what went wrong.
pub(crate) struct Passed {
    pub memory: Memory,
    /// The list came: what is not in memory now will be new.
    pub listed: bool,
    pub error: Option<String>,
}

impl Pass {
    pub(crate) async fn run(mut self) -> Passed {
        let error = self.work().await.err();
        Passed { memory: self.memory, listed: !self.first, error }
    }

    fn now(&self) -> Timestamp {
        Timestamp(self.clock.unix_nanos())
    }

    async fn work(&mut self) -> Result<(), String> {
        self.effects.hit("collect").await;
        let (began, t) = (self.now(), self.config.gc);
        let listed = self.list().await.map_err(|e| e.go_text())?;
        let used = self.in_use();
        gc::observe(&mut self.memory, &listed, &used, began, std::mem::take(&mut self.first));
        for id in gc::too_old(&self.memory, &t, self.watching_since, began) {
            self.remove(&id, "age").await;
        }
        let outcome = self.make_room(&t, began).await;
        self.forget_records(began).await;
        outcome
    }

    async fn list(&self) -> Result<Vec<Listed>, RuntimeError> {
        let images = self.deps.images.list_images(ListImagesRequest::default()).await?.images;
        let of = |i: Image| Listed {
            names: i.repo_tags.into_iter().chain(i.repo_digests).collect(),
            id: i.id,
            size_bytes: i.size,
            pinned: i.pinned,
        };
        Ok(images.into_iter().map(of).collect())
    }

    /// Images of every container that the runtime knows, running or not, by whatever name it has for them.
    fn in_use(&self) -> BTreeSet<String> {
        let mut used = self.asked_for.clone();
        for pod in self.crew.board::<Observed>().snapshot().into_values() {
            used.extend(pod.pod.containers.iter().flat_map(|c| [c.image.clone(), c.image_ref.clone()]));
        }
        used.remove("");
        used
    }

    async fn make_room(&mut self, t: &Thresholds, now: Timestamp) -> Result<(), String> {
        let Some((capacity, available)) = self.disk().await? else { return Ok(()) };
        let wanted = match gc::amount_to_free(capacity, available, t) {
            Ok(None) => return Ok(()),
            Ok(Some(wanted)) => wanted,
            Err(e) => {
                self.tell("InvalidDiskCapacity", e.to_string());
                return Err(e.to_string());
            }
        };
        tracing::info!(capacity, available, wanted, "disk usage of images is over the threshold");
        let mut freed = 0;
        for (id, size) in gc::candidates(&self.memory, t, now) {
            if freed >= wanted {
                break;
            }
            if self.remove(&id, "space").await {
                freed += size;
            }
        }
        if freed < wanted {
            let text = gc::not_enough(wanted, freed);
            self.tell("FreeDiskSpaceFailed", text.clone());
            return Err(text);
        }
        Ok(())
    }

    /// Size and room of the file system that holds images; `None` where the runtime does not say where that is.
    async fn disk(&self) -> Result<Option<(u64, u64)>, String> {
        let info = self.deps.images.image_fs_info().await.map_err(|e| e.go_text())?;
        let id = info.image_filesystems.into_iter().next().and_then(|f| f.fs_id);
        let Some(path) = id.map(|id| PathBuf::from(id.mountpoint)).filter(|p| p.is_absolute()) else { return Ok(None) };
        let fs = self.deps.fs.clone();
        let stat =
            self.effects.blocking(Class::HostFiles, move || fs.stat_fs(&path)).await.map_err(|e| actor::chain(&e))?;
        Ok(Some((stat.total_bytes, stat.available_bytes)))
    }

    async fn remove(&mut self, id: &str, reason: &str) -> bool {
        self.effects.hit("remove").await;
        // A pod may have come for it since the list.
        if self.in_use().contains(id) {
            return false;
        }
        let image = Some(ImageSpec { image: id.to_owned(), ..ImageSpec::default() });
        match self.deps.images.remove_image(RemoveImageRequest { image }).await {
            Ok(()) => {
                tracing::info!(image = id, "an unused image is removed");
                self.memory.remove(id);
                metrics::images::GARBAGE_COLLECTED.with_label_values(&[reason]).inc();
                true
            }
            Err(e) => {
                tracing::warn!(image = id, error = %e.go_text(), "an image cannot be removed");
                false
            }
        }
    }

    async fn forget_records(&self, until: Timestamp) {
        if self.config.verification.is_none() {
            return;
        }
        let (deps, config) = (self.deps.clone(), self.config.clone());
        let ids: BTreeSet<String> = self.memory.keys().cloned().collect();
        self.effects
            .blocking(Class::HostFiles, move || deps.vault.books().open(&*deps.fs, &config.root_dir).prune(&ids, until))
            .await;
    }

    fn tell(&self, reason: &'static str, message: String) {
        let event = NodeEvent { kind: EventType::Warning, reason: reason.into(), message, object: EventObject::Node };
        self.crew.emit(event);
    }
}
