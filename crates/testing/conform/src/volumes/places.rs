//! Where pods and their volumes are.

use contract::VolumeManager;
use contract::volume::{ListVolumes, PrepareSubPath, VolumeStage};
use model::core::Pod;
use serde_json::json;

use super::bed::{Bed, EMPTY_DIRS, SOON, came, case, pass, spec_of};
use crate::case::Case;
use crate::outcome::{Broken, Outcome, demand};

pub(super) fn cases() -> Vec<Case<VolumeManager>> {
    [dirs(), kinds(), sub_paths()].into_iter().flatten().collect()
}

fn dirs() -> Vec<Case<VolumeManager>> {
    vec![
        case(
            "pod-dirs",
            "node-and-resources 6.1",
            "MakePodDirs makes the pod's directory, volumes and plugins for root and its group alone",
            pod_dirs,
        )
        .core(),
        case("pod-dirs-twice", "contract", "MakePodDirs twice changes nothing", pod_dirs_twice).core(),
        case(
            "row-with-the-answer",
            "contract",
            "a pod's row names its volumes before MountVolumes is answered",
            row_with_the_answer,
        )
        .core(),
        case("no-volumes", "contract", "a pod without volumes is answered at once, and nothing is made", no_volumes)
            .core(),
        case(
            "unused-volumes",
            "node-and-resources 6.2",
            "volumes that no container mounts are not set up",
            unused_volumes,
        )
        .core(),
        case(
            "volumes-of-init-containers",
            "node-and-resources 6.2",
            "what an init container mounts is set up too",
            volumes_of_init_containers,
        )
        .core(),
        case("list", "contract", "ListVolumes tells of a pod's volume, its kind and how far it is", list),
        case(
            "no-uid-of-ours",
            "contract",
            "a UID that is no name of a directory is refused, and nothing is made or removed",
            no_uid_of_ours,
        )
        .core(),
    ]
}

fn kinds() -> Vec<Case<VolumeManager>> {
    vec![
        case(
            "empty-dir",
            "node-and-resources 6.7",
            "an emptyDir is a directory of the pod that everybody may write to",
            empty_dir,
        )
        .core(),
        case(
            "empty-dir-keeps-its-files",
            "node-and-resources 6.7",
            "asked again, an emptyDir keeps what containers wrote",
            empty_dir_keeps_its_files,
        )
        .core(),
        case("memory", "node-and-resources 6.7", "an emptyDir in memory is a tmpfs of its own", memory).inside(),
        case(
            "host-path",
            "node-and-resources 6.8",
            "a hostPath is answered as it is written, and not looked at without a type",
            host_path,
        )
        .core(),
        case(
            "host-path-is-made",
            "node-and-resources 6.8",
            "DirectoryOrCreate and FileOrCreate make what is not there",
            host_path_is_made,
        )
        .core(),
        case(
            "host-path-is-waited-for",
            "node-and-resources 6.8",
            "a hostPath of another type is told as FailedMount, and the pod waits until it is right",
            host_path_is_waited_for,
        )
        .core(),
        case("host-path-goes-up", "node-and-resources 6.8", "a hostPath with .. is refused", host_path_goes_up)
            .inside(),
        case(
            "unknown-kind",
            "contract",
            "a kind of volume that nobody here serves is refused at once, by its name",
            unknown_kind,
        ),
    ]
}

fn sub_paths() -> Vec<Case<VolumeManager>> {
    vec![
        case(
            "sub-path",
            "node-and-resources 6.15",
            "a subPath is made in its volume, and answered as a path below volume-subpaths",
            sub_path,
        )
        .inside(),
        case("sub-path-twice", "contract", "PrepareSubPath twice gives the same path", sub_path_twice).inside(),
        case(
            "sub-path-leads-out",
            "node-and-resources 6.15",
            "a subPath over a link that leads out of its volume is refused",
            sub_path_leads_out,
        )
        .inside(),
    ]
}

async fn pod_dirs(bed: Bed) -> Outcome {
    let uid = bed.uid("a");
    bed.make(&uid).await?;
    for below in ["", "volumes", "plugins"] {
        bed.has_mode(bed.dir_of(&uid).join(below), 0o750)?;
    }
    bed.shows(&uid, Some(&[]))
}

async fn pod_dirs_twice(bed: Bed) -> Outcome {
    let pod = bed.scratch("a");
    let uid = model::pod::uid(&pod);
    bed.make(&uid).await?;
    bed.mount(&pod).await?;
    bed.make(&uid).await?;
    bed.shows(&uid, Some(&["v"]))
}

