use fakes::MemFs;
use fakes::files::{Errno, FileTrouble};
use serde_json::json;

use super::*;

/// Written by `pkg/kubelet/allocation/state` of 1.36.2.
const OF_A_KUBELET: &str = concat!(
    r#"{"data":"{\"entries\":{\"u1\":{\"ContainerResources\":{\"c\":{\"limits\":{\"cpu\":\"500m\",\"memory\":\"64Mi\"},"#,
    r#"\"requests\":{\"cpu\":\"250m\"}},\"d\":{}},\"PodLevelResources\":null},\"u2\":{\"ContainerResources\":{\"c\":{}},"#,
    r#"\"PodLevelResources\":{\"limits\":{\"cpu\":\"1\"}}}}}","checksum":2885530099}"#
);

fn files(content: &str) -> MemFs {
    let fs = MemFs::default();
    fs.create_dir(Path::new("/r"), 0o755).unwrap();
    fs.write_file(Path::new("/r/allocated_pods_state"), content.as_bytes(), 0o600).unwrap();
    fs
}

#[test]
fn a_file_of_a_kubelet_is_read_and_written_as_it_was() {
    let entries = load(&files(OF_A_KUBELET), Path::new("/r")).unwrap().allocated;
    let cpu = serde_json::to_value(&entries[&PodUid::from("u1")].containers["c"]).unwrap();
    assert_eq!(cpu["requests"], json!({"cpu": "250m"}));
    assert_eq!(String::from_utf8(print(entries).unwrap()).unwrap(), OF_A_KUBELET);
}

#[test]
fn what_cannot_be_understood_is_set_aside() {
    let broken = OF_A_KUBELET.replace("250m", "251m");
    for content in [&*broken, "", "[]", r#"{"data":"x","checksum":0}"#] {
        let fs = files(content);
        let before = load(&fs, Path::new("/r")).unwrap();
        assert!(before.allocated.is_empty() && before.lost, "{content}");
        assert_eq!(fs.read_file(Path::new("/r/allocated_pods_state.damaged"), 1 << 20).unwrap(), content.as_bytes());
        assert!(fs.stat(Path::new("/r/allocated_pods_state")).unwrap().is_none());
    }
    let none = MemFs::default();
    let before = load(&none, Path::new("/r")).unwrap();
    assert!(before.allocated.is_empty() && !before.lost);
}

#[test]
fn what_was_saved_is_read_again_and_written_only_when_it_changes() {
    let fs = files(OF_A_KUBELET);
    let entries = load(&fs, Path::new("/r")).unwrap().allocated;
    save(&fs, Path::new("/r"), entries.clone(), Entries::new()).unwrap();
    assert_eq!(load(&fs, Path::new("/r")).unwrap().allocated, entries);
    let nothing = fs.read_file(Path::new("/r/actuated_pods_state"), 1 << 20).unwrap();
    assert_eq!(nothing, br#"{"data":"{}","checksum":694314937}"#, "as a kubelet writes an empty one");
}

/// The disk answers with errors for longer than anybody waits: what is in the file is not lost with the next words.
#[test]
fn what_is_never_read_is_set_aside() {
    let fs = files(OF_A_KUBELET);
    let (dir, allocated) = (Path::new("/r"), Path::new("/r/allocated_pods_state"));
    fs.trouble(allocated, FileTrouble::FailCalls("open", Errno::Io));
    assert!(load(&fs, dir).is_err());
    let before = keep_unread(&fs, dir);
    assert!(before.allocated.is_empty() && before.actuated.is_empty() && before.lost);
    fs.calm_at(allocated);
    assert!(fs.stat(allocated).unwrap().is_none());
    let kept = fs.read_file(Path::new("/r/allocated_pods_state.damaged"), 1 << 20).unwrap();
    assert_eq!(String::from_utf8(kept).unwrap(), OF_A_KUBELET);
    save(&fs, dir, before.allocated, before.actuated).unwrap();
    assert!(load(&fs, dir).unwrap().allocated.is_empty());
}
