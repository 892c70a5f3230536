//! Making room (node-and-resources 4.1): what is known for it, and one pass from start to end.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use actor::Class;
use contract::runtime::Observed;
use cri_api::v1::{Image, ImageSpec, ListImagesRequest, RemoveImageRequest};
use image_pull::gc::{self, Listed, Memory, Thresholds};
use model::event::{EventObject, EventType, NodeEvent};
use model::{PodUid, Timestamp};
use ports::runtime::RuntimeError;
use tokio::sync::oneshot;

use crate::ages::ImageAges;
use crate::deps::Tools;

/// How long an image that was asked for is kept for a pod that the runtime does not show yet.
const ASKED_FOR_FRESH: Duration = Duration::from_secs(600);

/// What is known for making room.
#[derive(Debug, Default)]
pub(crate) struct Collector {
    ages: ImageAges,
    /// A pass is under way.
    busy: bool,
    /// A pass will begin soon, for a pull.
    soon: bool,
    /// The last pass failed.
    failed: bool,
    /// A disk runs short: who waits for everything to go that nobody uses.
    all_wanted: Vec<oneshot::Sender<Result<u64, String>>>,
}

/// What one pass starts from.
pub(crate) struct Order {
    memory: Memory,
    /// Nothing was known before.
    first: bool,
    watching_since: Timestamp,
    /// Images that pods asked for and may be about to use.
    asked_for: BTreeSet<String>,
    /// Everything goes that nobody uses; these are told.
    pub all_wanted: Vec<oneshot::Sender<Result<u64, String>>>,
}

impl Collector {
    pub(crate) fn new(ages: ImageAges) -> Self {
        Self { ages, ..Self::default() }
    }

    /// Order for a pass, unless one is under way. `regular`: passes come without an occasion, too. `shown` tells which pods the
    /// runtime shows.
    pub(crate) fn begin(&mut self, regular: bool, shown: impl Fn(&PodUid) -> bool, now: Timestamp) -> Option<Order> {
        self.soon = false;
        if std::mem::replace(&mut self.busy, true) {
            return None;
        }
        let fresh = i64::try_from(ASKED_FOR_FRESH.as_nanos()).unwrap_or(i64::MAX);
        let mut known = self.ages.known();
        known.asked_for.retain(|_, (pods, at)| now.nanos_since(*at) < fresh || pods.iter().any(&shown));
        let watching_since = if regular { known.look(now) } else { now };
        Some(Order {
            memory: known.memory.clone(),
            first: !known.listed,
            watching_since,
            asked_for: known.asked_for.keys().cloned().collect(),
            all_wanted: std::mem::take(&mut self.all_wanted),
        })
    }

    /// Everything that nobody uses is to go, with the next pass. Gives what that freed.
    pub(crate) fn want_all(&mut self) -> oneshot::Receiver<Result<u64, String>> {
        let (told, freed) = oneshot::channel();
        self.all_wanted.push(told);
        freed
    }

    /// Whether a pass must follow at once.
    pub(crate) fn is_wanted(&self) -> bool {
        !self.all_wanted.is_empty()
    }

    /// A pass is over; returns whether the one before had failed.
    pub(crate) fn end(&mut self, Passed { memory, listed, error }: &Passed, now: Timestamp) -> bool {
        self.busy = false;
        let mut known = self.ages.known();
        known.listed |= *listed;
        known.memory.clone_from(memory);
        known.looked = now;
        drop(known);
        std::mem::replace(&mut self.failed, error.is_some())
    }

    /// Keeps the image until the runtime shows the pod.
    pub(crate) fn asked_for(&mut self, pod: PodUid, image_ref: String, now: Timestamp) {
        let mut known = self.ages.known();
        let (pods, at) = known.asked_for.entry(image_ref).or_insert_with(|| (BTreeSet::new(), now));
        pods.insert(pod);
        *at = now;
    }

    /// An image was pulled: whether a pass is still to be planned for that.
    pub(crate) fn due_soon(&mut self) -> bool {
        !std::mem::replace(&mut self.soon, true)
    }
}

/// How a pass ended: what is known now, and what went wrong.
pub(crate) struct Passed {
    pub memory: Memory,
    /// The list came: what is not in memory now will be new.
    pub listed: bool,
    pub error: Option<String>,
}

/// One pass.
pub(crate) async fn pass(tools: Tools, order: Order) -> Passed {
    let mut pass = Pass { tools, order };
    let outcome = pass.run().await;
    for waits in std::mem::take(&mut pass.order.all_wanted) {
        // Who does not wait any more asks again.
        waits.send(outcome.clone()).unwrap_or_default();
    }
    let error = outcome.err();
    Passed { memory: pass.order.memory, listed: !pass.order.first, error }
}

