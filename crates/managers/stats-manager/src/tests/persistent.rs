//! Volumes that outlive pods: what drivers tell of them.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use actor::testing::{run, settle};
use contract::plugin::CsiDriver;
use contract::stats::Summarise;
use contract::volume::{ListVolumes, VolumeRow, VolumeStage};
use csi_api::v1::node_service_capability::rpc::Type;
use csi_api::v1::{NodeGetVolumeStatsResponse, VolumeCondition, VolumeUsage};
use fakes::stats::Cgroups;
use fakes::{Events, FakeDriver, FakePlugins, PluginTrouble, StandIn};
use metrics::volumes::COLLECTION;
use model::stats::{Summary, VolumeStats};
use model::{PodUid, Timestamp};
use ports::csi::STATS_DEADLINE;
use serde_json::json;

use super::Bed;
use crate::persistent::{Lane, Persistent, Round};

fn socket(driver: &str) -> String {
    format!("/plugins/{driver}/csi.sock")
}

/// A pod with a volume of each of two drivers and a local one, and who plays the drivers.
fn with_claims() -> (Bed, Arc<FakePlugins>, Events) {
    let claim = |name: &str| json!({ "name": name, "persistentVolumeClaim": { "claimName": format!("c-{name}") } });
    let volumes = json!([claim("a"), claim("b"), claim("l")]);
    with_volumes(&volumes, |line| {
        vec![
            line("a", "csi", "one.example"),
            line("b", "csi", "two.example"),
            line("l", "local", ""),
            line("s", "nfs", "srv"),
            VolumeRow { raw: true, ..line("d", "csi", "one.example") },
            VolumeRow { raw: true, path: Some("/dev/gone".into()), ..line("g", "iscsi", "") },
        ]
    })
}

/// A pod with these volumes, of which VolumeManager tells these rows: by volume, kind and driver.
fn with_volumes(
    volumes: &serde_json::Value,
    rows: impl FnOnce(&dyn Fn(&str, &str, &str) -> VolumeRow) -> Vec<VolumeRow>,
) -> (Bed, Arc<FakePlugins>, Events) {
    let mut bed = Bed::new(Cgroups::V2);
    let plugins = Arc::new(FakePlugins::default());
    bed.deps.csi = Some(plugins.clone());
    bed.pod("web", &["app"]);
    bed.desire("web", &json!({ "volumes": volumes }));
    let usage = |unit, total, used, available| VolumeUsage { unit, total, used, available };
    for driver in ["one.example", "two.example"] {
        let capabilities = vec![Type::GetVolumeStats, Type::VolumeCondition];
        let stats = NodeGetVolumeStatsResponse {
            usage: vec![usage(1, 100, 60, 40), usage(2, 10, 6, 4)],
            volume_condition: Some(VolumeCondition { abnormal: true, message: "lost a disk".to_owned() }),
        };
        plugins.serve(Path::new(&socket(driver)), FakeDriver { capabilities, stats, ..FakeDriver::driver(driver) });
        let row = CsiDriver {
            endpoint: socket(driver).into(),
            versions: Vec::new(),
            registered_at: Timestamp(1),
            generation: 1,
            node_id: "n".to_owned(),
            max_volumes: None,
            topology: std::collections::BTreeMap::new(),
            object: None,
            error: None,
        };
        bed.wiring.put(driver.to_owned(), row);
    }
    let local = bed.config.root_dir.clone();
    let line = move |volume: &str, kind: &str, driver: &str| VolumeRow {
        pod: Some(PodUid::from("uid-web")),
        volume: volume.to_owned(),
        kind: kind.to_owned(),
        driver: driver.to_owned(),
        handle: format!("h-{volume}"),
        claim: format!("c-{volume}"),
        path: Some(local.clone()),
        stage: VolumeStage::Mounted,
        ..VolumeRow::default()
    };
    let rows = Arc::new(rows(&line));
    StandIn::<contract::VolumeManager>::on(&bed.wiring).answer(move |_: &ListVolumes| rows.clone());
    let events = Events::on(&bed.wiring);
    (bed, plugins, events)
}

async fn next(bed: &Bed, pause: u64) -> Arc<Summary> {
    tokio::time::sleep(Duration::from_secs(pause)).await;
    for _ in 0..5 {
        settle().await;
    }
    bed.wiring.call(Summarise { only_cpu_and_memory: false }).await.unwrap()
}

fn volumes(summary: &Summary) -> Vec<&VolumeStats> {
    summary.pods[0].volumes.iter().collect()
}

#[test]
fn drivers_tell_of_their_volumes_once_per_period_and_of_their_health() {
    run(1, |kernel| async move {
        let (bed, plugins, events) = with_claims();
        bed.start(&kernel);
        assert_eq!(volumes(&*next(&bed, 0).await).len(), 0, "the first answer does not wait");
        let second = next(&bed, 2).await;
        let told = volumes(&second);
        assert_eq!(told.iter().map(|v| v.name.as_str()).collect::<Vec<_>>(), ["a", "b", "d", "l", "s"]);
        let a = told[0];
        assert_eq!((a.fs.capacity_bytes, a.fs.used_bytes, a.fs.available_bytes), (Some(100), Some(60), Some(40)));
        assert_eq!((a.fs.inodes, a.fs.inodes_used, a.fs.inodes_free), (Some(10), Some(6), Some(4)));
        let claim = a.pvc_ref.as_ref().unwrap();
        assert_eq!((claim.namespace.as_str(), claim.name.as_str()), ("shop", "c-a"));
        assert!(a.volume_health_stats.unwrap().abnormal);
        let l = told[3];
        assert!(l.fs.capacity_bytes.unwrap() > 0 && l.volume_health_stats.is_none() && l.pvc_ref.is_some());
        assert!(events.lines().contains(&"Warning VolumeConditionAbnormal: Volume a: lost a disk".to_owned()));
        let at = socket("one.example");
        for _ in 0..20 {
            next(&bed, 2).await;
        }
        assert_eq!(plugins.calls(Path::new(&at), "NodeGetVolumeStats"), 2, "once per period");
        let took = |source: &str| COLLECTION.with_label_values(&[source]).get_sample_count();
        assert!(took("one.example") > 0 && took("statfs") > 0 && took("block") > 0);
        next(&bed, 100).await;
        next(&bed, 2).await;
        assert_eq!(plugins.calls(Path::new(&at), "NodeGetVolumeStats"), 4);
    });
}

