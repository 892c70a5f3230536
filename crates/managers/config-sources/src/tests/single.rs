//! A path that names one file.

use ports::watch::Change;

use super::rig::{accepted, manifest, refused, with_rig};

#[test]
fn a_single_file_is_read_and_followed() {
    with_rig(|rig| async move {
        rig.write("pod.yaml", manifest("a", "x:1"));
        rig.begin("pod.yaml").await;
        assert_eq!(rig.set(), ["default/a-node-a x:1"]);
        assert_eq!(rig.state("pod.yaml"), accepted("default/a-node-a"));
        rig.write("pod.yaml", manifest("a", "x:2"));
        rig.event(Change::Everything).await;
        assert_eq!(rig.set(), ["default/a-node-a x:2"]);
    });
}

#[test]
fn a_single_file_that_goes_bad_keeps_its_pod_for_good() {
    with_rig(|rig| async move {
        rig.write("pod.yaml", manifest("a", "x:1"));
        rig.begin("pod.yaml").await;
        rig.write("pod.yaml", "kind: [");
        rig.event(Change::Everything).await;
        rig.next_look().await;
        rig.next_look().await;
        assert_eq!(rig.set(), ["default/a-node-a x:1"]);
        assert!(refused(rig.state("pod.yaml")).1);
        assert_eq!(rig.events().len(), 1);
    });
}

#[test]
fn a_single_file_that_is_removed_removes_its_pod() {
    with_rig(|rig| async move {
        rig.write("pod.yaml", manifest("a", "x:1"));
        rig.begin("pod.yaml").await;
        rig.dir.remove("pod.yaml");
        rig.event(Change::PathGone).await;
        assert_eq!(rig.set(), Vec::<String>::new());
        rig.write("pod.yaml", manifest("b", "x:1"));
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        rig.work().await;
        assert_eq!(rig.set(), ["default/b-node-a x:1"]);
    });
}

#[test]
fn a_path_that_is_neither_keeps_the_source_from_being_ready() {
    with_rig(|rig| async move {
        // A path below a file cannot be looked at: that is not the same as missing.
        rig.write("file", "x");
        rig.begin("file/below").await;
        assert_eq!(rig.sets.count(), 0);
        assert!(!rig.view.get().delivered);
        assert!(rig.view.get().error.as_ref().is_some_and(|e| e.contains("cannot be read")));
    });
}
