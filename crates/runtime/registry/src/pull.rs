//! An image comes: what it is, its layers side by side, into the store.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Seek;
use std::sync::{Arc, Mutex, Weak};

use futures::future::try_join_all;
use image_pull::reference::Reference;
use image_store::oci::{Document, DocumentError, ImageConfig, Manifest, choose};
use image_store::{Digest, Draft, Image, ImageStore, LayerOf, LayerRecord, NewLayer, StoreError, Writing};
use tokio::sync::{OwnedMutexGuard, Semaphore};
use tokio::time::Instant;

use crate::auth::Credentials;
use crate::error::PullError;
use crate::fetch::Session;
use crate::hosts;
use crate::manifest::{Fetched, Version};
use crate::progress::{Layer, Phase, Progress};
use crate::settings::Settings;
use crate::work::{StopOnDrop, blocking};

/// What is to be pulled.
#[derive(Debug, Clone)]
pub struct Request {
    /// The image's name.
    pub image: String,
    /// Who asks; `None`: anybody.
    pub credentials: Option<Credentials>,
    /// Whether it is never garbage.
    pub pinned: bool,
}

/// Pulls images into a store. Cheap to clone; all clones share their bounds.
#[derive(Debug, Clone)]
pub struct Puller {
    store: ImageStore,
    settings: Settings,
    unpacking: Arc<Semaphore>,
    /// Layers that some pull brings: others wait for them.
    turns: Arc<Mutex<BTreeMap<Digest, Weak<tokio::sync::Mutex<()>>>>>,
}

/// Layers that no other pull of this process brings meanwhile.
type Turns = BTreeMap<Digest, OwnedMutexGuard<()>>;

/// What a name stands for, on its way.
struct Meant {
    reference: Reference,
    /// Documents from the name down to the manifest.
    documents: Vec<Fetched>,
    manifest: Manifest,
    config: Vec<u8>,
}

/// Layers that are sent as one and the same.
struct Sent {
    digest: Digest,
    size: u64,
    layers: Vec<LayerRecord>,
    /// Another pull may bring it, too.
    alone: bool,
}

/// Layers that are unpacked. Those that nobody commits, as another one failed, are removed on a thread: that takes the disk some time.
#[derive(Default)]
struct Ready(Vec<NewLayer>);

impl Ready {
    fn taken(mut self) -> Vec<NewLayer> {
        std::mem::take(&mut self.0)
    }
}

impl Drop for Ready {
    fn drop(&mut self) {
        let layers = std::mem::take(&mut self.0);
        if !layers.is_empty() {
            // Without a thread they go here.
            drop(std::thread::Builder::new().name("registry-discard".to_owned()).spawn(move || drop(layers)));
        }
    }
}

impl Puller {
    /// Into that store.
    #[must_use]
    pub fn new(store: ImageStore, settings: Settings) -> Self {
        let unpacking = Arc::new(Semaphore::new(settings.unpacked_at_once.max(1)));
        Self { store, settings, unpacking, turns: Arc::default() }
    }

    /// The store.
    #[must_use]
    pub fn store(&self) -> &ImageStore {
        &self.store
    }

    /// Pulls an image, or as much of it as is not here. A registry is asked even if all is here: it says what a tag means, and whether these
    /// credentials may have it. Dropping it ends it; what came so far is used by the next one.
    ///
    /// # Errors
    /// See [`PullError`].
    pub async fn pull(&self, request: &Request, progress: &Progress) -> Result<Image, PullError> {
        let name = &request.image;
        let reference = Reference::parse(name).map_err(|e| PullError::Name(name.clone(), e.to_string()))?;
        let version = version(&reference)?;
        let (folder, host) = (self.settings.hosts_dir.clone(), reference.host.clone());
        let endpoints = blocking("registry-hosts", move || hosts::hosts(folder.as_deref(), &host)).await??;
        let credentials = request.credentials.clone();
        let session = Session::new(self.settings.clone(), credentials, reference.path.clone(), endpoints);
        if let Some(image) = self.unchanged(&session, &reference, &version, request.pinned).await? {
            return Ok(image);
        }
        let meant = self.meant(&session, reference, &version).await?;
        let (store, what, wait) = (self.store.clone(), format!("pull {name}"), self.settings.deadlines.store);
        let writing = blocking("registry-store", move || store.writing(&what, wait)).await??;
        self.bring(&session, Arc::new(writing), meant, request.pinned, progress).await
    }