async fn row_with_the_answer(bed: Bed) -> Outcome {
    let pod = bed.pod("a", json!([{"name": "v", "emptyDir": {}}, {"name": "w", "emptyDir": {}}]));
    let all = bed.mounts(&pod).await?;
    bed.shows(&model::pod::uid(&pod), Some(&["v", "w"]))?;
    let names: Vec<_> = all.volumes.keys().cloned().collect();
    demand(names == ["v", "w"], || format!("answered are {names:?}"))
}

async fn no_volumes(bed: Bed) -> Outcome {
    let pod = bed.pod("a", json!([]));
    let all = bed.mounts(&pod).await?;
    demand(all.volumes.is_empty(), || format!("answered are {all:?}"))?;
    demand(!bed.is_there(bed.dir(&pod))?, || "the pod has a directory".to_owned())
}

async fn unused_volumes(bed: Bed) -> Outcome {
    let mut spec = spec_of(json!([{"name": "v", "emptyDir": {}}]));
    spec["volumes"] = json!([{"name": "v", "emptyDir": {}}, {"name": "idle", "configMap": {"name": "missing"}}]);
    let pod = bed.pod_of("a", spec);
    let all = bed.mounts(&pod).await?;
    demand(!all.volumes.contains_key("idle"), || format!("answered are {all:?}"))?;
    bed.shows(&model::pod::uid(&pod), Some(&["v"]))
}

async fn volumes_of_init_containers(bed: Bed) -> Outcome {
    let mounts = json!([{"name": "v", "mountPath": "/m"}]);
    let init = json!([{"name": "first", "volumeMounts": mounts}]);
    let volumes = json!([{"name": "v", "emptyDir": {}}]);
    let pod = bed.pod_of("a", json!({"volumes": volumes, "containers": [{"name": "app"}], "initContainers": init}));
    bed.mount(&pod).await.map(drop)
}

async fn list(bed: Bed) -> Outcome {
    let pod = bed.scratch("a");
    bed.mount(&pod).await?;
    let rows = bed.stage.ask(ListVolumes).await?;
    let row = rows.iter().find(|row| row.pod == Some(model::pod::uid(&pod)));
    let row = row.ok_or_else(|| Broken(format!("the pod is not in the list: {rows:?}")))?;
    let said = (row.volume.as_str(), row.kind.as_str(), row.stage);
    let wanted = ("v", "emptyDir", VolumeStage::Mounted);
    demand(said == wanted, || format!("it is told as {said:?}, not {wanted:?}"))
}

async fn no_uid_of_ours(bed: Bed) -> Outcome {
    bed.write("pods/precious", "content")?;
    for text in ["..", ".", "a/b", ""] {
        let answer = bed.try_remove(&text.into()).await?;
        demand(answer.is_err(), || format!("the directory of {text:?} was removed"))?;
    }
    let spec = spec_of(json!([{"name": "v", "emptyDir": {}}]));
    let pod = fakes::pod("..", json!({"metadata": {"name": "p", "namespace": "ns"}, "spec": spec}));
    let answer = tokio::time::timeout(SOON, bed.ask(&pod.into())).await;
    demand(!matches!(answer, Ok(Ok(Ok(_)))), || "volumes of a pod \"..\" were set up".to_owned())?;
    demand(!bed.is_there("volumes")?, || "they are in the root directory".to_owned())?;
    bed.holds("pods/precious", "content")
}

async fn empty_dir(bed: Bed) -> Outcome {
    let pod = bed.scratch("a");
    let volume = bed.mount(&pod).await?;
    let wanted = bed.dir(&pod).join(EMPTY_DIRS).join("v");
    demand(volume.host_path == wanted, || format!("it is at {:?}, not at {wanted:?}", volume.host_path))?;
    demand(!volume.read_only, || "it is read-only".to_owned())?;
    bed.has_mode(&wanted, 0o777)
}

async fn empty_dir_keeps_its_files(bed: Bed) -> Outcome {
    let pod = bed.scratch("a");
    let file = bed.mount(&pod).await?.host_path.join("data");
    bed.write(&file, "content")?;
    let again = bed.mount(&pod).await?.host_path.join("data");
    demand(again == file, || format!("it is at {again:?} now"))?;
    bed.holds(&file, "content")
}

async fn memory(bed: Bed) -> Outcome {
    let pod = bed.pod("a", json!([{"name": "v", "emptyDir": {"medium": "Memory"}}]));
    let path = bed.mount(&pod).await?.host_path;
    for _ in 0..2 {
        demand(bed.is_mounted(&path), || "nothing is mounted there".to_owned())?;
        bed.mount(&pod).await?;
    }
    bed.unmount(&pod).await?;
    demand(!bed.is_mounted(&path), || "it is still mounted".to_owned())
}

/// A pod with a hostPath `v` of this type.
fn on_host(bed: &Bed, word: &str, path: &std::path::Path, kind: &str) -> std::sync::Arc<Pod> {
    bed.pod(word, json!([{"name": "v", "hostPath": {"path": path, "type": kind}}]))
}

