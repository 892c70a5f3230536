//! What a role is: messages, boards and edges in types, the list of all roles, and the form of a declaration.
//!
//! From a `role!` declaration come the routes, the boards, the traits [`Asks`] and [`Reads`] that make an undeclared edge a
//! compile error, and the [`Declaration`] that documents and tests are made from.

use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use actor::{ActorRef, Inlet, Mail, Managed, Subject};
use model::core::Pod;
use model::{PodUid, pod};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::board::{Board, Key, Value};
use crate::declaration::{Declaration, Memory, Outcome, Unanswered};
use crate::feed::Feed;
use crate::fence::{Fence, FenceToken};
use crate::taker::Taker;

/// A message of a declared role: plain data that can cross a process border, answered with plain data.
pub trait RoleMessage:
    Mail<Result: Serialize + DeserializeOwned + Outcome> + Clone + Debug + Serialize + DeserializeOwned + Sync
{
    /// Who answers it.
    type To: Role;
    /// Its name.
    const NAME: &'static str;
    /// What a caller does without an answer.
    const UNANSWERED: Unanswered;
    /// How long the answer may take, where the message itself does not say more.
    const DEADLINE: Duration;
    /// It or its answer holds secrets.
    const SECRET: bool;

    /// How long the answer to this very message may take.
    fn deadline(&self) -> Duration {
        Self::DEADLINE
    }

    /// What of its pod is remembered from now on, for an actor that takes the place later.
    fn memory(&self) -> Memory<'_> {
        Memory::Nothing
    }

    /// Its route.
    fn inlet(endpoint: &<Self::To as Role>::Endpoint) -> &Inlet<Self>;
}

/// What says which pod a message is for: the pod that is blamed when the turn crashes.
pub(crate) trait OfPod {
    /// UID of the pod.
    fn uid(&self) -> Subject;
}

impl OfPod for PodUid {
    fn uid(&self) -> Subject {
        self.as_str().into()
    }
}

impl OfPod for Arc<Pod> {
    fn uid(&self) -> Subject {
        pod::uid(self).as_str().into()
    }
}

/// A row of a table that a role posts.
pub trait TableRow: Debug + Serialize + DeserializeOwned + Send + Sync + Sized + 'static {
    /// Who posts it.
    type By: Role;
    /// What names a row.
    type Key: Key + DeserializeOwned + Debug;

    /// Where it is posted.
    fn board(endpoint: &<Self::By as Role>::Endpoint) -> &Board<Self::Key, Self>;
}

/// A single value that a role publishes.
pub trait SingleValue: Debug + Serialize + DeserializeOwned + Send + Sync + Sized + 'static {
    /// Who publishes it.
    type By: Role;

    /// Where it is published.
    fn value(endpoint: &<Self::By as Role>::Endpoint) -> &Value<Self>;
}

/// A part of the crew that others know by what it answers and posts.
pub trait Role: Sized + 'static {
    /// Its name, as documents and logs have it.
    const NAME: &'static str;
    /// All that is declared of it.
    const DECLARATION: Declaration;
    /// Its number in [`for_each_role`](crate::for_each_role).
    #[doc(hidden)]
    const PLACE: usize;
    /// Its routes and boards.
    type Endpoint: Endpoint;

    /// Shows the messages and boards that are declared, with their types: what a border between processes is made from.
    fn meet(visitor: &mut impl Visit<Self>);

    /// Shows every type that is declared: messages, answers, keys, rows, values.
    #[cfg(test)]
    fn each_type(types: &mut impl Types);
}

