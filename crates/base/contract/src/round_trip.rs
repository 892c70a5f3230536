//! Every type of every declaration crosses a border as JSON and is the same on the other side.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::{Arc, LazyLock};

use actor::{AskError, TellError};
use cri_api::v1::{
    ContainerConfig, ContainerMetadata, LinuxPodSandboxConfig, Mount, PodSandboxConfig, PodSandboxMetadata,
};
use model::PodUid;
use model::object::ObjectRef;
use proptest::prelude::*;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::board::{Cursor, Since};
use crate::objects::ObjectVersion;
use crate::pod_worker::WorkerState;
use crate::role::{Role, RoleMessage, Types};

mod random;

use random::{Newer, Random, Structs};

/// Makes up content from the seed for each type that it meets.
struct Check {
    seed: u64,
    met: usize,
}

impl Types for Check {
    fn meet_message<M: RoleMessage>(&mut self) {
        self.meet::<M>(M::NAME);
        let message = M::deserialize(&mut Random::new(self.seed)).unwrap();
        let fields = serde_json::to_value(&message).unwrap();
        let of_pod = |pod: &Value| model::pod::uid(&serde_json::from_value(pod.clone()).unwrap()).to_string();
        let named = fields.get("uid").map(|uid| uid.as_str().unwrap().to_owned());
        let expected = named.or_else(|| fields.get("pod").map(of_pod));
        assert_eq!(message.subject().as_deref(), expected.as_deref(), "{} says for which pod it is: `for` it", M::NAME);
    }

    fn meet<T: Serialize + DeserializeOwned + Debug>(&mut self, name: &'static str) {
        self.met += 1;
        let made = T::deserialize(&mut Random::new(self.seed)).unwrap_or_else(|e| panic!("{name}: {e}"));
        same(name, &made);
    }
}

/// Enums that have all variants that they will ever have.
const CLOSED: &[&str] = &["Result"];

/// Puts something newer in the place of each enum of each type that it meets.
#[derive(Default)]
struct Newest {
    seed: u64,
    enums: BTreeSet<&'static str>,
}

impl Types for Newest {
    fn meet_message<M: RoleMessage>(&mut self) {
        self.meet::<M>(M::NAME);
    }

    fn meet<T: Serialize + DeserializeOwned + Debug>(&mut self, name: &'static str) {
        let mut usual = Random::new(self.seed);
        T::deserialize(&mut usual).unwrap();
        for (at, of) in usual.enums.into_iter().enumerate().filter(|(_, of)| !CLOSED.contains(of)) {
            for newer in [Newer::Bare, Newer::WithContent] {
                let read = T::deserialize(&mut Random::newer(self.seed, at, newer));
                let made = read.unwrap_or_else(|e| panic!("{name}: {newer:?} variant of {of}: {e}; `tolerant!` it"));
                same(name, &made);
            }
            self.enums.insert(of);
        }
    }
}

/// Structs with the fields that they had when they first crossed a border, a line each: `Name: field field`.
const FIRST: &str = include_str!("round_trip/fields.txt");

/// Reads of each type what a peer of the first version sends.
#[derive(Default)]
struct Oldest {
    seed: u64,
    read: usize,
}

impl Types for Oldest {
    fn meet_message<M: RoleMessage>(&mut self) {
        self.meet::<M>(M::NAME);
    }

    fn meet<T: Serialize + DeserializeOwned + Debug>(&mut self, name: &'static str) {
        static STRUCTS: LazyLock<Structs> = LazyLock::new(|| {
            let line =
                |line: &'static str| line.split_once(':').map(|(name, f)| (name, f.split_whitespace().collect()));
            FIRST.lines().filter_map(line).collect()
        });
        let mut older = Random::older(self.seed, &STRUCTS);
        if let Err(e) = T::deserialize(&mut older) {
            let new = older.structs.iter().filter(|(name, _)| !STRUCTS.contains_key(*name));
            let new: Vec<_> = new.map(|(name, fields)| format!("{name}: {}", fields.join(" "))).collect();
            panic!(
                "{name}: {e}. A field that a struct did not have at first is an Option or has `serde(default)`; a struct \
                that is new has its line in round_trip/fields.txt: one of\n{}",
                new.join("\n")
            );
        }
        self.read += 1;
    }
}

fn same<T: Serialize + DeserializeOwned + Debug>(name: &str, made: &T) {
    let text = serde_json::to_string(made).unwrap_or_else(|e| panic!("{name}: {e}: {made:?}"));
    let back: T = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{name}: {e}: {text}"));
    assert_eq!(serde_json::to_string(&back).unwrap(), text, "{name}");
    assert_eq!(format!("{back:?}"), format!("{made:?}"), "{name}");
}

macro_rules! each_role {
    ($($other_place:ident: $other_role:ident),*; $($place:ident: $role:ident),* $(,)?) => {
        /// Shows every type of every role.
        fn show(types: &mut impl Types) {
            $(<crate::$other_role as Role>::each_type(types);)*
            $(<crate::$role as Role>::each_type(types);)*
        }
    };
}
crate::for_each_role!(each_role);

