//! Pods end: their volumes go, and nothing that is not theirs.

use contract::VolumeManager;
use contract::volume::UnmountVolumes;
use serde_json::json;

use super::bed::{Bed, EMPTY_DIRS, SOON, came, case, pass};
use crate::case::Case;
use crate::outcome::{Broken, Outcome, demand};
use crate::watch::until;

pub(super) fn cases() -> Vec<Case<VolumeManager>> {
    [unmounts(), removals()].into_iter().flatten().collect()
}

fn unmounts() -> Vec<Case<VolumeManager>> {
    vec![
        case(
            "unmount",
            "node-and-resources 6.2",
            "UnmountVolumes takes all volumes of the pod away, with what containers wrote",
            unmount,
        )
        .core(),
        case(
            "unmount-twice",
            "contract",
            "UnmountVolumes twice is one change, and of a pod without volumes none",
            unmount_twice,
        )
        .core(),
        case(
            "unmount-is-of-one-pod",
            "contract",
            "UnmountVolumes leaves other pods their volumes",
            unmount_is_of_one_pod,
        )
        .core(),
        case(
            "unmount-ends-a-wait",
            "contract",
            "who waits for volumes of a pod that is unmounted is answered, and nothing is made after it",
            unmount_ends_a_wait,
        )
        .core(),
        case(
            "unmounted-is-not-followed",
            "contract",
            "what is unmounted does not come back when its object changes",
            unmounted_is_not_followed,
        )
        .core(),
        case("mounted-again", "contract", "what was unmounted may be mounted again", mounted_again).core(),
    ]
}

fn removals() -> Vec<Case<VolumeManager>> {
    vec![
        case("remove", "contract", "RemovePodDir takes the pod's directory and its row away", remove).core(),
        case(
            "remove-takes-volumes",
            "contract",
            "RemovePodDir takes volumes that it set up itself",
            remove_takes_volumes,
        )
        .core(),
        case(
            "remove-twice",
            "contract",
            "RemovePodDir twice, or of a pod without a directory, is no failure",
            remove_twice,
        )
        .core(),
        case(
            "remove-keeps-data",
            "node-and-resources 6.1",
            "RemovePodDir refuses content of which nobody can prove whose it is, and the row says why",
            remove_keeps_data,
        )
        .core(),
        case(
            "host-path-stays",
            "node-and-resources 6.8",
            "what a hostPath holds stays when its pod ends",
            host_path_stays,
        )
        .core(),
        case(
            "foreign-mount",
            "node-and-resources 6.1",
            "RemovePodDir never deletes across a mount point",
            foreign_mount,
        )
        .inside(),
        case(
            "unmount-fails",
            "node-and-resources 6.2",
            "an unmount that fails names what is left, and is done when it is asked again",
            unmount_fails,
        )
        .inside(),
    ]
}

async fn unmount(bed: Bed) -> Outcome {
    bed.objects.put_map("m", json!({"a": "1"}));
    let pod = bed.pod(
        "a",
        json!([{"name": "v", "emptyDir": {}}, {"name": "w", "configMap": {"name": "m", "defaultMode": 0o644}}]),
    );
    let all = bed.mounts(&pod).await?;
    bed.write(bed.dir(&pod).join(EMPTY_DIRS).join("v/data"), "content")?;
    bed.unmount(&pod).await?;
    for volume in all.volumes.values() {
        demand(!bed.is_there(&volume.host_path)?, || format!("{:?} is still there", volume.host_path))?;
    }
    bed.shows(&model::pod::uid(&pod), Some(&[]))
}

async fn unmount_twice(bed: Bed) -> Outcome {
    let (pod, none) = (bed.scratch("a"), bed.scratch("none"));
    bed.mount(&pod).await?;
    for pod in [&pod, &pod, &none] {
        bed.unmount(pod).await?;
    }
    demand(!bed.is_there(bed.dir(&none))?, || "a pod that was never there has a directory".to_owned())?;
    bed.shows(&model::pod::uid(&none), None)
}

async fn unmount_is_of_one_pod(bed: Bed) -> Outcome {
    let (stays, goes) = (bed.scratch("stays"), bed.scratch("goes"));
    let file = bed.mount(&stays).await?.host_path.join("data");
    bed.write(&file, "content")?;
    bed.mount(&goes).await?;
    bed.unmount(&goes).await?;
    bed.remove(&goes).await?;
    bed.holds(&file, "content")?;
    bed.shows(&model::pod::uid(&stays), Some(&["v"]))
}

async fn unmount_ends_a_wait(bed: Bed) -> Outcome {
    let pod = bed.mapped("a");
    let job = bed.beside(&pod);
    until("the pod waits", SOON, || !bed.events.lines().is_empty()).await?;
    bed.unmount(&pod).await?;
    bed.remove(&pod).await?;
    let answer = tokio::time::timeout(SOON, came(job)).await;
    let answer = answer.map_err(|_| Broken(format!("who waits has no answer within {SOON:?}")))??;
    demand(answer.is_err(), || "its volumes are said to be there".to_owned())?;
    bed.objects.put_map("m", json!({"a": "1"}));
    pass(1.5).await;
    demand(!bed.is_there(bed.dir(&pod))?, || "the pod's directory was made after its end".to_owned())
}