/// A kubelet tells of it as of any volume of a driver, by its name in the pod; it has no claim to name.
#[test]
fn a_volume_in_a_pod_whose_kind_a_driver_took_over_is_told_in_the_drivers_numbers() {
    run(1, |kernel| async move {
        let disk = json!([{ "name": "v", "azureDisk": { "diskName": "d", "diskURI": "/s/d", "kind": "Managed" } }]);
        let (bed, plugins, events) =
            with_volumes(&disk, |line| vec![VolumeRow { claim: String::new(), ..line("v", "csi", "one.example") }]);
        bed.start(&kernel);
        next(&bed, 0).await;
        let second = next(&bed, 2).await;
        let told = volumes(&second);
        assert_eq!(told.len(), 1, "{told:?}");
        assert_eq!((told[0].name.as_str(), told[0].pvc_ref.is_none()), ("v", true));
        assert_eq!((told[0].fs.capacity_bytes, told[0].fs.inodes_free), (Some(100), Some(4)));
        assert!(told[0].volume_health_stats.unwrap().abnormal);
        assert_eq!(events.lines(), ["Warning VolumeConditionAbnormal: Volume v: lost a disk"]);
        assert_eq!(plugins.calls(Path::new(&socket("one.example")), "NodeGetVolumeStats"), 1);
    });
}

#[test]
fn a_driver_that_hangs_holds_up_no_answer_and_no_other_driver() {
    run(1, |kernel| async move {
        let (bed, plugins, _events) = with_claims();
        plugins.trouble(Path::new(&socket("one.example")), "NodeGetVolumeStats", Some(PluginTrouble::Hang));
        bed.start(&kernel);
        next(&bed, 0).await;
        let began = tokio::time::Instant::now();
        let second = next(&bed, 2).await;
        assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
        assert_eq!(volumes(&second).iter().map(|v| v.name.as_str()).collect::<Vec<_>>(), ["b", "l", "s"]);
        plugins.trouble(Path::new(&socket("one.example")), "NodeGetVolumeStats", None);
        next(&bed, 200).await;
        assert_eq!(volumes(&*next(&bed, 2).await).len(), 5, "it is asked again");
    });
}

#[test]
fn a_volume_that_never_answers_holds_up_the_others_of_its_driver_for_one_look() {
    run(1, |kernel| async move {
        let (mut bed, plugins, _events) = with_claims();
        bed.config.volume_period = Some(Duration::from_secs(600));
        let at = socket("one.example");
        let hang = |hangs: bool| {
            plugins.trouble(Path::new(&at), "NodeGetVolumeStats", hangs.then_some(PluginTrouble::Hang));
        };
        hang(true);
        bed.start(&kernel);
        next(&bed, 0).await;
        assert_eq!(plugins.calls(Path::new(&at), "NodeGetVolumeStats"), 1, "of a");
        // All but the call that is under way.
        hang(false);
        next(&bed, STATS_DEADLINE.as_secs()).await;
        next(&bed, 10).await;
        let second = next(&bed, 2).await;
        assert_eq!(volumes(&second).iter().map(|v| v.name.as_str()).collect::<Vec<_>>(), ["b", "d", "l", "s"]);
    });
}

#[test]
fn what_waits_longest_is_asked_for_first() {
    run(1, |_| async move {
        let row = |name: &str| VolumeRow {
            pod: Some(PodUid::from("u")),
            volume: name.to_owned(),
            kind: "csi".to_owned(),
            driver: "one.example".to_owned(),
            path: Some("/m".into()),
            stage: VolumeStage::Mounted,
            ..VolumeRow::default()
        };
        let (rows, lane) = ([row("a"), row("b"), row("c")], Lane::Driver("one.example".to_owned()));
        let (mut known, began) = (Persistent::default(), tokio::time::Instant::now());
        // Seconds of a look, what is due then, and how many of that are asked for before one does not answer.
        for (at, want, asked) in [
            (0, "a b c", 1),
            (10, "b c", 1),
            (20, "c", 1),
            (150, "a b c", 1),
            (200, "b c", 2),
            (260, "a", 1),
            (310, "b c", 1),
            (400, "c a", 2),
            (450, "b", 1),
        ] {
            let now = began + Duration::from_secs(at);
            let mut due = known.due(&rows, |_| None, now, || Duration::from_secs(100)).remove(&lane).unwrap();
            assert_eq!(due.iter().map(|one| one.key.1.as_str()).collect::<Vec<_>>().join(" "), want, "{at}");
            known.done(&lane, Round { told: Vec::new(), left: due.split_off(asked) });
        }
    });
}
