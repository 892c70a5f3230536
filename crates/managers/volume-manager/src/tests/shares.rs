//! Volumes that servers share.

use fakes::files::{Errno, FileTrouble};
use ports::host::HostFs;
use serde_json::json;

use super::cluster::{pod_of, secs, with_cluster};

const OF_CLAIM: &str = "pods/u1/volumes/kubernetes.io~nfs/pv-a";
const OF_POD: &str = "pods/u1/volumes/kubernetes.io~nfs/share";

#[test]
fn shares_are_mounted_for_a_pod_and_go_with_it_with_nothing_in_them_touched() {
    with_cluster(async |c| {
        let nfs = json!({ "server": "srv", "path": "/a" });
        c.claim("a", json!({ "csi": null, "nfs": nfs, "mountOptions": ["soft"] }));
        let claim = json!({ "name": "c", "persistentVolumeClaim": { "claimName": "a", "readOnly": true } });
        let pod = pod_of("u1", vec![claim, json!({ "name": "share", "nfs": nfs })], json!({ "fsGroup": 7 }));
        let mounted = c.mount(&pod).await.unwrap();
        assert_eq!(mounted.volumes["c"].host_path, c.host.path(OF_CLAIM));
        assert_eq!((mounted.volumes["c"].read_only, mounted.volumes["share"].read_only), (true, false));
        assert!(!mounted.volumes["share"].selinux_relabel);
        let share = |dir: &str| c.host.disk.share_on(&c.host.path(dir));
        let options = |list: &[&str]| list.iter().map(|o| (*o).to_owned()).collect::<Vec<_>>();
        assert_eq!(share(OF_CLAIM), Some(("srv:/a".to_owned(), options(&["ro", "soft"]))));
        assert_eq!(share(OF_POD), Some(("srv:/a".to_owned(), vec![])));
        assert_eq!(c.host.stat(OF_POD).gid, 0, "a share is given to no group");
        assert_eq!(c.in_use(), Some(vec![]), "nobody attaches it");
        c.unmount("u1").await.unwrap();
        assert!(!c.host.exists(OF_CLAIM) && !c.host.exists(OF_POD));
        assert_eq!(c.csi.calls(), [""; 0]);
    });
}

#[test]
fn a_mount_that_fails_is_told_in_the_words_of_the_program_and_tried_again() {
    with_cluster(async |c| {
        let at = c.host.path(OF_POD);
        c.host.disk.trouble(&at, FileTrouble::FailCalls("mount", Errno::Access));
        let pod = pod_of("u1", vec![json!({ "name": "share", "nfs": { "server": "srv", "path": "/a" } })], json!({}));
        let e = c.mount(&pod).await.unwrap_err();
        let told = c.bench.told();
        let event = "Warning FailedMount: MountVolume.SetUp failed for volume \"share\" : ";
        assert!(told.len() > 3 && told.iter().all(|line| line.starts_with(event)), "{told:?}");
        assert!(!told[0].contains("mount /"), "the program's own words alone: {told:?}");
        assert!(e.message.starts_with("unmounted volumes=[share]"), "{e}");
        c.host.disk.calm_at(&at);
        secs(130).await;
        c.mount(&pod).await.unwrap();
        assert!(c.host.is_mounted(OF_POD));
        c.host.disk.trouble(&at, FileTrouble::FailCalls("umount", Errno::Busy));
        c.unmount("u1").await.unwrap_err();
        assert!(c.host.is_mounted(OF_POD));
        c.host.disk.calm_at(&at);
        c.unmount("u1").await.unwrap();
        assert!(!c.host.exists(OF_POD));
    });
}

/// A share that a kubelet mounted for a pod that nobody knows goes by its name and the mount table.
#[test]
fn a_share_that_a_former_agent_mounted_is_taken_over() {
    with_cluster(async |c| {
        c.host.mount(OF_POD, 0x6969);
        c.remove("u1").await.unwrap();
        assert!(!c.host.exists("pods/u1"));
        c.host.mount(OF_POD, 0x6969);
        c.host.write(format!("{OF_POD}/precious"), "of the user");
        let kept = c.remove("u1").await;
        assert!(kept.is_err() && c.host.disk.stat_link(&c.host.path(OF_POD).join("precious")).unwrap().is_some());
    });
}
