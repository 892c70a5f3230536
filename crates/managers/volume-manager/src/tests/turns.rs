//! Whose turn it is with a volume, when work goes on that nobody waits for any more, and looks at the disk that are late.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fakes::MemFs;
use fakes::api::{Matching, Trouble};
use fakes::files::FileTrouble;
use model::PodUid;
use ports::host::{FileKind, ProgramEnd};
use serde_json::json;
use volume_plan::state::Mount;

use super::cluster::{Cluster, pod_with, secs, spawn, with_cluster};
use super::csi::Lie;
use super::luns;
use crate::Volumes;

/// Taking a volume from the host hangs on a thread.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Hangs {
    /// The unmount of a local volume's disk.
    Unmount,
    /// The end of an iSCSI disk's session.
    Logout,
    /// The removal of the directory in which a driver staged a volume.
    Remove,
}

async fn begin(c: &Cluster, what: Hangs) {
    let disk = "plugins/kubernetes.io/local-volume/mounts/pv-a";
    match what {
        Hangs::Unmount => {
            c.host.dir("/dev");
            c.host.disk.special(Path::new("/dev/sdx"), FileKind::BlockDevice);
            c.claim("a", json!({ "csi": null, "local": { "path": "/dev/sdx" } }));
        }
        Hangs::Logout => {
            let has_hung = AtomicBool::new(false);
            c.host.disk.play_programs(move |fs: &MemFs, line: &str| -> ProgramEnd {
                if line.contains("--logout") && !has_hung.swap(true, Ordering::Relaxed) {
                    actor::testing::hang()
                }
                fakes::luns::target(fs, line)
            });
            luns::claim(c, "a");
        }
        Hangs::Remove => {
            c.claim("a", json!({}));
            c.csi.lie("unstage", &[Lie::Slow(5)]);
        }
    }
    c.mount(&pod_with("u1", &["a"])).await.unwrap();
    if what == Hangs::Unmount {
        c.host.disk.trouble(&c.host.path(disk), FileTrouble::Hang);
    }
    c.unmount("u1").await.unwrap();
    secs(1).await;
    if what == Hangs::Remove {
        c.host.disk.trouble(&c.host.path(format!("{}/globalmount", c.stage_dir("h-a"))), FileTrouble::Hang);
    }
    secs(10).await;
    // Whoever tries it next is not held up by that.
    c.host.disk.calm();
}

/// It may yet take away what the next actor would find in place.
#[test]
fn work_of_an_actor_that_died_keeps_its_turn() {
    let goes_on = |what: &Hangs| {
        actor::testing::run(1, async |kernel| {
            let c = Cluster::start(&kernel);
            begin(&c, *what).await;
            kernel.faults().enable();
            kernel.faults().add_text("volume-manager: panic@=mount#1").unwrap();
            c.claim("b", json!({}));
            c.mount(&pod_with("other", &["b"])).await.unwrap_err();
            assert_eq!(kernel.faults().log().len(), 1, "{what:?}");
            let (waits, other) = (spawn(&c, &pod_with("u2", &["a"])), spawn(&c, &pod_with("other", &["b"])));
            secs(60).await;
            other.await.unwrap().unwrap();
            waits.is_finished()
        })
    };
    let all = [Hangs::Unmount, Hangs::Logout, Hangs::Remove];
    assert_eq!(all.into_iter().filter(goes_on).collect::<Vec<_>>(), [], "another pod has the volume");
}

#[test]
fn a_look_that_began_before_a_volume_came_does_not_hide_it() {
    let (volumes, uid, name) = (Volumes::default(), PodUid::from("u1"), "kubernetes.io/csi/d.example^h-a");
    let in_use = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>());
    volumes.note_disk(volumes.begin_look(), &BTreeSet::new());
    let look = volumes.begin_look();
    volumes.want(name, (&uid, "v"), true, || true);
    volumes.intend(name, &None, false);
    volumes.note(name, &None, Mount::Present);
    volumes.note_disk(look, &BTreeSet::new());
    volumes.unwant(&uid);
    assert_eq!(volumes.in_use(), in_use(&[name]), "nobody wants it, and it is mounted");
    volumes.note_disk(volumes.begin_look(), &BTreeSet::new());
    assert_eq!(volumes.in_use(), in_use(&[]), "the next look knows");
}

/// Nothing says yet which volume it is when the disk is looked at, and the API server takes its time.
#[test]
fn a_directory_that_has_come_into_use_is_not_taken_for_one_that_a_death_left() {
    with_cluster(async |mut c| {
        c.claim("a", json!({}));
        c.csi.can(&[]);
        let dir = c.stage_dir("h-a");
        c.host.dir(format!("{dir}/globalmount"));
        let left = format!("{}/globalmount", c.stage_dir("h-left"));
        c.host.dir(&left);
        c.host.write("pods/u9/volumes/kubernetes.io~csi/pv-z/vol_data.json", "{");
        c.api.trouble(Matching::of("GET", "persistentvolumes/pv-z"), Trouble::Slow(Duration::from_secs(10)), 1);
        c.restart().await;
        c.mount(&pod_with("u1", &["a"])).await.unwrap();
        assert!(c.host.exists(&left), "the look goes on");
        secs(20).await;
        assert!(!c.host.exists(c.stage_dir("h-left")));
        assert!(c.host.exists(format!("{dir}/globalmount")) && c.host.exists(format!("{dir}/vol_data.json")));
    });
}

/// The server of what a driver mounted may be gone.
#[test]
fn what_a_driver_mounted_is_not_touched_by_the_look_for_directories_that_a_death_left() {
    with_cluster(async |mut c| {
        let at = format!("{}/globalmount", c.stage_dir("h-a"));
        c.host.dir(&at);
        c.host.disk.mount(&c.host.path(&at));
        c.host.disk.trouble(&c.host.path(&at), FileTrouble::Hang);
        c.restart().await;
        secs(5).await;
        assert_eq!(c.in_use(), Some(vec![]), "the look came to its end");
        c.host.disk.calm();
        assert!(c.host.is_mounted(&at));
    });
}