/// Meets the types of a role.
#[cfg(test)]
pub trait Types {
    /// A message.
    fn meet_message<M: RoleMessage>(&mut self);
    /// Another one; errors come inside of answers.
    fn meet<T: Serialize + DeserializeOwned + Debug>(&mut self, name: &'static str);
}

/// The routes and boards of this role, given as those of some role.
pub(crate) fn endpoint_of<R: Role>(endpoint: &dyn Endpoint) -> &R::Endpoint {
    let endpoint: &dyn Any = endpoint;
    endpoint.downcast_ref().expect("endpoints stand in the order of places")
}

/// Who keeps the routes and boards of one role.
pub(crate) trait Keeper: Send + Sync {
    /// These.
    fn endpoint(&self) -> &dyn Endpoint;
}

/// Routes and boards of one role.
pub trait Endpoint: Any + Debug + Send + Sync {
    /// Unconnected, empty, behind this fence.
    fn new(fence: Fence) -> Self
    where
        Self: Sized;
    /// Decides who may post on its boards.
    fn fence(&self) -> &Fence;
    /// Rows of its boards that were looked at.
    fn rows_read(&self) -> u64;
}

/// Whoever handles every message of a role can take its place.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the {R} of a node",
    note = "it must be an actor with a `Handler` for each message of the role; see its declaration in crates/base/contract/src/roles.rs"
)]
pub trait Answers<R: Role>: Managed {
    /// Routes every message of the role to this actor from now on.
    fn connect(actor: &ActorRef<Self>, endpoint: &R::Endpoint);
}

/// The role has declared that it sends `M`.
#[diagnostic::on_unimplemented(
    message = "{Self} does not declare that it sends `{M}`",
    note = "add it to `asks` in the declaration of the role in crates/base/contract, if the edge belongs there"
)]
pub trait Asks<M: RoleMessage>: Role {}

/// The role has declared that it reads what another one posts.
#[diagnostic::on_unimplemented(
    message = "{Self} does not declare that it reads `{T}`",
    note = "add it to `reads` in the declaration of the role in crates/base/contract, if the edge belongs there"
)]
pub trait Reads<T>: Role {}

/// What is posted, a table's rows or a value, as it crosses the border of a process.
pub trait Posted: Sized + 'static {
    /// Who posts it.
    type By: Role;
    /// Its name on the way.
    const NAME: &'static str;

    /// What is posted here, for a reader elsewhere.
    fn feed(endpoint: &<Self::By as Role>::Endpoint) -> Box<dyn Feed>;
    /// Posts here what was posted elsewhere, for as long as the token passes its fence.
    fn taker(endpoint: &<Self::By as Role>::Endpoint, token: FenceToken) -> Box<dyn Taker>;
}

/// Meets the messages and boards that a role declares, with their types.
pub trait Visit<R: Role> {
    /// A message that it answers.
    fn answers<M: RoleMessage<To = R>>(&mut self) {}
    /// A table or value that it posts.
    fn posts<P: Posted<By = R>>(&mut self) {}
    /// A message that it may send.
    fn asks<M: RoleMessage>(&mut self)
    where
        R: Asks<M>,
    {
    }
    /// A table or value that it may read.
    fn reads<P: Posted>(&mut self)
    where
        R: Reads<P>,
    {
    }
}

/// Calls `$then!` with all roles: those without an actor, then those with one, bottom up (whoever is asked comes before the
/// asker).
#[macro_export]
macro_rules! for_each_role {
    ($then:path) => {
        $then! {
            server: Server, supervisor: Supervisor;
            event_recorder: EventRecorder,
            object_store: ObjectStore,
            certificate_manager: CertificateManager,
            runtime_client: RuntimeClient,
            node_lease: NodeLease,
            node_manager: NodeManager,
            status_manager: StatusManager,
            status_syncer: StatusSyncer,
            cgroup_manager: CgroupManager,
            plugin_manager: PluginManager,
            volume_manager: VolumeManager,
            image_manager: ImageManager,
            probe_manager: ProbeManager,
            stats_manager: StatsManager,
            log_manager: LogManager,
            oom_watcher: OomWatcher,
            pod_worker: PodWorker,
            pod_manager: PodManager,
            eviction_manager: EvictionManager,
            shutdown_manager: ShutdownManager,
            api_source: ApiSource,
            http_source: HttpSource,
            folder_source: FolderSource,
        }
    };
}

macro_rules! places {
    ($($other:ident: $other_role:ident),*; $($place:ident: $role:ident),* $(,)?) => {
        /// Where the endpoint of a role stands in a wiring.
        #[allow(non_camel_case_types, reason = "names as `for_each_role` has them")]
        #[derive(Clone, Copy)]
        pub(crate) enum Place { $($place,)* $($other),* }
    };
}
for_each_role!(places);

