//! Actors of one kind, one per key.

use crate::context::Managed;
use crate::error::{AskError, TellError};
use crate::inlet::{Inlet, Route};
use crate::reference::ActorRef;
use crate::turn::Mail;
use actix::Handler;
use dashmap::DashMap;
use dashmap::mapref::entry::Entry;
use futures::FutureExt;
use futures::future::BoxFuture;
use std::fmt;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

/// Spawns the actor of a key.
type Make<K, A> = Box<dyn Fn(&K) -> ActorRef<A> + Send + Sync>;

/// One actor per key, made when the first message for its key comes, until it is retired.
pub struct Family<K, A: Managed> {
    members: DashMap<K, ActorRef<A>>,
    make: Make<K, A>,
}

impl<K: Eq + Hash, A: Managed> fmt::Debug for Family<K, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Family({} members)", self.members.len())
    }
}

impl<K, A> Family<K, A>
where
    K: Eq + Hash + Clone + Send + Sync + 'static,
    A: Managed,
{
    /// A family without members. `make` spawns the actor of one key.
    pub fn new(make: impl Fn(&K) -> ActorRef<A> + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Family { members: DashMap::with_shard_amount(4), make: Box::new(make) })
    }

    /// The actor of `key`, if it has been made.
    pub fn member(&self, key: &K) -> Option<ActorRef<A>> {
        self.members.get(key).map(|m| m.clone())
    }

    /// Keys of all members, in order.
    pub fn keys(&self) -> Vec<K>
    where
        K: Ord,
    {
        let mut keys: Vec<K> = self.members.iter().map(|m| m.key().clone()).collect();
        keys.sort();
        keys
    }

    /// The actor of `key`; made now when there is none.
    pub fn member_or_new(&self, key: &K) -> ActorRef<A> {
        if let Some(found) = self.member(key) {
            return found;
        }
        match self.members.entry(key.clone()) {
            Entry::Occupied(found) => found.get().clone(),
            Entry::Vacant(free) => free.insert((self.make)(key)).clone(),
        }
    }

    /// Forgets the actor of `key`, if there is one: it works off its queue and ends; a later message makes a new one.
    ///
    /// `with_it` takes away what else belongs to the key. No actor of the key is made before it is done, so it never takes
    /// anything from a successor.
    pub fn retire(&self, key: &K, with_it: impl FnOnce()) {
        let entry = self.members.entry(key.clone());
        with_it();
        if let Entry::Occupied(member) = entry {
            member.remove().stop();
        }
    }

    /// Sends the messages of `inlet` to the actor that `key_of` names, which is made if `makes`, else the message is not
    /// delivered.
    pub fn connect<M: Mail>(self: &Arc<Self>, inlet: &Inlet<M>, key_of: fn(&M) -> &K, makes: bool)
    where
        A: Handler<M>,
    {
        inlet.connect_route(Arc::new(ByKey { family: self.clone(), key_of, makes }));
    }
}

/// The way of one type of message into a family.
struct ByKey<K, A: Managed, M> {
    family: Arc<Family<K, A>>,
    key_of: fn(&M) -> &K,
    makes: bool,
}

impl<K, A, M> ByKey<K, A, M>
where
    K: Eq + Hash + Clone + Send + Sync + 'static,
    A: Managed,
{
    fn find(&self, message: &M) -> Option<ActorRef<A>> {
        let key = (self.key_of)(message);
        if self.makes { Some(self.family.member_or_new(key)) } else { self.family.member(key) }
    }
}

impl<K, A, M> Route<M> for ByKey<K, A, M>
where
    K: Eq + Hash + Clone + Send + Sync + 'static,
    A: Managed + Handler<M>,
    M: Mail,
{
    fn tell(&self, message: M) -> Result<(), TellError> {
        self.find(&message).ok_or(TellError::Gone)?.tell(message)
    }

    fn ask(self: Arc<Self>, message: M, deadline: Duration) -> BoxFuture<'static, Result<M::Result, AskError>> {
        async move {
            let member = self.find(&message).ok_or(AskError::NotDelivered)?;
            member.ask(message, deadline).await
        }
        .boxed()
    }
}
