//! All routes and boards of a node.

use std::fmt;
use std::sync::Arc;

use actor::{ActorRef, AskError, Family, Handler, Inlet, Managed, TellError};
use arc_swap::ArcSwapOption;
use model::PodUid;

use crate::board::{BoardReader, ValueReader};
use crate::crew::{Answers, Crew, Desk, Letter, Noted, Role, SingleValue, TableRow};
use crate::declaration::Declaration;
use crate::fence::Fence;
use crate::pod_worker::{GrantStart, PodWorker, Retire, RetireWorker, UpdatePod, WorkerState};
use crate::record::Recorder;

/// Calls `$then!` with all roles: the one without an actor, then those with one, bottom up (whoever is asked comes before the
/// asker).
#[macro_export]
macro_rules! for_each_role {
    ($then:path) => {
        $then! {
            server: Server;
            event_recorder: EventRecorder,
            object_store: ObjectStore,
            certificate_manager: CertificateManager,
            runtime_client: RuntimeClient,
            node_lease: NodeLease,
            node_manager: NodeManager,
            status_manager: StatusManager,
            status_syncer: StatusSyncer,
            cgroup_manager: CgroupManager,
            volume_manager: VolumeManager,
            image_manager: ImageManager,
            probe_manager: ProbeManager,
            stats_manager: StatsManager,
            log_manager: LogManager,
            pod_worker: PodWorker,
            pod_manager: PodManager,
            api_source: ApiSource,
            http_source: HttpSource,
            folder_source: FolderSource,
        }
    };
}

/// Who speaks where no role does: the program, a simulation, a test.
const NOBODY: &str = "";

macro_rules! desks {
    ($other_field:ident: $other_role:ident; $($field:ident: $role:ident),* $(,)?) => {
        desks!(@all $($field: $role,)* $other_field: $other_role);
    };
    (@all $($field:ident: $role:ident),*) => {
        /// Desks of all roles.
        #[derive(Debug)]
        pub(crate) struct Desks {
            $(pub(crate) $field: <$crate::$role as Role>::Desk,)*
        }

        impl Desks {
            fn new(fence: impl Fn(&'static str) -> Fence) -> Self {
                Desks { $($field: <$crate::$role as Role>::Desk::new(fence(<$crate::$role as Role>::NAME)),)* }
            }
        }

        /// What is declared of each role, bottom up.
        pub const DECLARATIONS: &[Declaration] = &[$(<$crate::$role as Role>::DECLARATION),*];
    };
}
for_each_role!(desks);

/// How the crew reach each other. Routes and boards live here, so they outlive every actor. Cheap to clone.
///
/// Whoever holds it may say anything to anybody: it stays with those who put a node together (the program, a simulation, a
/// test). A manager gets a [`Crew`] of its role.
#[derive(Clone)]
pub struct Wiring {
    inner: Arc<Inner>,
}

struct Inner {
    desks: Desks,
    recorder: Arc<ArcSwapOption<Box<dyn Recorder>>>,
}

impl fmt::Debug for Wiring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.desks.fmt(f)
    }
}

impl Default for Wiring {
    fn default() -> Self {
        let recorder: Arc<ArcSwapOption<Box<dyn Recorder>>> = Arc::default();
        let desks = Desks::new(|role| Fence::new(role, recorder.clone()));
        Wiring { inner: Arc::new(Inner { desks, recorder }) }
    }
}

impl Wiring {
    /// The capabilities of a role, for an actor that takes its place: what another one posts is refused from now on, its later
    /// generations included.
    #[must_use]
    pub fn crew<R: Role>(&self) -> Crew<R> {
        Crew::new(self.clone(), None)
    }

    /// As [`Self::crew`], for one member of a role with an actor per pod: each has a right to post of its own.
    #[must_use]
    pub fn member_crew<R: Role>(&self, member: &str) -> Crew<R> {
        Crew::new(self.clone(), Some(member.into()))
    }