async fn unmounted_is_not_followed(bed: Bed) -> Outcome {
    bed.objects.put_map("m", json!({"a": "1"}));
    let pod = bed.mapped("a");
    let path = bed.mount(&pod).await?.host_path;
    bed.unmount(&pod).await?;
    bed.objects.put_map("m", json!({"a": "2"}));
    pass(1.5).await;
    demand(!bed.is_there(&path)?, || "it came back".to_owned())?;
    bed.shows(&model::pod::uid(&pod), Some(&[]))
}

async fn mounted_again(bed: Bed) -> Outcome {
    let pod = bed.scratch("a");
    let path = bed.mount(&pod).await?.host_path;
    bed.write(path.join("data"), "content")?;
    bed.unmount(&pod).await?;
    bed.mount(&pod).await?;
    demand(bed.names(&path)?.is_empty(), || format!("of its former life there is {:?}", bed.names(&path)))?;
    bed.shows(&model::pod::uid(&pod), Some(&["v"]))
}

async fn remove(bed: Bed) -> Outcome {
    let pod = bed.scratch("a");
    bed.make(&model::pod::uid(&pod)).await?;
    bed.mount(&pod).await?;
    bed.unmount(&pod).await?;
    bed.write(bed.dir(&pod).join("etc-hosts"), "content")?;
    bed.remove(&pod).await?;
    demand(!bed.is_there(bed.dir(&pod))?, || "its directory is still there".to_owned())?;
    bed.shows(&model::pod::uid(&pod), None)
}

async fn remove_takes_volumes(bed: Bed) -> Outcome {
    let pod = bed.scratch("a");
    let path = bed.mount(&pod).await?.host_path;
    bed.write(path.join("data"), "content")?;
    bed.remove(&pod).await?;
    demand(!bed.is_there(bed.dir(&pod))?, || "its directory is still there".to_owned())
}

async fn remove_twice(bed: Bed) -> Outcome {
    let (pod, none) = (bed.scratch("a"), bed.scratch("none"));
    bed.mount(&pod).await?;
    for pod in [&pod, &pod, &none] {
        bed.remove(pod).await?;
    }
    Ok(())
}

async fn remove_keeps_data(bed: Bed) -> Outcome {
    let uid = bed.uid("a");
    let file = bed.dir_of(&uid).join(EMPTY_DIRS).join("v/precious");
    bed.write(&file, "content")?;
    for _ in 0..2 {
        let answer = bed.try_remove(&uid).await?;
        demand(answer.is_err(), || "it says that the directory is gone".to_owned())?;
        bed.holds(&file, "content")?;
    }
    let row = bed.row(&uid);
    demand(row.as_ref().is_some_and(|row| row.error.is_some()), || format!("its row is {row:?}"))?;
    // Its worker can say that the pod has ended.
    let answer = bed.stage.ask(UnmountVolumes { uid: uid.clone() }).await?;
    answer.map_err(|e| Broken(format!("UnmountVolumes failed: {e}")))?;
    bed.try_remove(&uid).await?.map_err(|e| Broken(format!("RemovePodDir failed: {e}")))
}

async fn host_path_stays(bed: Bed) -> Outcome {
    bed.write("elsewhere/data", "content")?;
    let path = bed.path("elsewhere");
    let pod = bed.pod("a", json!([{"name": "v", "hostPath": {"path": path, "type": "Directory"}}]));
    bed.mount(&pod).await?;
    bed.unmount(&pod).await?;
    bed.remove(&pod).await?;
    bed.holds("elsewhere/data", "content")
}

async fn foreign_mount(bed: Bed) -> Outcome {
    let pod = bed.scratch("a");
    bed.mount(&pod).await?;
    let foreign = bed.dir(&pod).join("plugins/of-somebody");
    bed.make_dir(&foreign)?;
    bed.stage.outside().files().mount(&foreign);
    bed.write(foreign.join("precious"), "content")?;
    let answer = bed.try_remove(&model::pod::uid(&pod)).await?;
    demand(answer.is_err(), || "it says that the directory is gone".to_owned())?;
    bed.holds(foreign.join("precious"), "content")
}

async fn unmount_fails(bed: Bed) -> Outcome {
    let pod = bed.scratch("a");
    let path = bed.mount(&pod).await?.host_path;
    let trouble = fakes::files::FileTrouble::FailCalls("remove", fakes::files::Errno::Busy);
    bed.stage.outside().files().trouble(&path, trouble);
    let uid = model::pod::uid(&pod);
    let answer = bed.stage.ask(UnmountVolumes { uid: uid.clone() }).await?;
    let told = answer.as_ref().err().map(|e| e.message.clone()).unwrap_or_default();
    demand(told.starts_with("mounted volumes=[v]: "), || format!("the answer is {answer:?}"))?;
    bed.shows(&uid, Some(&["v"]))?;
    bed.stage.outside().files().calm();
    bed.unmount(&pod).await?;
    bed.shows(&uid, Some(&[]))
}