async fn host_path(bed: Bed) -> Outcome {
    let path = bed.path("elsewhere/not-there");
    let volume = bed.mount(&on_host(&bed, "a", &path, "")).await?;
    demand(volume.host_path == path, || format!("it is {:?}", volume.host_path))?;
    demand(!bed.is_there(&path)?, || "it was made".to_owned())
}

async fn host_path_is_made(bed: Bed) -> Outcome {
    let (dir, file) = (bed.path("elsewhere/deep/dir"), bed.path("elsewhere/file"));
    bed.mount(&on_host(&bed, "a", &dir, "DirectoryOrCreate")).await?;
    bed.has_mode(&dir, 0o755)?;
    bed.mount(&on_host(&bed, "b", &file, "FileOrCreate")).await?;
    bed.has_mode(&file, 0o644)?;
    bed.write(&file, "content")?;
    bed.mount(&on_host(&bed, "c", &file, "FileOrCreate")).await?;
    bed.holds(&file, "content")
}

async fn host_path_is_waited_for(bed: Bed) -> Outcome {
    let path = bed.path("elsewhere/late");
    let job = bed.beside(&on_host(&bed, "a", &path, "Directory"));
    let why = format!("hostPath type check failed: {} is not a directory", path.display());
    bed.tells(&format!("Warning FailedMount: MountVolume.SetUp failed for volume \"v\" : {why}")).await?;
    demand(!job.is_finished(), || "it was answered".to_owned())?;
    bed.make_dir(&path)?;
    came(job).await?.map(drop).map_err(|e| Broken(format!("{e}")))
}

async fn host_path_goes_up(bed: Bed) -> Outcome {
    let path = std::path::Path::new("/elsewhere/../etc");
    let answer = bed.ask(&on_host(&bed, "a", path, "")).await?;
    let told = answer.as_ref().err().map(|e| e.message.clone()).unwrap_or_default();
    demand(told.contains("must not contain '..'"), || format!("the answer is {answer:?}"))
}

async fn unknown_kind(bed: Bed) -> Outcome {
    let pod = bed.pod("a", json!([{"name": "v", "glusterfs": {"endpoints": "e", "path": "/"}}]));
    let answer = tokio::time::timeout(SOON, bed.ask(&pod)).await.map_err(|_| Broken("no answer".to_owned()))??;
    let told = answer.as_ref().err().map(|e| e.message.clone()).unwrap_or_default();
    demand(told.contains("glusterfs"), || format!("the answer is {answer:?}"))
}

impl Bed {
    async fn sub(&self, pod: &Pod, sub_path: &str) -> Outcome<Result<std::path::PathBuf, String>> {
        let ask = PrepareSubPath {
            uid: model::pod::uid(pod),
            container: "app".to_owned(),
            volume: "v".to_owned(),
            volume_path: self.dir(pod).join(EMPTY_DIRS).join("v"),
            sub_path: sub_path.to_owned(),
            mount_index: 0,
        };
        Ok(self.stage.ask(ask).await?.map_err(|e| e.message))
    }
}

async fn sub_path(bed: Bed) -> Outcome {
    let pod = bed.scratch("a");
    let path = bed.mount(&pod).await?.host_path;
    let target = bed.sub(&pod, "logs/today").await?;
    let wanted = bed.dir(&pod).join("volume-subpaths/v/app/0");
    demand(target.as_ref() == Ok(&wanted), || format!("it is {target:?}, not {wanted:?}"))?;
    bed.has_mode(path.join("logs/today"), 0o777)?;
    demand(bed.is_mounted(&wanted), || "nothing is bound there".to_owned())
}

async fn sub_path_twice(bed: Bed) -> Outcome {
    let pod = bed.scratch("a");
    bed.mount(&pod).await?;
    let (one, other) = (bed.sub(&pod, "logs").await?, bed.sub(&pod, "logs").await?);
    demand(one == other && one.is_ok(), || format!("{one:?} and {other:?}"))?;
    bed.unmount(&pod).await?;
    demand(!bed.is_there(bed.dir(&pod).join("volume-subpaths"))?, || "its bind stays".to_owned())
}

async fn sub_path_leads_out(bed: Bed) -> Outcome {
    let pod = bed.scratch("a");
    let path = bed.mount(&pod).await?.host_path;
    bed.make_dir("elsewhere")?;
    bed.link(&bed.path("elsewhere"), &path.join("out"))?;
    pass(0.1).await;
    for sub_path in ["out", "out/deep", "../w"] {
        let answer = bed.sub(&pod, sub_path).await?;
        demand(answer.is_err(), || format!("{sub_path} is {answer:?}"))?;
    }
    demand(!bed.is_there("elsewhere/deep")?, || "something was made outside".to_owned())
}
