//! Whom messages are for: the pod that is blamed when the turn crashes.

use std::any::Any;

use actor::Subject;
use model::pod;

use crate::cgroup::{EnsurePodCgroup, RemovePodCgroup, ThrottlePodCgroup};
use crate::image::EnsureImage;
use crate::objects::{FetchToken, HoldObjects, ReleaseObjects};
use crate::probe::{StartProbes, StopProbes};
use crate::runtime::{
    CreateContainer, ExecSync, ObservePod, RemoveContainer, RemovePodSandbox, RunPodSandbox, StartContainer,
    StopContainer, StopPodSandbox,
};
use crate::status::{SetPodStatus, TerminatePod};
use crate::volume::{MakePodDirs, MountVolumes, PrepareSubPath, RemovePodDir, UnmountVolumes};

/// UID of the pod that a message is for; `None`: it is for no single pod.
#[must_use]
pub fn of(message: &dyn Any) -> Option<Subject> {
    macro_rules! first_of {
        ($($message_type:ident: |$m:ident| $uid:expr;)*) => {
            $(if let Some($m) = message.downcast_ref::<$message_type>() {
                return Some($uid.as_str().into());
            })*
        };
    }
    first_of! {
        SetPodStatus: |m| pod::uid(&m.pod);
        TerminatePod: |m| pod::uid(&m.pod);
        ObservePod: |m| m.uid;
        RunPodSandbox: |m| m.uid;
        StopPodSandbox: |m| m.uid;
        RemovePodSandbox: |m| m.uid;
        CreateContainer: |m| m.uid;
        StartContainer: |m| m.uid;
        StopContainer: |m| m.uid;
        RemoveContainer: |m| m.uid;
        ExecSync: |m| m.uid;
        EnsurePodCgroup: |m| pod::uid(&m.pod);
        RemovePodCgroup: |m| m.uid;
        ThrottlePodCgroup: |m| m.uid;
        EnsureImage: |m| pod::uid(&m.pod);
        HoldObjects: |m| pod::uid(&m.pod);
        ReleaseObjects: |m| m.uid;
        FetchToken: |m| pod::uid(&m.pod);
        StartProbes: |m| pod::uid(&m.pod);
        StopProbes: |m| m.uid;
        MakePodDirs: |m| m.uid;
        MountVolumes: |m| pod::uid(&m.pod);
        PrepareSubPath: |m| m.uid;
        UnmountVolumes: |m| m.uid;
        RemovePodDir: |m| m.uid;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_for_a_pod_name_it_and_others_nobody() {
        assert_eq!(of(&ReleaseObjects { uid: "u1".into() }).as_deref(), Some("u1"));
        let mut pod = model::core::Pod::default();
        pod.metadata.uid = Some("u2".into());
        assert_eq!(of(&TerminatePod { pod: pod.into() }).as_deref(), Some("u2"));
        assert_eq!(of(&crate::runtime::Relist), None);
    }
}
