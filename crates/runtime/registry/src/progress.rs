//! How far a pull is.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use image_store::Digest;

/// What is done about a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Others come first.
    Waiting,
    /// It comes.
    Downloading,
    /// It is whole and becomes files.
    Unpacking,
    /// It is unpacked.
    Done,
}

const PHASES: [Phase; 4] = [Phase::Waiting, Phase::Downloading, Phase::Unpacking, Phase::Done];

/// One layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayerProgress {
    /// As it is sent.
    pub digest: Digest,
    /// Bytes as it is sent.
    pub size: u64,
    /// Bytes that are here.
    pub have: u64,
    /// What is done about it.
    pub phase: Phase,
}

#[derive(Debug)]
pub(crate) struct Layer {
    digest: Digest,
    size: u64,
    have: AtomicU64,
    phase: AtomicU8,
}

/// How far a pull is; who pulls writes, anybody reads.
#[derive(Debug, Default, Clone)]
pub struct Progress {
    layers: Arc<Mutex<Vec<Arc<Layer>>>>,
}

impl Progress {
    /// The layers that are pulled, lowest first; those that were here already are not among them. Empty: it is not known yet.
    #[must_use]
    pub fn layers(&self) -> Vec<LayerProgress> {
        let layers = self.layers.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let look = |l: &Arc<Layer>| LayerProgress {
            digest: l.digest,
            size: l.size,
            have: l.have.load(Ordering::Relaxed),
            phase: PHASES[usize::from(l.phase.load(Ordering::Relaxed)).min(PHASES.len() - 1)],
        };
        layers.iter().map(look).collect()
    }

    pub(crate) fn add(&self, digest: Digest, size: u64) -> Arc<Layer> {
        let layer = Arc::new(Layer { digest, size, have: AtomicU64::new(0), phase: AtomicU8::new(0) });
        self.layers.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(layer.clone());
        layer
    }
}

impl Layer {
    pub(crate) fn is(&self, phase: Phase) {
        self.phase.store(phase as u8, Ordering::Relaxed);
    }

    pub(crate) fn has(&self, bytes: u64) {
        self.have.store(bytes, Ordering::Relaxed);
    }
}
