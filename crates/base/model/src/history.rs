//! What happened to one pod, as its worker saw it: a short list of small entries, for people who look for what holds it up.
//!
//! Plain data. What is recorded, counted together, kept and said of it is decided in `crates/policy/pod-history`.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::Timestamp;

/// An enum of which a number stands in the journal: numbers are never given anew. What is not known here is the last one.
macro_rules! coded {
    ($(#[$doc:meta])* $name:ident { $($(#[$of:meta])* $variant:ident = $code:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(remote = "Self")]
        #[repr(u8)]
        pub enum $name {
            $($(#[$of])* $variant = $code,)*
            /// Of a newer bosun: no more can be said of it.
            Unknown = 255,
        }
        crate::tolerant!($name, else $name::Unknown);

        impl $name {
            /// All that are known here.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// Its number in the journal.
            #[must_use]
            pub const fn code(self) -> u8 {
                self as u8
            }

            /// What a number stands for.
            #[must_use]
            pub fn of_code(code: u8) -> Self {
                Self::ALL.iter().copied().find(|known| known.code() == code).unwrap_or(Self::Unknown)
            }
        }
    };
}

coded! {
    /// What happened, or is under way.
    What {
        /// A worker took the pod on.
        Taken = 0,
        /// The daemon was started again, or the worker was rebuilt, and goes on.
        Resumed = 1,
        /// Waits for another static pod of the same full name.
        Turn = 2,
        /// Waits for the runtime to tell what it has.
        Look = 3,
        /// Waits for the pod's cgroup.
        Cgroup = 4,
        /// Waits for its volumes.
        Volumes = 5,
        /// Waits for the pod network.
        Network = 6,
        /// The runtime makes the sandbox.
        Sandbox = 7,
        /// The image of a container is seen to: pulled, or found here.
        Pull = 8,
        /// The runtime makes a container.
        Create = 9,
        /// The runtime starts a container.
        Start = 10,
        /// The postStart hook of a container runs.
        PostStart = 11,
        /// What runs is being stopped.
        Stop = 12,
        /// Volumes, cgroup and users are given back.
        CleanUp = 13,
        /// A step failed for another reason than the ones above.
        Step = 14,
        /// A container ended; `number` is its exit code.
        Exited = 20,
        /// The pod became ready.
        Ready = 21,
        /// The pod is ready no more.
        NotReady = 22,
        /// Its end was asked for.
        EndAsked = 23,
        /// Nothing is left to do.
        Finished = 24,
        /// Decided: stop the whole pod.
        KillPod = 40,
        /// Decided: remove an init container of the sandbox before.
        PurgeInit = 41,
        /// Decided: stop a container.
        Kill = 42,
        /// Decided: remove a container, so that it starts afresh.
        Reset = 43,
        /// Decided: remove an older instance of an init container.
        PruneInit = 44,
        /// Decided: make a sandbox; `number` is the attempt.
        MakeSandbox = 45,
        /// Decided: start a container.
        Run = 46,
        /// Decided: start a container that was made before.
        Resume = 47,
        /// Decided: a container waits for its crash back-off. The entry begins with the crash and lasts as long as the delay.
        Hold = 48,
        /// Decided: change the memory of a container.
        ResizeMemory = 49,
        /// Decided: change the CPU of a container.
        ResizeCpu = 50,
        /// Decided: wait for an init container to end.
        AwaitInit = 51,
        /// Decided: wait for a sidecar to pass its startup probe.
        AwaitStartup = 52,
        /// Decided: wait for a sidecar's first liveness result.
        AwaitLiveness = 53,
    }
}

impl What {
    /// Whether it is a decision of the plan.
    #[must_use]
    pub const fn is_decision(self) -> bool {
        self.code() >= 40 && self.code() < 100
    }
}

coded! {
    /// Why.
    Reason {
        /// It needs none.
        None = 0,
        /// No instance exists.
        Absent = 1,
        /// First container of a new sandbox.
        NewSandbox = 2,
        /// The init container before it is done.
        PreviousInitDone = 3,
        /// It exited; `number` is the code.
        Exited = 4,
        /// Created but never running.
        NotStarted = 5,
        /// Its start was interrupted.
        Interrupted = 6,
        /// A rule asks to restart all containers.
        RestartAll = 7,
        /// An init container failed and may not run again.
        InitFailed = 8,
        /// No regular container runs or may start.
        AllDone = 9,
        /// Stopped for the pod's end.
        KilledPod = 20,
        /// Stopped for a changed definition.
        KilledDefinition = 21,
        /// Stopped for a failed liveness probe.
        KilledLiveness = 22,
        /// Stopped for a failed startup probe.
        KilledStartup = 23,
        /// Stopped for a resize.
        KilledResize = 24,
        /// Stopped for an unknown state.
        KilledUnknown = 25,
        /// Stopped for a failed postStart hook.
        KilledPostStart = 26,
        /// Stopped for a restart of all containers.
        KilledRestartAll = 27,
        /// No sandbox exists.
        SandboxMissing = 40,
        /// More than one sandbox is ready.
        SandboxMany = 41,
        /// The newest sandbox is not ready.
        SandboxNotReady = 42,
        /// The sandbox has another network mode.
        SandboxNetwork = 43,
        /// The sandbox has no address.
        SandboxAddress = 44,
        /// It was deleted, or is gone from its source.
        Deleted = 60,
        /// It was evicted, preempted, or ended by a shutdown: the text says which.
        Killed = 61,
        /// It has run to its end.
        RanToEnd = 62,
    }
}

coded! {
    /// How something ended.
    End {
        /// It took no time.
        Point = 0,
        /// It is under way.
        Open = 1,
        /// Well.
        Done = 2,
        /// It failed; the text says how.
        Failed = 3,
        /// The worker or the daemon died over it.
        Lost = 4,
    }
}

/// Something that happened, once or again and again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transition {
    /// When it began first.
    pub at: Timestamp,
    /// When it began latest.
    pub last: Timestamp,
    /// How often.
    pub count: u32,
    /// How long it took, the latest time; 0 while it is under way.
    pub took_ms: u32,
    /// What.
    pub what: What,
    /// Why.
    pub reason: Reason,
    /// How it ended, the latest time.
    pub end: End,
    /// Container: place of its name in [`PodHistory::names`].
    pub of: Option<u8>,
    /// Exit code or attempt: see [`What`] and [`Reason`].
    pub number: i32,
    /// What was said of a failure.
    pub text: Option<Arc<str>>,
}

/// One row of the board of histories.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodHistory {
    /// Names of the containers that it speaks of.
    pub names: Vec<Arc<str>>,
    /// Oldest first.
    pub transitions: Vec<Transition>,
    /// How many were there before these.
    pub dropped: u32,
}

impl PodHistory {
    /// Name of the container that an entry speaks of; empty: the pod.
    #[must_use]
    pub fn name(&self, of: &Transition) -> &str {
        of.of.and_then(|place| self.names.get(usize::from(place))).map_or("", |name| name)
    }
}

#[cfg(test)]
mod tests {
    use super::{End, Reason, What};

    #[test]
    fn each_number_stands_for_one_thing_and_an_unknown_one_for_nothing() {
        assert!(What::ALL.iter().all(|w| What::of_code(w.code()) == *w));
        assert!(Reason::ALL.iter().all(|w| Reason::of_code(w.code()) == *w));
        assert!(End::ALL.iter().all(|w| End::of_code(w.code()) == *w));
        assert_eq!(
            (What::of_code(200), Reason::of_code(200), End::of_code(9)),
            (What::Unknown, Reason::Unknown, End::Unknown)
        );
        assert_eq!(serde_json::from_str::<What>("\"Teleported\"").unwrap(), What::Unknown);
    }
}
