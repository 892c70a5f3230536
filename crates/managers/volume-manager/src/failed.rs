//! A volume that is not in place, and how that is told.

use std::time::Duration;

/// The step in which a volume that its controller made larger grows here.
pub(crate) const GROW: &str = "Setup failed while expanding volume";
/// The step in which it is found that a volume cannot be had on this node.
pub(crate) const NODE_AFFINITY: &str = "NodeAffinity check";

/// The step in which a node would attach a volume itself.
pub(crate) const ATTACH: &str = "AttachVolume.Attach";

/// A volume that is not in place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Failed {
    /// Its name in the pod.
    pub volume: String,
    pub error: String,
    /// Another try cannot help.
    pub hopeless: bool,
    /// How long until it may be tried again, where the volume itself says so.
    pub wait: Option<Duration>,
    /// How users hear of it.
    pub told: Told,
}

/// How users hear of a failure.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Told {
    /// An event that names the step and the volume.
    Event {
        /// The volume is a raw one.
        of_device: bool,
        /// In a kubelet's words; what failed in it is put behind, but for [`GROW`].
        step: &'static str,
        /// Of the volume's directory.
        name: String,
    },
    /// By the end of the wait alone: it waits for the controller that attaches it.
    Unattached,
    /// By the end of the wait alone.
    Wait,
}

impl Failed {
    /// A volume of the pod alone.
    pub(crate) fn own(volume: &str, error: String, hopeless: bool) -> Self {
        Self { hopeless, ..Self::at("SetUp", volume, volume, error) }
    }

    /// A step failed on the volume of this name.
    pub(crate) fn at(step: &'static str, volume: &str, name: &str, error: String) -> Self {
        let told = Told::Event { of_device: false, step, name: name.to_owned() };
        Self { told, ..Self::silent(volume, error) }
    }

    /// Nobody is told but by the end of the wait.
    fn silent(volume: &str, error: String) -> Self {
        Self { volume: volume.to_owned(), error, hopeless: false, wait: None, told: Told::Wait }
    }

    /// The volume may be tried again after this.
    pub(crate) fn again_in(self, wait: Duration) -> Self {
        Self { wait: Some(wait), ..self }
    }

    /// What failed was done to a raw volume.
    pub(crate) fn of_device(mut self) -> Self {
        if let Told::Event { of_device, .. } = &mut self.told {
            *of_device = true;
        }
        self
    }

    /// It is not known which volume it is, or the pod may not have it: the wait for it ends, and its worker begins another one.
    pub(crate) fn unresolved(volume: &str, error: String) -> Self {
        Self { hopeless: true, ..Self::silent(volume, error) }
    }

    /// It is not attached yet.
    pub(crate) fn unattached(volume: &str, error: String) -> Self {
        Self { told: Told::Unattached, ..Self::silent(volume, error) }
    }

    /// It failed with this, which was told, and may not be tried again before `wait`.
    pub(crate) fn backing_off(volume: &str, (wait, error): (Duration, String)) -> Self {
        Self::silent(volume, error).again_in(wait)
    }

    pub(crate) fn is_unattached(&self) -> bool {
        self.told == Told::Unattached
    }
}