    /// The image that is here, if the registry says that it is what the name means, with that name.
    async fn unchanged(
        &self,
        session: &Session,
        reference: &Reference,
        version: &Version,
        pinned: bool,
    ) -> Result<Option<Image>, PullError> {
        let (store, name) = (self.store.clone(), reference.to_string());
        let here = blocking("registry-store", move || store.resolve(&name)).await??;
        let Some(image) = here.filter(|image| image.pinned || !pinned) else { return Ok(None) };
        let Some(digest) = session.look(version).await else { return Ok(None) };
        let same = image.repo_digests.contains(&format!("{}@{digest}", reference.repository()));
        let fits = image.config.fits(image.layers.len(), &self.settings.platform).is_ok();
        Ok((same && fits).then_some(image))
    }

    async fn meant(&self, session: &Session, reference: Reference, version: &Version) -> Result<Meant, PullError> {
        let top = session.manifest(version).await?;
        let mut documents = vec![top.clone()];
        let manifest = match top.document {
            Document::Manifest(manifest) => manifest,
            Document::Index(manifests) => {
                let chosen = choose(&manifests, &self.settings.platform)?;
                let inner = self.inner(session, chosen.digest).await?;
                documents.push(inner.clone());
                match inner.document {
                    Document::Manifest(manifest) => manifest,
                    Document::Index(_) => return Err(DocumentError::Json("an index within an index".to_owned()).into()),
                }
            }
        };
        let (store, digest) = (self.store.clone(), manifest.config.digest);
        let config = match blocking("registry-store", move || store.document(&digest)).await?? {
            Some(known) => known,
            None => session.small_blob(&manifest.config).await?,
        };
        Ok(Meant { reference, documents, manifest, config })
    }

    /// A manifest that an index names: from the store, where it is known.
    async fn inner(&self, session: &Session, digest: Digest) -> Result<Fetched, PullError> {
        let store = self.store.clone();
        match blocking("registry-store", move || store.document(&digest)).await?? {
            Some(text) => Ok(Fetched { digest, document: Document::parse(&text, "")?, text }),
            None => session.manifest(&Version::Content(digest)).await,
        }
    }

    async fn bring(
        &self,
        session: &Session,
        writing: Arc<Writing>,
        meant: Meant,
        pinned: bool,
        progress: &Progress,
    ) -> Result<Image, PullError> {
        let config = ImageConfig::parse(&meant.config)?;
        let mut draft = Draft::new(&meant.manifest, &config, &self.settings.platform)?;
        writing.keep(draft.layers.iter().map(|l| l.chain_id));
        let turns = self.turns(&writing, &draft).await?;
        let mut missing = self.missing(&writing, &draft).await?;
        missing.iter_mut().for_each(|sent| sent.alone = !turns.contains_key(&sent.digest));
        let states: Vec<Arc<Layer>> = missing.iter().map(|s| progress.add(s.digest, s.size)).collect();
        let coming = Arc::new(Semaphore::new(self.settings.layers_at_once.max(1)));
        let all =
            missing.into_iter().zip(&states).map(|(sent, state)| self.layer(session, &writing, sent, state, &coming));
        let ready = try_join_all(all).await?;
        let new = move || ready.into_iter().flat_map(Ready::taken).collect();
        name(&mut draft, &meant, pinned);
        let commit = move || -> Result<Image, StoreError> {
            writing.put_document(&draft.id, &meant.config)?;
            for fetched in &meant.documents {
                writing.put_document(&fetched.digest, &fetched.text)?;
            }
            writing.commit(draft, new())
        };
        Ok(blocking("registry-store", commit).await??)
    }

