//! What a start and a look at a pod that runs cost: what is done while others are waited for, calls and hops to other threads.

use std::sync::Arc;
use std::time::Duration;

use actor::testing::{run, settle};
use actor::{Class, Kernel};
use contract::ObjectStore;
use contract::objects::{FetchToken, ObjectError, Token};
use contract::volume::{ExpectVolumes, MakePodDirs, MountVolumes, PodVolumes};
use fakes::StandIn;
use model::core::Pod;
use model::{PodUid, Timestamp};
use serde_json::json;

use super::cluster::{pod_of, pod_with, with_cluster};
use super::csi::Lie;
use super::rig::{Bench, host, pod};

const TOKEN: &str = "pods/u/volumes/kubernetes.io~projected/token";
const MAP: &str = "pods/u/volumes/kubernetes.io~configmap/map";
const ROOM: &str = "pods/u/volumes/kubernetes.io~empty-dir/room";

fn with_token() -> Arc<Pod> {
    let sources = json!([{"serviceAccountToken": {"path": "token", "expirationSeconds": 3607}}]);
    pod(
        "u",
        json!([
            {"name": "token", "projected": {"defaultMode": 0o644, "sources": sources}},
            {"name": "map", "configMap": {"name": "cm", "defaultMode": 0o644}},
            {"name": "room", "emptyDir": {}},
        ]),
    )
}

/// From now on a token comes this much after it was asked for.
fn slow_token(bench: &Bench, after: Duration) {
    StandIn::<ObjectStore>::on(&bench.wiring).answer_later(move |_: &FetchToken| async move {
        tokio::time::sleep(after).await;
        let later = Timestamp::from_secs(4_000_000_000);
        Ok(Token { text: "tok".to_owned(), expires_at: later, refresh_at: later })
    });
}

fn hops(kernel: &Kernel) -> u64 {
    let classes = kernel.blocking_classes();
    classes.iter().filter(|c| matches!(c.class, Class::HostFiles | Class::UserPaths)).map(|c| c.finished).sum()
}

#[test]
fn what_needs_no_token_is_set_up_while_one_is_asked_for() {
    run(1, async |kernel| {
        let host = host();
        let bench = Bench::start(&kernel, &host);
        bench.objects.put_map("cm", json!({"a": "1"}));
        slow_token(&bench, Duration::from_secs(5));
        bench.wiring.ask(MakePodDirs { uid: PodUid::from("u") }).await.unwrap().unwrap();
        let (wiring, waits) = (bench.wiring.clone(), with_token());
        let waiting = tokio::task::spawn_local(async move { wiring.ask(MountVolumes { pod: waits }).await });
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!((host.read(format!("{MAP}/a")), host.exists(ROOM)), ("1".to_owned(), true));
        assert!(!host.exists(TOKEN), "nothing is made of what has no content yet");
        assert_eq!(bench.present("u"), Some(vec!["map".to_owned(), "room".to_owned()]));
        let done = waiting.await.unwrap().unwrap().unwrap();
        assert_eq!(done.volumes.keys().collect::<Vec<_>>(), ["map", "room", "token"]);
        assert_eq!(host.read(format!("{TOKEN}/token")), "tok");
        assert_eq!(bench.present("u"), Some(["map", "room", "token"].map(str::to_owned).to_vec()));
    });
}

#[test]
fn what_fails_in_either_half_is_told_together_in_the_order_of_the_pod() {
    run(1, async |kernel| {
        let host = host();
        let bench = Bench::start(&kernel, &host);
        let text = |name: &str, why: &str| {
            format!("Warning FailedMount: MountVolume.SetUp failed for volume \"{name}\" : {why}")
        };
        let refused = || ObjectError::Failed("no token".to_owned());
        StandIn::<ObjectStore>::on(&bench.wiring).answer(move |_: &FetchToken| Err(refused()));
        bench.wiring.ask(MakePodDirs { uid: PodUid::from("u") }).await.unwrap().unwrap();
        let failed = bench.wiring.ask(MountVolumes { pod: with_token() }).await.unwrap().unwrap_err();
        assert!(failed.message.starts_with("unmounted volumes=[token map], "), "{failed}");
        let told = bench.told();
        assert!(told[0].starts_with(&text("token", "")) && told[0].ends_with("no token"), "{told:?}");
        assert_eq!(told[1], text("map", "configmap \"cm\" not found"));
        let row = bench.row("u").unwrap();
        assert_eq!(row.present, ["room"]);
        assert!(row.error.as_ref().is_some_and(|e| e.contains("configmap \"cm\" not found")), "{row:?}");
    });
}

/// A claim that is in place after a try that failed for something else is in place in the next one.
#[test]
fn a_claim_in_place_waits_for_the_token_of_its_pod() {
    with_cluster(async |c| {
        c.claim("a", json!({}));
        let refused = || ObjectError::Failed("no token".to_owned());
        StandIn::<ObjectStore>::on(&c.bench.wiring).answer(move |_: &FetchToken| Err(refused()));
        let sources = json!([{"serviceAccountToken": {"path": "token", "expirationSeconds": 3607}}]);
        let volumes = vec![
            json!({ "name": "v-a", "persistentVolumeClaim": { "claimName": "a" } }),
            json!({ "name": "token", "projected": { "defaultMode": 0o644, "sources": sources } }),
        ];
        let waits = super::cluster::spawn(&c, &pod_of("u1", volumes, json!({})));
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert_eq!(c.csi.calls(), ["stage h-a", "publish h-a"]);
        slow_token(&c.bench, Duration::ZERO);
        assert_eq!(waits.await.unwrap().unwrap().volumes.len(), 2);
    });
}