    /// Routes every message of a role to this actor from now on. Messages that are queued elsewhere are answered there.
    pub fn connect<R: Role, A: Answers<R>>(&self, actor: &ActorRef<A>) {
        A::connect(actor, R::desk(self));
    }

    /// Routes the messages of the role PodWorker to a family with one actor per pod.
    pub fn connect_workers<A>(&self, family: &Arc<Family<PodUid, A>>)
    where
        A: Managed + Handler<UpdatePod> + Handler<GrantStart>,
    {
        family.connect::<UpdatePod>(self.inlet(), |m| &m.uid, true);
        family.connect::<GrantStart>(self.inlet(), |m| &m.uid, false);
        let desk = PodWorker::desk(self);
        let retire =
            Retire { family: family.clone(), fence: desk.fence().clone(), rows: WorkerState::board(desk).clone() };
        self.inlet::<RetireWorker>().connect_route(Arc::new(retire));
    }

    /// The route of a message, for whoever answers that one alone. What is sent through it directly is not noted.
    #[must_use]
    pub fn inlet<M: Letter>(&self) -> &Inlet<M> {
        M::inlet(M::To::desk(self))
    }

    /// Sends a message in nobody's name, and waits for the answer.
    ///
    /// # Errors
    /// See [`AskError`].
    pub async fn ask<M: Letter>(&self, message: M) -> Result<M::Result, AskError> {
        let deadline = message.deadline();
        self.exchange(NOBODY, message, deadline).await
    }

    /// As [`Self::ask`], for answers that can be failures themselves.
    ///
    /// # Errors
    /// The receiver's failure, or what the absence of an answer means in its words.
    pub async fn call<M, T, E>(&self, message: M) -> Result<T, E>
    where
        M: Letter<Result = Result<T, E>>,
        E: From<AskError>,
    {
        self.ask(message).await?
    }

    /// Leaves a message in nobody's name.
    ///
    /// # Errors
    /// See [`TellError`].
    pub fn tell<M: Letter>(&self, message: M) -> Result<(), TellError> {
        self.leave(NOBODY, message)
    }

    /// A table, to read.
    #[must_use]
    pub fn board<T: TableRow>(&self) -> BoardReader<T::Key, T> {
        T::board(T::By::desk(self)).reader()
    }

    /// A single value, to read.
    #[must_use]
    pub fn value<T: SingleValue>(&self) -> ValueReader<T> {
        T::value(T::By::desk(self)).reader()
    }

    /// Posts a row in the name of its role, past its fence. For simulations and tests that play the role.
    pub fn put<T: TableRow>(&self, key: T::Key, row: T) {
        let desk = T::By::desk(self);
        T::board(desk).put(desk.fence(), key, Some(Arc::new(row)));
    }

    /// Takes a row away, as [`Self::put`].
    pub fn take_away<T: TableRow>(&self, key: &T::Key) {
        let desk = T::By::desk(self);
        T::board(desk).put(desk.fence(), key.clone(), None);
    }

    /// Publishes a value, as [`Self::put`].
    pub fn set<T: SingleValue>(&self, value: T) {
        let desk = T::By::desk(self);
        T::value(desk).put(desk.fence(), value);
    }

    /// Posts of former generations of a role that were refused.
    #[must_use]
    pub fn refused_posts<R: Role>(&self) -> u64 {
        R::desk(self).fence().refused()
    }

    /// From now on everything that is said and posted is noted. One recorder at a time.
    pub fn record(&self, recorder: impl Recorder) {
        self.inner.recorder.store(Some(Arc::new(Box::new(recorder))));
    }

    pub(crate) fn desks(&self) -> &Desks {
        &self.inner.desks
    }

    pub(crate) fn recorder(&self) -> Option<Noted> {
        self.inner.recorder.load_full()
    }
}

#[cfg(test)]
mod tests;
