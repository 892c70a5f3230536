//! A scenario as data: what happens to a node, and when.

use serde::{Deserialize, Serialize};

use crate::shape::Shape;

/// What happens to one node. Its file is JSON.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Scenario {
    /// Of all that is by chance: jitter, rules of the fault plan with a chance.
    pub seed: u64,
    /// In the order of their times.
    pub steps: Vec<Timed>,
    /// When faults end, in milliseconds: from then on the node has to come to rest.
    pub calm_ms: u64,
}

/// A step and its time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Timed {
    /// Milliseconds since the node started.
    pub at_ms: u64,
    /// What happens.
    #[serde(rename = "do")]
    pub step: Step,
}

/// What may happen. A step of which the pod or container is not there does nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum Step {
    /// A pod is bound to the node at the API server.
    Bind(Shape),
    /// A manifest is written, or written anew.
    Static(Shape),
    /// A manifest goes.
    Remove {
        /// Pod.
        pod: String,
    },
    /// A user deletes a pod.
    Delete {
        /// Pod.
        pod: String,
        /// Seconds; absent: the pod's own; 0: by force.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        grace_s: Option<i64>,
    },
    /// A user changes the image of a pod's first container.
    SetImage {
        /// Pod.
        pod: String,
        /// Image.
        image: String,
    },
    /// A user changes the limit of memory of a pod's first container, in MiB.
    Resize {
        /// Pod.
        pod: String,
        /// Limit and request.
        memory_mi: u32,
    },
    /// A container ends.
    Exit {
        /// Container.
        container: String,
        /// Code; absent: the kernel kills it for lack of memory.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<i32>,
    },
    /// A sandbox's own process ends.
    KillSandbox {
        /// Pod.
        pod: String,
    },
    /// The runtime loses a container, process and all.
    LoseContainer {
        /// Container.
        container: String,
    },
    /// Probes of a container fail, or no longer.
    Probes {
        /// Container.
        container: String,
        /// Whether.
        fail: bool,
    },
    /// The daemon is killed, and started again after a while.
    KillDaemon {
        /// Milliseconds.
        down_ms: u64,
        /// Turns of whatever it does that it still has, at the moment of the step: it may die at any await.
        #[serde(default, skip_serializing_if = "is_zero")]
        turns: u32,
    },
    /// The machine starts anew: nothing runs, nothing is mounted, no cgroup is left.
    Reboot {
        /// The power failed: young content of files is lost, and lines of the journal that were not on disk.
        power: bool,
    },
    /// Rules are added to the fault plan, in the language of `bosun fault`.
    Fault {
        /// Rules.
        rules: String,
    },
    /// An actor is killed.
    KillActor {
        /// Its name.
        actor: String,
    },
    /// A manager gives its place to another one of its kind.
    Swap {
        /// Its role.
        role: String,
    },
    /// Somebody sets the machine's clock.
    Clock {
        /// Seconds forward, or back when less than nothing.
        by_s: i64,
    },
    /// The machine is shut down: pods are ended in order, then it starts anew.
    Shutdown,
    /// Who looks a name up is never answered, until [`Step::Calm`].
    Dns,
    /// Trouble with the API server.
    Api(ApiTrouble),
    /// Trouble with the runtime.
    Runtime(RuntimeTrouble),
    /// Trouble with the disk.
    Disk(DiskTrouble),
    /// All trouble of API server, runtime and disk ends.
    Calm,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_zero(n: &u32) -> bool {
    *n == 0
}

/// Trouble with the API server; what lasts does so until [`Step::Calm`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum ApiTrouble {
    /// Nobody reaches it.
    Unplug,
    /// So many requests are answered with this HTTP status.
    Answer {
        /// Status.
        status: u16,
        /// How many.
        times: u32,
    },
    /// So many requests are done, and their answers are lost.
    Lose {
        /// How many.
        times: u32,
    },
    /// So many requests are never answered.
    Hang {
        /// How many.
        times: u32,
    },
    /// So many requests take two seconds.
    Slow {
        /// How many.
        times: u32,
    },
    /// Watches end; resource versions of before are too old.
    Compact,
    /// Watches break.
    Cut,
    /// Watches tell nothing any more.
    Stale,
    /// A backup is made of it.
    Backup,
    /// It is restored from the last backup: what was written since is forgotten, resource versions go back.
    Restore,
}

/// Trouble with the runtime; what lasts does so until [`Step::Calm`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum RuntimeTrouble {
    /// Calls fail and nothing happens.
    Error {
        /// CRI name; `*`: any.
        rpc: String,
        /// How many.
        times: u32,
    },
    /// Calls take effect, and their answer is an error.
    Lost {
        /// CRI name; `*`: any.
        rpc: String,
        /// How many.
        times: u32,
    },
    /// Calls are never answered.
    Hang {
        /// CRI name; `*`: any.
        rpc: String,
        /// How many.
        times: u32,
    },
    /// Calls take three seconds.
    Slow {
        /// CRI name; `*`: any.
        rpc: String,
        /// How many.
        times: u32,
    },
    /// Calls take effect after seven seconds, whether or not somebody still waits.
    Late {
        /// CRI name; `*`: any.
        rpc: String,
        /// How many.
        times: u32,
    },
    /// Lists lack every other sandbox or container, though all are there.
    Partial {
        /// How many.
        times: u32,
    },
    /// All connections break.
    Disconnect,
    /// It is away.
    Down,
    /// It starts anew, and has lost every other container.
    Forget,
    /// Events are lost.
    Mute,
    /// Events come twice.
    Twice,
    /// Events come three seconds late.
    Tardy,
    /// Every other event comes three seconds late, after those of later changes.
    Reorder,
    /// The network of pods is not ready.
    NoNetwork,
}

/// Trouble with the disk, until [`Step::Calm`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum DiskTrouble {
    /// Nothing can be written (ENOSPC), in the journal neither.
    Full,
    /// Every call fails (EIO).
    Broken,
    /// There is little room left on it: the node has to evict.
    Short,
}

impl Scenario {
    /// Its file.
    ///
    /// # Panics
    /// Never: plain data can be written as JSON.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut out = format!("{{\n  \"seed\": {},\n  \"calmMs\": {},\n  \"steps\": [", self.seed, self.calm_ms);
        for (n, step) in self.steps.iter().enumerate() {
            let line = serde_json::to_string(step).expect("plain data can be written as JSON");
            out += if n == 0 { "\n    " } else { ",\n    " };
            out += &line;
        }
        out + "\n  ]\n}\n"
    }

    /// Of the text of a file.
    ///
    /// # Errors
    /// Why it is none.
    pub fn from_text(text: &str) -> Result<Self, String> {
        serde_json::from_str(text).map_err(|e| e.to_string())
    }
}
