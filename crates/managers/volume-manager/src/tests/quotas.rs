use std::sync::Arc;

use fakes::FakeQuotas;
use serde_json::{Value, json};

use super::rig::{all, config, deps, host, pod};
use crate::Deps;
use crate::layout::PodLayout;
use crate::tear_down::{Left, Proof, volumes_of};

fn volumes() -> Value {
    json!([{"name": "disk", "emptyDir": {}}, {"name": "memory", "emptyDir": {"medium": "Memory"}}, {"name": "host", "hostPath": {"path": "/"}}])
}

fn own(uid: &str) -> Arc<model::core::Pod> {
    let mut pod = (*pod(uid, volumes())).clone();
    pod.spec.as_mut().unwrap().host_users = Some(false);
    Arc::new(pod)
}

#[test]
fn an_empty_dir_on_disk_is_counted_when_its_pod_has_users_of_its_own_until_it_goes() {
    let host = host();
    let quotas = Arc::new(FakeQuotas::default());
    let deps = Deps { quotas: Some(quotas.clone()), ..deps(&host) };
    let config = config(&host);
    for _ in 0..2 {
        all(&deps, &config, &own("u1")).unwrap();
    }
    all(&deps, &config, &pod("u2", volumes())).unwrap();
    let dir = host.path("pods/u1/volumes/kubernetes.io~empty-dir/disk");
    assert_eq!(quotas.dirs(), std::slice::from_ref(&dir));
    let layout = PodLayout::new(&config.root_dir, &"u1".into()).unwrap();
    volumes_of(&deps, &layout, Proof::Ended).and_then(Left::all_gone).unwrap();
    assert!(quotas.dirs().is_empty());
}

#[test]
fn a_volume_that_cannot_be_counted_is_a_volume_all_the_same_and_goes() {
    let host = host();
    let quotas = Arc::new(FakeQuotas::default());
    let deps = Deps { quotas: Some(quotas.clone()), ..deps(&host) };
    let config = config(&host);
    quotas.set_broken(true);
    all(&deps, &config, &own("u1")).unwrap();
    let layout = PodLayout::new(&config.root_dir, &"u1".into()).unwrap();
    volumes_of(&deps, &layout, Proof::Ended).and_then(Left::all_gone).unwrap();
    assert!(!host.exists("pods/u1/volumes/kubernetes.io~empty-dir/disk"));
}
