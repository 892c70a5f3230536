use actor::testing::run;
use eviction::{Layout, Signal};

use super::rig::{Rig, config, secs, threshold};
use crate::Config;
use crate::observe::{Places, read_disks, read_memory};

#[test]
fn each_threshold_that_nothing_is_known_for_has_its_reason() {
    run(1, |kernel| async move {
        let rig = Rig::new(&kernel);
        let signals = ["memory.available", "allocatableMemory.available", "nodefs.available", "imagefs.available"];
        let config = |signals: &[&str]| Config {
            pods_cgroup: Some("/kubepods".to_owned()),
            ..config(&signals.iter().map(|signal| threshold(signal, "1Gi", secs(0))).collect::<Vec<_>>())
        };
        let places = Places { images: "/images".into(), layers: "/layers".into(), layout: Layout::Single };
        let look = |signals: &[&str]| {
            let memory = read_memory(&rig.deps(), &config(signals));
            let disks = read_disks(&rig.deps(), &config(signals), Some(places.clone()), memory.missed);
            let all = memory.signals.into_iter().chain(disks.signals);
            (all.map(|(signal, _)| signal).collect::<Vec<_>>(), disks.missed.into_iter().collect::<Vec<_>>())
        };
        let no_cgroup = ("memory of all pods", "there is no cgroup /kubepods".to_owned());
        let (seen, missed) = look(&signals);
        assert!(seen.contains(&Signal::MemoryAvailable) && seen.contains(&Signal::ImagefsAvailable), "{seen:?}");
        assert_eq!(missed, [no_cgroup]);
        assert_eq!(look(&signals[..1]).1, [], "nobody asks for the memory of all pods");
        rig.machine.change(|m| (m.memory, m.disk) = (None, None));
        let (seen, missed) = look(&signals);
        let missed: Vec<&str> = missed.iter().map(|(what, _)| *what).collect();
        let all = ["file system of images", "file system of layers", "memory", "memory of all pods", "root folder"];
        assert_eq!((seen, missed), (vec![], all.to_vec()));
    });
}