struct Pass {
    tools: Tools,
    order: Order,
}

impl Pass {
    /// Bytes that went.
    async fn run(&mut self) -> Result<u64, String> {
        self.tools.effects.hit("collect").await;
        let (began, t) = (self.tools.steady(), self.tools.config.gc);
        let records_until = self.tools.now();
        let listed = self.list().await.map_err(|e| e.go_text())?;
        let used = self.in_use();
        gc::observe(&mut self.order.memory, &listed, &used, began, std::mem::take(&mut self.order.first));
        for id in gc::too_old(&self.order.memory, &t, self.order.watching_since, began) {
            self.remove(&id, "age").await;
        }
        let outcome = self.make_room(&t, began).await;
        self.forget_records(records_until).await;
        outcome
    }

    async fn list(&self) -> Result<Vec<Listed>, RuntimeError> {
        let images = self.tools.deps.images.list_images(ListImagesRequest::default()).await?.images;
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
        let mut used = self.order.asked_for.clone();
        for pod in self.tools.crew.board::<Observed>().snapshot().into_values() {
            used.extend(pod.pod.containers.iter().flat_map(|c| [c.image.clone(), c.image_ref.clone()]));
        }
        used.remove("");
        used
    }

    async fn make_room(&mut self, t: &Thresholds, now: Timestamp) -> Result<u64, String> {
        if !self.order.all_wanted.is_empty() {
            return Ok(self.free(u64::MAX, t, now).await);
        }
        let Some((capacity, available)) = self.disk().await? else { return Ok(0) };
        let wanted = match gc::amount_to_free(capacity, available, t) {
            Ok(None) => return Ok(0),
            Ok(Some(wanted)) => wanted,
            Err(e) => {
                self.emit("InvalidDiskCapacity", e.to_string());
                return Err(e.to_string());
            }
        };
        tracing::info!(capacity, available, wanted, "disk usage of images is over the threshold");
        let freed = self.free(wanted, t, now).await;
        if freed < wanted {
            let text = gc::not_enough(wanted, freed);
            self.emit("FreeDiskSpaceFailed", text.clone());
            return Err(text);
        }
        Ok(freed)
    }

    /// Removes what nobody uses until so many bytes went. Answers how many did.
    async fn free(&mut self, wanted: u64, t: &Thresholds, now: Timestamp) -> u64 {
        let mut freed: u64 = 0;
        for (id, size) in gc::candidates(&self.order.memory, t, now) {
            if freed >= wanted {
                break;
            }
            if self.remove(&id, "space").await {
                freed = freed.saturating_add(size);
            }
        }
        freed
    }

    /// Size and room of the file system that holds images; `None` where the runtime does not say where that is.
    async fn disk(&self) -> Result<Option<(u64, u64)>, String> {
        let info = self.tools.deps.images.image_fs_info().await.map_err(|e| e.go_text())?;
        let id = info.image_filesystems.into_iter().next().and_then(|f| f.fs_id);
        let Some(path) = id.map(|id| PathBuf::from(id.mountpoint)).filter(|p| p.is_absolute()) else { return Ok(None) };
        let fs = self.tools.deps.fs.clone();
        let stat = self
            .tools
            .effects
            .blocking(Class::HostFiles, move || fs.stat_fs(&path))
            .await
            .map_err(|e| actor::chain(&e))?;
        Ok(Some((stat.total_bytes, stat.available_bytes)))
    }

    async fn remove(&mut self, id: &str, reason: &str) -> bool {
        self.tools.effects.hit("remove").await;
        // A pod may have come for it since the list.
        if self.in_use().contains(id) {
            return false;
        }
        let image = Some(ImageSpec { image: id.to_owned(), ..ImageSpec::default() });
        match self.tools.deps.images.remove_image(RemoveImageRequest { image }).await {
            Ok(()) => {
                tracing::info!(image = id, "an unused image is removed");
                self.order.memory.remove(id);
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
        if self.tools.config.verification.is_some() {
            let ids: BTreeSet<String> = self.order.memory.keys().cloned().collect();
            self.tools.records(move |r| r.prune(&ids, until)).await;
        }
    }

    fn emit(&self, reason: &'static str, message: String) {
        let event = NodeEvent { kind: EventType::Warning, reason: reason.into(), message, object: EventObject::Node };
        self.tools.crew.emit(event);
    }
}