/// Declares a role. `ProbeManager` in `roles.rs` is an example with every part.
///
/// - `answers`: its messages, each with the answer, how long that may take, and what a caller does without one
///   ([`crate::Unanswered`]); `for` names the field that says which pod it is for, `plus` adds time that the message itself
///   asks for; `kept secret` says that it or its answer holds secrets, of which recorders get a digest; `remembered` says what
///   an actor that takes the place later is told again ([`crate::Memory`]).
/// - `posts`: its tables (`Key => Row`) and single values (`value Row = initial`).
/// - `asks`: the messages that it may send; `reads`: the rows and values that it may read.
/// - `keeps`: its tables in the journal, which are all of it that it may see in another process.
macro_rules! role {
    (
        $(#[doc = $doc:literal])*
        $role:ident in $place:ident $(, actor $actor:literal)? $(as $intake:ident)?;
        answers { $($message:ident $(for $subject:ident)? => $answer:ty, within $deadline:expr, $unanswered:ident $(, plus $plus:expr)? $(, kept $kept:ident)? $(, remembered $memory:expr)?;)* }
        posts { $(table $key:ty => $row:ident;)* $(value $value:ident = $initial:expr;)* }
        asks { $($asked:ty),* $(,)? }
        reads { $($read:ty),* $(,)? }
        $(keeps { $($kept_table:literal),* $(,)? })?
    ) => {
        $(#[doc = $doc])*
        #[derive(Debug, Clone, Copy)]
        pub enum $role {}

        const _: () = {
            /// Routes and boards of the role.
            #[derive(Debug)]
            #[allow(non_snake_case, reason = "each field is named after the type that it carries")]
            pub struct Endpoint {
                fence: $crate::fence::Fence,
                $($message: actor::Inlet<$message>,)*
                $($row: $crate::board::Board<$key, $row>,)*
                $($value: $crate::board::Value<$value>,)*
            }

            impl $crate::role::Endpoint for Endpoint {
                fn new(fence: $crate::fence::Fence) -> Self {
                    Endpoint {
                        fence,
                        $($message: actor::Inlet::unbound(concat!(stringify!($role), ".", stringify!($message))),)*
                        $($row: $crate::board::Board::new(stringify!($row)),)*
                        $($value: $crate::board::Value::new(stringify!($value), $initial),)*
                    }
                }
                fn fence(&self) -> &$crate::fence::Fence {
                    &self.fence
                }
                fn rows_read(&self) -> u64 {
                    0 $(+ self.$row.rows_read())*
                }
            }

            impl $crate::role::Role for $role {
                const NAME: &'static str = stringify!($role);
                const DECLARATION: $crate::declaration::Declaration = $crate::declaration::Declaration {
                    role: stringify!($role),
                    purpose: concat!($($doc),*),
                    actor: concat!($($actor)?),
                    intake: role!(@intake $($intake)?),
                    answers: &[$($crate::declaration::MessageDeclaration {
                        name: stringify!($message),
                        answer: stringify!($answer),
                        deadline: $deadline,
                        unanswered: $crate::declaration::Unanswered::$unanswered,
                        secret: role!(@kept $($kept)?),
                        remembered: role!(@remembered $($memory)?),
                    }),*],
                    posts: &[
                        $($crate::declaration::RowDeclaration { name: stringify!($row), key: stringify!($key) },)*
                        $($crate::declaration::RowDeclaration { name: stringify!($value), key: "" },)*
                    ],
                    asks: &[$(<$asked as $crate::declaration::Named>::EDGE),*],
                    reads: &[$(<$read as $crate::declaration::Named>::EDGE),*],
                    keeps: &[$($($kept_table),*)?],
                };
                const PLACE: usize = $crate::role::Place::$place as usize;
                type Endpoint = Endpoint;

                #[allow(unused_variables, reason = "a role without messages and rows shows nothing")]
                fn meet(visitor: &mut impl $crate::role::Visit<Self>) {
                    $(visitor.answers::<$message>();)*
                    $(visitor.posts::<$row>();)*
                    $(visitor.posts::<$value>();)*
                    $(visitor.asks::<$asked>();)*
                    $(visitor.reads::<$read>();)*
                }

                #[cfg(test)]
                #[allow(unused_variables, reason = "a role without messages and rows has no types")]
                fn each_type(types: &mut impl $crate::role::Types) {
                    $(
                        types.meet_message::<$message>();
                        types.meet::<$answer>(concat!(stringify!($message), " => ", stringify!($answer)));
                    )*
                    $(
                        types.meet::<$key>(concat!("key of ", stringify!($row)));
                        types.meet::<$row>(stringify!($row));
                    )*
                    $(types.meet::<$value>(stringify!($value));)*
                }
            }

            $(
                impl actor::Message for $message {
                    type Result = $answer;
                }
                impl actor::Mail for $message {
                    $(fn subject(&self) -> Option<actor::Subject> {
                        Some($crate::role::OfPod::uid(&self.$subject))
                    })?
                }
                impl $crate::role::RoleMessage for $message {
                    type To = $role;
                    const NAME: &'static str = stringify!($message);
                    const UNANSWERED: $crate::declaration::Unanswered = $crate::declaration::Unanswered::$unanswered;
                    const DEADLINE: std::time::Duration = $deadline;
                    const SECRET: bool = role!(@kept $($kept)?);

                    $(fn deadline(&self) -> std::time::Duration {
                        let plus: fn(&Self) -> std::time::Duration = $plus;
                        Self::DEADLINE + plus(self)
                    })?

                    $(fn memory(&self) -> $crate::declaration::Memory<'_> {
                        let memory: for<'a> fn(&'a Self) -> $crate::declaration::Memory<'a> = $memory;
                        memory(self)
                    })?

                    fn inlet(endpoint: &Endpoint) -> &actor::Inlet<Self> {
                        &endpoint.$message
                    }
                }
                role!(@named $message by $role);
            )*
            $(
                impl $crate::role::TableRow for $row {
                    type By = $role;
                    type Key = $key;

                    fn board(endpoint: &Endpoint) -> &$crate::board::Board<$key, $row> {
                        &endpoint.$row
                    }
                }
                role!(@named $row by $role);
                role!(@crosses $row by $role as table);
                impl $crate::role::Reads<$row> for $role {}
            )*
            $(
                impl $crate::role::SingleValue for $value {
                    type By = $role;

                    fn value(endpoint: &Endpoint) -> &$crate::board::Value<$value> {
                        &endpoint.$value
                    }
                }
                role!(@named $value by $role);
                role!(@crosses $value by $role as single);
                impl $crate::role::Reads<$value> for $role {}
            )*
            $(impl $crate::role::Asks<$asked> for $role {})*
            $(impl $crate::role::Reads<$read> for $role {})*

            impl<A: actor::Managed $(+ actor::Handler<$message>)*> $crate::role::Answers<$role> for A {
                #[allow(unused_variables, reason = "a role without messages has nothing to connect")]
                fn connect(actor: &actor::ActorRef<Self>, endpoint: &Endpoint) {
                    $(endpoint.$message.connect(actor);)*
                }
            }
        };
    };
    (@kept) => { false };
    (@kept secret) => { true };
    (@remembered) => { false };
    (@remembered $memory:expr) => { true };
    (@intake) => { false };
    (@intake intake) => { true };
    (@crosses $what:ident by $role:ident as $form:ident) => {
        impl $crate::role::Posted for $what {
            type By = $role;
            const NAME: &'static str = stringify!($what);

            fn feed(endpoint: &<$role as $crate::role::Role>::Endpoint) -> Box<dyn $crate::feed::Feed> {
                $crate::feed::$form(endpoint.$what.reader())
            }
            fn taker(
                endpoint: &<$role as $crate::role::Role>::Endpoint,
                token: $crate::fence::FenceToken,
            ) -> Box<dyn $crate::taker::Taker> {
                $crate::taker::$form(endpoint.$what.poster(token))
            }
        }
    };
    (@named $what:ident by $role:ident) => {
        impl $crate::declaration::Named for $what {
            const EDGE: $crate::declaration::Edge =
                $crate::declaration::Edge { role: stringify!($role), what: stringify!($what) };
        }
    };
}
