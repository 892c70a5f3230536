//! The one list of who asks whom. Requests follow it downward; everything upward is a view.

/// One actor's edges.
#[derive(Debug, Clone, Copy)]
pub struct Edges {
    /// The asker.
    pub actor: &'static str,
    /// Whom it asks.
    pub asks: &'static [&'static str],
    /// Whose views it reads.
    pub reads: &'static [&'static str],
}

/// All of them. `cargo xtask map` draws it into ARCHITECTURE.md.
pub const EDGES: &[Edges] = &[
    Edges { actor: "ConfigSources", asks: &["PodManager", "EventRecorder"], reads: &["NodeManager"] },
    Edges {
        actor: "PodManager",
        asks: &[
            "PodWorker",
            "RuntimeClient",
            "StatusManager",
            "ProbeManager",
            "VolumeManager",
            "CgroupManager",
            "ObjectStore",
            "EventRecorder",
        ],
        reads: &["PodWorker", "RuntimeClient", "VolumeManager", "CgroupManager", "StatusManager", "NodeManager"],
    },
    Edges {
        actor: "PodWorker",
        asks: &[
            "ImageManager",
            "VolumeManager",
            "CgroupManager",
            "ProbeManager",
            "StatusManager",
            "RuntimeClient",
            "ObjectStore",
            "EventRecorder",
        ],
        reads: &["RuntimeClient", "ProbeManager", "StatusManager", "NodeManager"],
    },
    Edges { actor: "ProbeManager", asks: &["RuntimeClient", "EventRecorder"], reads: &["StatusManager"] },
    Edges { actor: "ImageManager", asks: &["ObjectStore", "EventRecorder"], reads: &["RuntimeClient"] },
    Edges { actor: "VolumeManager", asks: &["ObjectStore", "EventRecorder"], reads: &["ObjectStore"] },
    Edges { actor: "CgroupManager", asks: &["EventRecorder"], reads: &["PodManager"] },
    Edges { actor: "StatusManager", asks: &[], reads: &["PodManager", "PodWorker"] },
    Edges {
        actor: "NodeManager",
        asks: &["EventRecorder"],
        reads: &["RuntimeClient", "PodManager", "VolumeManager", "ImageManager"],
    },
    Edges { actor: "CertificateManager", asks: &[], reads: &["NodeManager"] },
    Edges {
        actor: "StatsManager",
        asks: &[],
        reads: &["RuntimeClient", "PodManager", "CgroupManager", "VolumeManager"],
    },
    Edges { actor: "LogManager", asks: &[], reads: &["RuntimeClient"] },
    Edges { actor: "ObjectStore", asks: &[], reads: &[] },
    Edges { actor: "RuntimeClient", asks: &[], reads: &[] },
    Edges { actor: "EventRecorder", asks: &[], reads: &["PodManager"] },
    Edges {
        actor: "Server",
        asks: &["PodManager", "StatsManager"],
        reads: &[
            "PodManager",
            "PodWorker",
            "StatusManager",
            "RuntimeClient",
            "ConfigSources",
            "EventRecorder",
            "NodeManager",
            "CertificateManager",
        ],
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeMap, BTreeSet};

    #[test]
    fn every_name_in_the_table_is_an_actor_of_the_table() {
        let actors: BTreeSet<_> = EDGES.iter().map(|e| e.actor).collect();
        assert_eq!(actors.len(), EDGES.len(), "an actor stands twice in the table");
        for e in EDGES {
            for n in e.asks.iter().chain(e.reads) {
                assert!(actors.contains(n), "{} names {n}, which is no actor", e.actor);
            }
        }
    }

    #[test]
    fn requests_never_go_round_in_a_circle() {
        let mut left: BTreeMap<_, BTreeSet<_>> =
            EDGES.iter().map(|e| (e.actor, e.asks.iter().copied().collect())).collect();
        while !left.is_empty() {
            let leaf =
                left.iter().find(|(_, asks)| asks.iter().all(|a| !left.contains_key(a))).map(|(actor, _)| *actor);
            let Some(leaf) = leaf else { panic!("a circle among {:?}", left.keys()) };
            left.remove(leaf);
        }
    }
}
