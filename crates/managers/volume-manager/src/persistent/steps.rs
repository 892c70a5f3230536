//! What a kubelet calls the steps of getting a volume of a driver to a pod.

use volume_plan::claim::Mode;

use crate::measure::MOUNT;

/// Names of steps.
#[derive(Clone, Copy)]
pub(super) struct Steps {
    /// All of them.
    pub operation: &'static str,
    /// Looking what is there.
    pub first: &'static str,
    /// Looking for the driver, and how a kubelet says that there is none.
    pub find: (&'static str, &'static str),
    pub stage: &'static str,
    pub publish: &'static str,
    /// Making what is published usable for containers.
    pub usable: &'static str,
}

/// What a kubelet calls the steps.
pub(super) fn words(mode: Mode, is_inline: bool) -> Steps {
    match mode {
        Mode::Filesystem => {
            let (first, stage) = ("SetUp", "MountDevice");
            let find = if is_inline {
                (first, "mounter.SetUpAt failed to get CSI client")
            } else {
                (stage, "attacher.MountDevice failed to create newCsiDriverClient")
            };
            Steps { operation: MOUNT, first, find, stage, publish: first, usable: first }
        }
        Mode::Block => {
            let (first, usable) = ("SetUpDevice", "MapBlockVolume");
            let find = (first, "blockMapper.SetUpDevice failed to get CSI client");
            Steps { operation: "map_volume", first, find, stage: first, publish: "MapPodDevice", usable }
        }
    }
}
