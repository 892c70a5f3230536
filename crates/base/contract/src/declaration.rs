//! What is declared of the roles, as data: what documents and tests are made from.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use model::PodUid;

/// What a caller does when a message got no answer: its receiver was not there, had no room, died over it, or took too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unanswered {
    /// Idempotent: ask again.
    Repeat,
    /// Not idempotent: look first what happened, then decide.
    LookFirst,
    /// Do without: the loss is bearable, a second time would be wrong or in vain.
    GiveUp,
}

/// What becomes of the memory of a pod when a message about it is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Memory<'a> {
    /// The message is remembered, in the place of the former one of its type and pod.
    Kept,
    /// All that is remembered of the pod is forgotten.
    Ended,
    /// All other pods are forgotten.
    Only(&'a BTreeSet<PodUid>),
    /// Nothing.
    Nothing,
}

/// Whether an answer says that what was asked for failed.
pub trait Outcome {
    /// It does.
    fn is_failure(&self) -> bool {
        false
    }
}

impl Outcome for () {}
impl Outcome for bool {}
impl<T: ?Sized> Outcome for Arc<T> {}
impl<T, E> Outcome for Result<T, E> {
    fn is_failure(&self) -> bool {
        self.is_err()
    }
}

/// What is declared of a role, as data.
#[derive(Debug, Clone, Copy)]
pub struct Declaration {
    /// Name of the role.
    pub role: &'static str,
    /// What it is for, one line.
    pub purpose: &'static str,
    /// Its actor; of a role with an actor per pod the first part of their names. Empty: no actor.
    pub actor: &'static str,
    /// Changes of what is wanted come in here: ends first when the node stops.
    pub intake: bool,
    /// What it answers.
    pub answers: &'static [MessageDeclaration],
    /// What it posts.
    pub posts: &'static [RowDeclaration],
    /// What it may send.
    pub asks: &'static [Edge],
    /// What it may read.
    pub reads: &'static [Edge],
    /// Its tables in the journal: the beginnings of its keys.
    pub keeps: &'static [&'static str],
}

/// One message.
#[derive(Debug, Clone, Copy)]
pub struct MessageDeclaration {
    /// Type.
    pub name: &'static str,
    /// Type of the answer.
    pub answer: &'static str,
    /// How long the answer may take.
    pub deadline: Duration,
    /// What a caller does without one.
    pub unanswered: Unanswered,
    /// It or its answer holds secrets.
    pub secret: bool,
    /// It changes what is remembered of its pod, and told again to an actor that takes the place later: the same message may
    /// come at any time.
    pub remembered: bool,
}

/// One table or value.
#[derive(Debug, Clone, Copy)]
pub struct RowDeclaration {
    /// Type of the row or value.
    pub name: &'static str,
    /// Type of the key; empty: a single value.
    pub key: &'static str,
}

/// A way from one role to another.
#[derive(Debug, Clone, Copy)]
pub struct Edge {
    /// The other role.
    pub role: &'static str,
    /// Message or row.
    pub what: &'static str,
}

/// A message, row or value with the role that it belongs to.
#[doc(hidden)]
pub trait Named {
    /// The way to it.
    const EDGE: Edge;
}
