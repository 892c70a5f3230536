//! Every type of every declaration crosses a border as JSON and is the same on the other side.

use std::fmt::Debug;
use std::sync::Arc;

use cri_api::v1::{
    ContainerConfig, ContainerMetadata, LinuxPodSandboxConfig, Mount, PodSandboxConfig, PodSandboxMetadata,
};
use proptest::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::crew::{Role, Types};

mod random;

use random::Random;

/// Makes up content from the seed for each type that it meets.
struct Check {
    seed: u64,
    met: usize,
}

impl Types for Check {
    fn meet<T: Serialize + DeserializeOwned + Debug>(&mut self, name: &'static str) {
        self.met += 1;
        let made = T::deserialize(&mut Random::new(self.seed)).unwrap_or_else(|e| panic!("{name}: {e}"));
        same(name, &made);
    }
}

fn same<T: Serialize + DeserializeOwned + Debug>(name: &str, made: &T) {
    let text = serde_json::to_string(made).unwrap_or_else(|e| panic!("{name}: {e}: {made:?}"));
    let back: T = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{name}: {e}: {text}"));
    assert_eq!(serde_json::to_string(&back).unwrap(), text, "{name}");
    assert_eq!(format!("{back:?}"), format!("{made:?}"), "{name}");
}

macro_rules! each_role {
    ($server:ident: $server_role:ident; $($place:ident: $role:ident),* $(,)?) => {
        /// Shows every type of every role; answers how many there are.
        fn check(seed: u64) -> usize {
            let mut check = Check { seed, met: 0 };
            <crate::$server_role as Role>::each_type(&mut check);
            $(<crate::$role as Role>::each_type(&mut check);)*
            check.met
        }
    };
}
crate::for_each_role!(each_role);

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_type_of_every_declaration_is_the_same_after_a_border(seed: u64) {
        let declared: usize = crate::DECLARATIONS
            .iter()
            .map(|d| 2 * d.answers.len() + d.posts.iter().map(|r| if r.key.is_empty() { 1 } else { 2 }).sum::<usize>())
            .sum();
        prop_assert_eq!(check(seed), declared);
    }
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

/// What a newer peer may say that we do not know.
#[test]
fn enums_that_may_grow_take_what_they_do_not_know() {
    fn unknown<T: DeserializeOwned + Debug>() -> String {
        format!("{:?}", serde_json::from_str::<T>("\"FromTheFuture\"").unwrap())
    }
    let read = [
        unknown::<crate::runtime::CallErrorKind>(),
        unknown::<model::runtime::EventTier>(),
        unknown::<crate::node::NodeOrigin>(),
        unknown::<crate::pod_worker::UpdateKind>(),
        unknown::<model::probe::ProbeVerdict>(),
        unknown::<model::runtime::ContainerState>(),
    ];
    assert_eq!(read, ["Failed", "Relist", "Unknown", "Sync", "Unknown", "Unknown"]);
}