/// A driver that hangs holds up neither files of objects nor directories.
#[test]
fn what_needs_no_driver_is_set_up_while_one_works() {
    with_cluster(async |c| {
        c.claim("a", json!({}));
        c.csi.lie("stage", &[Lie::Slow(5)]);
        let volumes = vec![
            json!({ "name": "v-a", "persistentVolumeClaim": { "claimName": "a" } }),
            json!({ "name": "room", "emptyDir": {} }),
        ];
        let p = pod_of("u", volumes, json!({}));
        let waiting = super::cluster::spawn(&c, &p);
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(c.host.exists(ROOM) && !waiting.is_finished());
        let done = waiting.await.unwrap().unwrap();
        assert_eq!(done.volumes.keys().collect::<Vec<_>>(), ["room", "v-a"]);
        assert_eq!(c.bench.present("u"), Some(vec!["pv-a".to_owned(), "room".to_owned()]));
    });
}

/// Each step of a pod's worker asks for its volumes: what is there is looked at in one hop, and its row needs no look of its own.
#[test]
fn a_pod_that_has_its_volumes_costs_one_hop_and_two_looks_for_each() {
    run(1, async |kernel| {
        let host = host();
        let bench = Bench::start(&kernel, &host);
        settle().await;
        let volumes = json!([
            {"name": "a", "emptyDir": {}}, {"name": "b", "emptyDir": {}}, {"name": "h", "hostPath": {"path": "/srv"}},
        ]);
        let p = pod("u", volumes);
        bench.wiring.ask(MakePodDirs { uid: PodUid::from("u") }).await.unwrap().unwrap();
        bench.wiring.ask(MountVolumes { pod: p.clone() }).await.unwrap().unwrap();
        let version = bench.wiring.board::<PodVolumes>().get(&PodUid::from("u"));
        let (before, calls) = (hops(&kernel), host.disk.calls());
        bench.wiring.ask(MountVolumes { pod: p }).await.unwrap().unwrap();
        assert_eq!((hops(&kernel) - before, host.disk.calls() - calls), (1, 4));
        assert!(bench.wiring.board::<PodVolumes>().get(&PodUid::from("u")) == version);
    });
}

/// Each minute the directories of all pods are looked at: in one hop where nothing happened.
#[test]
fn a_look_at_many_pods_where_nothing_happened_costs_as_many_hops_as_at_one() {
    let of = |pods: usize| {
        run(1, async move |kernel| {
            let host = host();
            for n in 0..pods {
                host.dir(format!("pods/p{n}/volumes/kubernetes.io~empty-dir/v"));
            }
            let bench = Bench::start(&kernel, &host);
            tokio::time::sleep(Duration::from_secs(30)).await;
            assert_eq!(bench.present("p0"), Some(vec!["v".to_owned()]));
            let before = hops(&kernel);
            tokio::time::sleep(Duration::from_secs(60)).await;
            hops(&kernel) - before
        })
    };
    assert_eq!(of(40), of(1));
}

/// How often the API server was asked for a claim and for a volume.
fn reads(c: &super::cluster::Cluster) -> [usize; 2] {
    let of = |path: &str| c.api.requests_of("GET", path).len();
    [of("/api/v1/namespaces/default/persistentvolumeclaims/a"), of("/api/v1/persistentvolumes/pv-a")]
}

#[test]
fn claims_of_a_pod_that_starts_soon_are_looked_up_once_and_before_its_worker_asks() {
    with_cluster(async |c| {
        c.claim("a", json!({}));
        let p = pod_with("u1", &["a"]);
        c.bench.wiring.ask(ExpectVolumes { pod: p.clone() }).await.unwrap();
        settle().await;
        assert_eq!(reads(&c), [1, 1], "nobody has asked yet");
        c.mount(&p).await.unwrap();
        assert_eq!(reads(&c), [1, 1]);
        assert_eq!(c.csi.calls(), ["stage h-a", "publish h-a"]);
    });
}

#[test]
fn what_was_looked_up_in_vain_or_long_ago_is_looked_up_again() {
    with_cluster(async |c| {
        let p = pod_with("u1", &["a"]);
        c.bench.wiring.ask(ExpectVolumes { pod: p.clone() }).await.unwrap();
        settle().await;
        c.claim("a", json!({}));
        c.mount(&p).await.unwrap();
        c.unmount("u1").await.unwrap();
        let p = pod_with("u2", &["a"]);
        c.bench.wiring.ask(ExpectVolumes { pod: p.clone() }).await.unwrap();
        tokio::time::sleep(Duration::from_secs(10)).await;
        let before = reads(&c);
        c.mount(&p).await.unwrap();
        assert_eq!(reads(&c), before.map(|n| n + 1));
    });
}