/// Shows what crosses a border beside what is declared: why there is no answer, and what a reader of a board elsewhere gets.
fn show_others(types: &mut impl Types) {
    types.meet::<AskError>("AskError");
    types.meet::<TellError>("TellError");
    types.meet::<Cursor>("Cursor");
    types.meet::<Since<ObjectRef, ObjectVersion>>("Since of a key that is no text");
    types.meet::<Since<PodUid, WorkerState>>("Since of rows with enums");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_type_of_every_declaration_is_the_same_after_a_border(seed: u64) {
        let declared: usize = crate::DECLARATIONS
            .iter()
            .map(|d| 2 * d.answers.len() + d.posts.iter().map(|r| if r.key.is_empty() { 1 } else { 2 }).sum::<usize>())
            .sum();
        let mut check = Check { seed, met: 0 };
        show(&mut check);
        prop_assert_eq!(check.met, declared);
        show_others(&mut check);
    }
}

/// What a newer peer may say that we do not know.
#[test]
fn every_enum_of_every_declaration_takes_variants_that_it_does_not_have() {
    let mut newest = Newest::default();
    for seed in 0..32 {
        newest.seed = seed;
        show(&mut newest);
        show_others(&mut newest);
    }
    assert!(newest.enums.len() > 12, "few enums were met: {:?}", newest.enums);
}

/// What an older peer cannot know, it does not send.
#[test]
fn no_field_that_came_later_is_asked_of_an_older_peer() {
    let mut oldest = Oldest::default();
    for seed in 0..32 {
        oldest.seed = seed;
        show(&mut oldest);
        show_others(&mut oldest);
    }
    assert!(oldest.read > 32 * 100, "{}", oldest.read);
}

#[test]
fn cri_messages_cross_a_border_whole() {
    let sandbox = PodSandboxConfig {
        metadata: Some(PodSandboxMetadata {
            name: "web".into(),
            uid: "u".into(),
            namespace: "shop".into(),
            attempt: 3,
        }),
        hostname: "web-0".into(),
        log_directory: "/var/log/pods/x".into(),
        labels: [("app".to_owned(), "web".to_owned())].into(),
        linux: Some(LinuxPodSandboxConfig { cgroup_parent: "/kubepods/pod1".into(), ..Default::default() }),
        ..Default::default()
    };
    let container = ContainerConfig {
        metadata: Some(ContainerMetadata { name: "app".into(), attempt: 2 }),
        command: vec!["sh".into(), "-c".into(), "echo \u{fc}\0".into()],
        mounts: vec![Mount {
            container_path: "/data".into(),
            host_path: "/x".into(),
            readonly: true,
            ..Default::default()
        }],
        annotations: [("a".to_owned(), "b".to_owned())].into(),
        ..Default::default()
    };
    let message = crate::runtime::CreateContainer {
        uid: "u".into(),
        sandbox: "s".into(),
        config: Arc::new(container),
        sandbox_config: Arc::new(sandbox),
    };
    let text = serde_json::to_string(&message).unwrap();
    let back: crate::runtime::CreateContainer = serde_json::from_str(&text).unwrap();
    assert_eq!((&back.config, &back.sandbox_config), (&message.config, &message.sandbox_config));
    assert_eq!(serde_json::to_string(&back).unwrap(), text);
}

#[test]
fn every_time_of_a_summary_is_shown_in_whole_seconds() {
    let mut fractions = 0;
    for seed in 0..64 {
        let made = model::stats::Summary::deserialize(&mut Random::new(seed)).unwrap();
        fractions += serde_json::to_string(&made).unwrap().matches(".067008009Z").count();
        let shown = serde_json::to_string(&made.in_whole_seconds()).unwrap();
        assert!(!shown.contains(".067008009Z"), "{shown}");
    }
    assert!(fractions > 100, "{fractions}");
}

#[test]
fn what_is_not_known_is_read_as_what_does_no_harm() {
    fn unknown<T: DeserializeOwned + Debug>() -> String {
        let read = |text| format!("{:?}", serde_json::from_str::<T>(text).unwrap());
        let bare = read(r#""FromTheFuture""#);
        assert_eq!(bare, read(r#"{"FromTheFuture": {"with": "content"}}"#));
        bare
    }
    let read = [
        unknown::<crate::runtime::CallErrorKind>(),
        unknown::<model::runtime::EventTier>(),
        unknown::<crate::node::NodeOrigin>(),
        unknown::<crate::pod_worker::UpdateKind>(),
        unknown::<crate::pod_worker::WorkerPhase>(),
        unknown::<model::probe::ProbeVerdict>(),
        unknown::<model::runtime::ContainerState>(),
        unknown::<model::event::EventType>(),
        unknown::<model::event::EventObject>(),
        unknown::<AskError>(),
        unknown::<TellError>(),
    ];
    assert_eq!(
        read,
        [
            "Failed", "Relist", "Unknown", "Sync", "Syncing", "Unknown", "Unknown", "Warning", "Unknown", "Crashed",
            "Gone"
        ]
    );
    let probes: crate::probe::PodProbes = serde_json::from_str(
        r#"{"verdicts": {"c": {"Liveness": "Success", "Mood": "Failure"}}, "probes": {"app": ["Mood", "Startup"]}}"#,
    )
    .unwrap();
    assert_eq!(format!("{:?}", probes.verdicts.values().next().unwrap()), "{Liveness: Success}");
    assert_eq!(format!("{:?}", probes.probes), r#"{"app": {Startup}}"#);
}