    /// Waits until nobody else brings a layer that this image lacks, or for long enough. All of them in one order, so that no two wait for each
    /// other.
    async fn turns(&self, writing: &Arc<Writing>, draft: &Draft) -> Result<Turns, PullError> {
        let until = Instant::now() + self.settings.deadlines.turn;
        let wanted: BTreeSet<Digest> = self.missing(writing, draft).await?.iter().map(|s| s.digest).collect();
        let mut turns = Turns::default();
        for digest in wanted {
            let turn = {
                let mut all = self.turns.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                all.retain(|_, turn| turn.strong_count() > 0);
                let known = all.get(&digest).and_then(Weak::upgrade);
                known.unwrap_or_else(|| {
                    let new = Arc::default();
                    all.insert(digest, Arc::downgrade(&new));
                    new
                })
            };
            if let Ok(ours) = tokio::time::timeout_at(until, turn.lock_owned()).await {
                turns.insert(digest, ours);
            }
        }
        Ok(turns)
    }

    /// Layers that are not here, in the order of the image, those that are sent as one together; there must be room for them.
    async fn missing(&self, writing: &Arc<Writing>, draft: &Draft) -> Result<Vec<Sent>, PullError> {
        let (writing, layers) = (writing.clone(), draft.layers.clone());
        let look = move || -> Result<(Vec<Sent>, u64), StoreError> {
            let mut missing: Vec<Sent> = Vec::new();
            for layer in layers {
                if writing.store().has_layer(&layer.chain_id)? {
                    continue;
                }
                match missing.iter_mut().find(|s| s.digest == layer.digest) {
                    Some(sent) => sent.layers.push(layer),
                    None => {
                        missing.push(Sent { digest: layer.digest, size: layer.size, layers: vec![layer], alone: false })
                    }
                }
            }
            Ok((missing, writing.store().room()?))
        };
        let (missing, room) = blocking("registry-store", look).await??;
        let needed = missing.iter().fold(0u64, |sum, s| sum.saturating_add(s.size));
        if needed > room { Err(PullError::NoRoom { needed, room }) } else { Ok(missing) }
    }

    async fn layer(
        &self,
        session: &Session,
        writing: &Arc<Writing>,
        sent: Sent,
        state: &Layer,
        coming: &Semaphore,
    ) -> Result<Ready, PullError> {
        let file = {
            let _one_of_few = coming.acquire().await.map_err(|_| PullError::Lost("waiting for a layer's turn"))?;
            state.is(Phase::Downloading);
            session.layer(writing, sent.digest, sent.size, sent.alone, state).await?
        };
        let permit = self.unpacking.clone().acquire_owned().await;
        let permit = permit.map_err(|_| PullError::Lost("waiting for a layer's turn"))?;
        state.is(Phase::Unpacking);
        let stop = StopOnDrop::default();
        let (writing, limits, stopped) = (writing.clone(), self.settings.limits, stop.0.clone());
        let unpack = move || -> Result<Ready, StoreError> {
            // Given back when the thread is done, also when nobody waits for it any more.
            let _permit = permit;
            let mut new = Ready::default();
            for layer in &sent.layers {
                let mut file = &file;
                file.rewind().map_err(|source| StoreError::Disk { what: "read", path: "ingest".into(), source })?;
                let of = LayerOf { digest: layer.digest, diff_id: layer.diff_id, chain_id: layer.chain_id };
                new.0.push(writing.unpack(file, of, &limits, &stopped)?);
            }
            Ok(new)
        };
        let new = blocking("registry-unpack", unpack).await??;
        state.is(Phase::Done);
        Ok(new)
    }
}

fn version(reference: &Reference) -> Result<Version, PullError> {
    match (&reference.digest, &reference.tag) {
        (Some(digest), _) => {
            let digest = digest.parse();
            digest
                .map(Version::Content)
                .map_err(|_| PullError::Name(reference.to_string(), "only sha256 digests can be pulled".to_owned()))
        }
        (None, tag) => Ok(Version::Tag(tag.clone().unwrap_or_else(|| "latest".to_owned()))),
    }
}

/// A name with a digest names content alone, whatever tag stands beside it.
fn name(draft: &mut Draft, meant: &Meant, pinned: bool) {
    draft.documents = meant.documents.iter().map(|d| d.digest).collect();
    let repository = meant.reference.repository();
    draft.digests.extend(draft.documents.first().map(|top| format!("{repository}@{top}")));
    if meant.reference.digest.is_none() {
        draft.names.push(meant.reference.to_string());
    }
    draft.pinned = pinned;
}
