//! SELinux labels that pods want their volumes with.

use model::PodUid;

use super::Volumes;

/// What the SELinux label that a pod wants for a volume is to those who have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Labelled {
    /// There are none.
    First,
    /// Theirs, or the pod was here before.
    Known,
    /// They have it with this one.
    Other(String),
}

impl Volumes {
    /// A pod wants a volume with this SELinux label. One that another pod has otherwise is not noted where that is `enforced`.
    pub(crate) fn label(&self, name: &str, uid: &PodUid, label: &str, enforced: bool) -> Labelled {
        self.entry(name, |e| {
            if e.labels.contains_key(uid) {
                return Labelled::Known;
            }
            let other = e.labels.values().find(|has| *has != label).cloned();
            let is_first = e.labels.is_empty();
            if other.is_none() || !enforced {
                e.labels.insert(uid.clone(), label.to_owned());
            }
            match other {
                Some(other) => Labelled::Other(other),
                None if is_first => Labelled::First,
                None => Labelled::Known,
            }
        })
    }

    /// The pod does not get the volume with its label yet.
    pub(crate) fn unlabel(&self, name: &str, uid: &PodUid) {
        self.entry(name, |e| drop(e.labels.remove(uid)));
    }
}
