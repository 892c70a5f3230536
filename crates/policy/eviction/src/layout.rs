//! Which file systems a node has apart, and what that means for its thresholds (node-and-resources 3.3).

use crate::signal::{Signal, Threshold};

/// Where the runtime keeps images and writable layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// On the disk of the node's own files.
    Single,
    /// Both on a disk of their own.
    ImagesApart,
    /// Images on a disk of their own, writable layers on that of the node's own files.
    LayersApartFromImages,
}

impl Layout {
    /// From what is on one device with what.
    #[must_use]
    pub const fn new(images_apart_from_root: bool, layers_apart_from_images: bool) -> Self {
        match (images_apart_from_root, layers_apart_from_images) {
            (false, _) => Layout::Single,
            (true, false) => Layout::ImagesApart,
            (true, true) => Layout::LayersApartFromImages,
        }
    }
}

/// What counts against a pod when a disk runs short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Counted {
    /// Writable layers.
    pub(crate) layers: bool,
    /// Logs and local volumes.
    pub(crate) logs_and_volumes: bool,
}

/// What counts for a signal of a disk.
pub(crate) fn counted(signal: Signal, layout: Layout) -> Counted {
    use Signal::{ContainerfsAvailable, ContainerfsInodesFree, ImagefsAvailable, ImagefsInodesFree};
    let of_images = matches!(signal, ImagefsAvailable | ImagefsInodesFree);
    let of_layers = matches!(signal, ContainerfsAvailable | ContainerfsInodesFree);
    match layout {
        Layout::Single => Counted { layers: true, logs_and_volumes: true },
        Layout::ImagesApart => {
            let is_theirs = of_images || of_layers;
            Counted { layers: is_theirs, logs_and_volumes: !is_theirs }
        }
        Layout::LayersApartFromImages => Counted { layers: !of_images, logs_and_volumes: !of_images },
    }
}

/// What is tidied up before a pod has to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reclaim {
    /// Dead containers, those of ended pods that still exist included.
    DeadContainers,
    /// Images that nobody uses.
    UnusedImages,
}

/// What helps against a signal, in order.
#[must_use]
pub const fn reclaim(signal: Signal, layout: Layout) -> &'static [Reclaim] {
    use Reclaim::{DeadContainers, UnusedImages};
    use Signal::{
        AllocatableMemoryAvailable, ImagefsAvailable, ImagefsInodesFree, MemoryAvailable, NodefsAvailable,
        NodefsInodesFree, PidAvailable,
    };
    match (layout, signal) {
        (_, MemoryAvailable | AllocatableMemoryAvailable | PidAvailable)
        | (Layout::ImagesApart, NodefsAvailable | NodefsInodesFree) => &[],
        (Layout::LayersApartFromImages, ImagefsAvailable | ImagefsInodesFree) => &[UnusedImages],
        (Layout::LayersApartFromImages, _) => &[DeadContainers],
        _ => &[DeadContainers, UnusedImages],
    }
}

/// Thresholds of `containerfs` are those of the disk that it is on; what was configured for it is passed over, as in a kubelet.
#[must_use]
pub fn for_layout(thresholds: &[Threshold], layout: Layout) -> Vec<Threshold> {
    use Signal::{
        ContainerfsAvailable, ContainerfsInodesFree, ImagefsAvailable, ImagefsInodesFree, NodefsAvailable,
        NodefsInodesFree,
    };
    let (bytes, inodes) = match layout {
        Layout::ImagesApart => (ImagefsAvailable, ImagefsInodesFree),
        Layout::Single | Layout::LayersApartFromImages => (NodefsAvailable, NodefsInodesFree),
    };
    let is_own = |t: &&Threshold| !matches!(t.signal, ContainerfsAvailable | ContainerfsInodesFree);
    let derived = thresholds.iter().filter_map(|t| {
        let signal = match t.signal {
            s if s == bytes => ContainerfsAvailable,
            s if s == inodes => ContainerfsInodesFree,
            _ => return None,
        };
        Some(Threshold { signal, ..*t })
    });
    thresholds.iter().filter(is_own).copied().chain(derived).collect()
}
