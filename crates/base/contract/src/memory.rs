//! What a role must be told again when another actor begins in its place: declared with its messages, remembered by the wiring.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use actor::{Subject, TellError};
use model::PodUid;

use crate::declaration::Memory;
use crate::record::json;
use crate::role::{Endpoint, RoleMessage, endpoint_of};

/// A remembered message in the form in which it crosses a border.
#[derive(Clone)]
pub struct Told {
    /// Its name.
    pub message: &'static str,
    /// Itself, as JSON.
    pub body: Vec<u8>,
    /// How long the answer may take.
    pub within: Duration,
}

impl fmt::Debug for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Told({}, {} bytes)", self.message, self.body.len())
    }
}

/// A remembered message, whatever its type.
trait Remembered: Send {
    fn name(&self) -> &'static str;
    fn told(&self) -> Told;
    fn tell_again(&self, of_role: &dyn Endpoint) -> Result<(), TellError>;
    fn note_in(&self, other: &Memories);
}

impl<M: RoleMessage> Remembered for M {
    fn name(&self) -> &'static str {
        M::NAME
    }

    fn told(&self) -> Told {
        Told { message: M::NAME, body: json(self).into_bytes(), within: self.deadline() }
    }

    fn tell_again(&self, of_role: &dyn Endpoint) -> Result<(), TellError> {
        M::inlet(endpoint_of::<M::To>(of_role)).tell(self.clone())
    }

    fn note_in(&self, other: &Memories) {
        other.note(self);
    }
}

/// Remembered messages of each pod, in the order in which they were said; `None`: of no pod.
type ByPod = BTreeMap<Option<Subject>, Vec<Box<dyn Remembered>>>;

/// The messages of one role that are remembered: of each pod, and of each type, one. Pods bound it, for what a role remembers
/// of a pod ends with it.
#[derive(Default)]
pub(crate) struct Memories(Mutex<ByPod>);

impl fmt::Debug for Memories {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Memories({})", self.len())
    }
}

impl Memories {
    fn lock(&self) -> MutexGuard<'_, ByPod> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A message is sent.
    pub(crate) fn note<M: RoleMessage>(&self, message: &M) {
        match message.memory() {
            Memory::Nothing => {}
            Memory::Kept => {
                let mut all = self.lock();
                let of_pod = all.entry(message.subject()).or_default();
                of_pod.retain(|other| other.name() != M::NAME);
                of_pod.push(Box::new(message.clone()));
            }
            Memory::Ended => drop(self.lock().remove(&message.subject())),
            Memory::Only(pods) => {
                let is_one = |s: &Option<Subject>| s.as_ref().is_none_or(|s| pods.contains(&PodUid::from(&**s)));
                self.lock().retain(|subject, _| is_one(subject));
            }
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.lock().values().map(Vec::len).sum()
    }

    /// All of it, in the order in which it was said of each pod.
    pub(crate) fn told(&self) -> Vec<Told> {
        self.lock().values().flatten().map(|m| m.told()).collect()
    }

    /// Tells all of it to whoever is connected now; answers how many messages found no room. Whatever is sent meanwhile is noted
    /// later, and comes after it.
    pub(crate) fn tell_again(&self, of_role: &dyn Endpoint) -> usize {
        self.lock().values().flatten().filter(|m| m.tell_again(of_role).is_err()).count()
    }

    /// Adds all of it to another memory.
    pub(crate) fn note_in(&self, other: &Memories) {
        self.lock().values().flatten().for_each(|m| m.note_in(other));
    }
}
