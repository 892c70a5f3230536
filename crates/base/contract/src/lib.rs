//! The protocols of the crew: one file per manager with its messages, its view and its handle, and the edge table that says
//! who may ask whom.
//!
//! A caller holds a `XxxHandle`, never the address of a concrete actor: whoever answers a manager's messages *is* that manager
//! (the crate here, an operator's, a process behind gRPC, a fake). Messages are owned plain data, so that they can cross a
//! process border. What flows upward is published on a [`view::Board`] or a `watch`: boards live in the wiring, outside of
//! the actors, so a restarted manager keeps its readers.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

/// Declares `$name` as a message that is answered with `$result`.
macro_rules! message {
    ($($name:ty => $result:ty),* $(,)?) => {
        $(impl actor::Message for $name {
            type Result = $result;
        })*
    };
}

/// Names the whole set of messages that a manager answers, and lets a handle be connected to whoever answers them.
macro_rules! protocol {
    ($(#[$doc:meta])* $name:ident for $handle:ident { $($field:ident: $message:ty),* $(,)? }) => {
        $(#[$doc])*
        pub trait $name: actor::Managed $(+ actor::Handler<$message>)* {}
        impl<A: actor::Managed $(+ actor::Handler<$message>)*> $name for A {}

        impl $handle {
            /// Routes every message of the protocol to this actor from now on. Holders of the handle notice nothing.
            pub fn connect<A: $name>(&self, to: &actor::ActorRef<A>) {
                $(self.$field.connect(to);)*
            }
        }
    };
}

pub mod certificates;
pub mod cgroup;
pub mod config_sources;
pub mod edges;
pub mod event;
pub mod image;
pub mod lookup;
pub mod node;
pub mod objects;
pub mod pod_manager;
pub mod pod_worker;
pub mod probe;
pub mod runtime;
pub mod stats;
pub mod status;
pub mod subject;
pub mod view;
pub mod volume;
