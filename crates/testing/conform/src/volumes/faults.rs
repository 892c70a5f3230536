//! Deaths, successors, disks in trouble, many pods.

use contract::VolumeManager;
use contract::volume::{MakePodDirs, UnmountVolumes};
use fakes::files::{Errno, FileTrouble};
use futures::future::{join, try_join, try_join_all};
use serde_json::json;

use super::bed::{Bed, EMPTY_DIRS, SOON, came, case, pass};
use crate::case::Case;
use crate::outcome::{Broken, Outcome, demand};
use crate::watch::until;

pub(super) fn cases() -> Vec<Case<VolumeManager>> {
    [deaths(), successors(), others()].into_iter().flatten().collect()
}

fn deaths() -> Vec<Case<VolumeManager>> {
    vec![
        case(
            "crash-keeps-volumes",
            "contract",
            "a death of the manager changes no volume and no row",
            crash_keeps_volumes,
        )
        .core(),
        case(
            "crash-goes-on-following",
            "contract",
            "after a death of the manager volumes follow their objects, with nobody asking",
            crash_goes_on_following,
        )
        .core(),
        case(
            "crash-misses-no-change",
            "contract",
            "an object that changed while the manager was dead is written",
            crash_misses_no_change,
        )
        .core(),
        case(
            "crash-in-a-wait",
            "contract",
            "who waits for volumes when the manager dies has them in the end",
            crash_in_a_wait,
        )
        .core(),
        case(
            "crash-in-a-call",
            "contract",
            "a manager that dies over a message does what is asked when it is asked again",
            crash_in_a_call,
        )
        .core(),
        case(
            "crash-keeps-ends",
            "contract",
            "what was unmounted before a death of the manager does not come back",
            crash_keeps_ends,
        )
        .core(),
        case("many-crashes", "contract", "five deaths within seconds cost no volume", many_crashes),
    ]
}

fn successors() -> Vec<Case<VolumeManager>> {
    vec![
        case(
            "what-is-there-is-shown",
            "node-and-resources 6.4",
            "a manager that begins shows the volumes that it finds on the disk",
            what_is_there_is_shown,
        )
        .core(),
        case(
            "row-of-a-former-manager-goes",
            "contract",
            "a row whose pod has no directory any more goes",
            former_row_goes,
        )
        .core(),
        case(
            "successor-goes-on-following",
            "contract",
            "another manager that takes the place follows the objects of pods of the one before",
            successor_goes_on_following,
        )
        .core(),
        case(
            "successor-takes-away",
            "contract",
            "another manager that takes the place takes away what the one before set up",
            successor_takes_away,
        )
        .core(),
        case(
            "daemon-keeps-volumes",
            "node-and-resources 6.4",
            "emptyDirs keep their files when the daemon is started again",
            daemon_keeps_volumes,
        )
        .core(),
        case(
            "daemon-takes-away",
            "node-and-resources 6.4",
            "what a former daemon set up is unmounted and removed",
            daemon_takes_away,
        )
        .core(),
        case(
            "gone-by-hand",
            "contract",
            "a directory that somebody removed takes its row with it within a minute or so",
            gone_by_hand,
        )
        .inside(),
    ]
}

fn others() -> Vec<Case<VolumeManager>> {
    vec![
        case("asked-twice", "contract", "who asks for volumes twice at once has them twice", asked_twice).core(),
        case(
            "asker-gone",
            "contract",
            "a pod's next request is answered though the asker of the one before is gone",
            asker_gone,
        )
        .core(),
        case("wait-holds-up-no-others", "contract", "a pod that waits holds up no other one", wait_holds_up_no_others)
            .core(),
        case(
            "disk-in-trouble",
            "contract",
            "a disk that fails is told of, and the pod has its volumes when it is well again",
            disk_in_trouble,
        )
        .inside(),
        case(
            "clock-set-back",
            "contract",
            "a wall clock that is set back by a day stops no volume from following",
            clock_set_back,
        )
        .inside(),
        case("a-hundred-pods", "contract", "a hundred pods have their volumes, and go at once", a_hundred_pods),
    ]
}

async fn crash_keeps_volumes(bed: Bed) -> Outcome {
    let pod = bed.scratch("a");
    let uid = model::pod::uid(&pod);
    let file = bed.mount(&pod).await?.host_path.join("data");
    bed.write(&file, "content")?;
    let mark = bed.stage.mark();
    bed.stage.crash().await?;
    pass(1.0).await;
    bed.holds(&file, "content")?;
    bed.shows(&uid, Some(&["v"]))?;
    for row in bed.stage.rows_since::<contract::volume::PodVolumes>(mark, &pod)? {
        demand(row.as_ref().is_some_and(|row| row.present == ["v"]), || format!("a row said {row:?}"))?;
    }
    bed.mount(&pod).await?;
    bed.holds(&file, "content")
}

impl Bed {
    /// A pod with the configMap `m`, whose one file `a` is that.
    async fn following(&self) -> Outcome<(std::sync::Arc<model::core::Pod>, std::path::PathBuf)> {
        self.objects.put_map("m", json!({"a": "1"}));
        let pod = self.mapped("a");
        let file = self.mount(&pod).await?.host_path.join("a");
        Ok((pod, file))
    }
}

async fn crash_goes_on_following(bed: Bed) -> Outcome {
    let (_, file) = bed.following().await?;
    bed.stage.crash().await?;
    for content in ["2", "3"] {
        bed.objects.put_map("m", json!({"a": content}));
        bed.turns(&file, content).await?;
    }
    Ok(())
}

async fn crash_misses_no_change(bed: Bed) -> Outcome {
    let (_, file) = bed.following().await?;
    let crash = bed.stage.crash();
    bed.objects.put_map("m", json!({"a": "2"}));
    crash.await?;
    bed.turns(&file, "2").await
}

async fn crash_in_a_wait(bed: Bed) -> Outcome {
    let job = bed.beside(&bed.mapped("a"));
    until("the pod waits", SOON, || !bed.events.lines().is_empty()).await?;
    bed.stage.crash().await?;
    bed.objects.put_map("m", json!({"a": "1"}));
    let all = came(job).await?.map_err(|e| Broken(format!("{e}")))?;
    let path = all.volumes.get("v").map(|v| v.host_path.clone()).unwrap_or_default();
    bed.holds(path.join("a"), "1")
}

async fn crash_in_a_call(bed: Bed) -> Outcome {
    let pod = bed.scratch("a");
    let uid = model::pod::uid(&pod);
    for _ in 0..2 {
        let (made, crashed) = join(bed.stage.ask(MakePodDirs { uid: uid.clone() }), bed.stage.crash()).await;
        made?.map_err(|e| Broken(format!("{e}")))?;
        crashed?;
        let (mounted, crashed) = join(bed.mount(&pod), bed.stage.crash()).await;
        mounted?;
        crashed?;
        bed.shows(&uid, Some(&["v"]))?;
        let (unmounted, crashed) = join(bed.stage.ask(UnmountVolumes { uid: uid.clone() }), bed.stage.crash()).await;
        unmounted?.map_err(|e| Broken(format!("{e}")))?;
        crashed?;
        bed.shows(&uid, Some(&[]))?;
        let (removed, crashed) = join(bed.try_remove(&uid), bed.stage.crash()).await;
        removed?.map_err(|e| Broken(format!("{e}")))?;
        crashed?;
        demand(!bed.is_there(bed.dir(&pod))?, || "its directory is still there".to_owned())?;
    }
    Ok(())
}

async fn crash_keeps_ends(bed: Bed) -> Outcome {
    let (pod, file) = bed.following().await?;
    bed.unmount(&pod).await?;
    bed.stage.crash().await?;
    bed.objects.put_map("m", json!({"a": "2"}));
    pass(1.5).await;
    demand(!bed.is_there(&file)?, || "it came back".to_owned())
}

async fn many_crashes(bed: Bed) -> Outcome {
    let (_, file) = bed.following().await?;
    let scratch = bed.scratch("b");
    for n in 0..5 {
        bed.mount(&scratch).await?;
        bed.objects.put_map("m", json!({"a": format!("{n}")}));
        bed.stage.crash().await?;
    }
    bed.turns(&file, "4").await?;
    bed.shows(&model::pod::uid(&scratch), Some(&["v"]))
}

/// A case that begins before the manager has the place.
async fn before(bed: &Bed, word: &str) -> Outcome<model::PodUid> {
    let uid = bed.uid(word);
    bed.write(bed.dir_of(&uid).join(EMPTY_DIRS).join("v/data"), "content")?;
    Ok(uid)
}

async fn what_is_there_is_shown(bed: Bed) -> Outcome {
    let uid = before(&bed, "old").await?;
    bed.stage.take_over().await?;
    until("its row comes", SOON, || bed.shows(&uid, Some(&["v"])).is_ok()).await?;
    bed.holds(bed.dir_of(&uid).join(EMPTY_DIRS).join("v/data"), "content")
}

async fn former_row_goes(bed: Bed) -> Outcome {
    let uid = bed.uid("gone");
    let row = contract::volume::PodVolumes { present: vec!["v".to_owned()], error: None };
    bed.stage.wiring().put(uid.clone(), row);
    bed.stage.take_over().await?;
    until("the row goes", SOON, || bed.row(&uid).is_none()).await
}

async fn successor_goes_on_following(bed: Bed) -> Outcome {
    let (_, file) = bed.following().await?;
    bed.stage.take_over().await?;
    bed.objects.put_map("m", json!({"a": "2"}));
    bed.turns(&file, "2").await
}

async fn successor_takes_away(bed: Bed) -> Outcome {
    let pod = bed.scratch("a");
    let path = bed.mount(&pod).await?.host_path;
    bed.write(path.join("data"), "content")?;
    bed.stage.take_over().await?;
    bed.unmount(&pod).await?;
    bed.remove(&pod).await?;
    demand(!bed.is_there(bed.dir(&pod))?, || "its directory is still there".to_owned())
}

async fn daemon_keeps_volumes(bed: Bed) -> Outcome {
    let pod = bed.scratch("a");
    let file = bed.mount(&pod).await?.host_path.join("data");
    bed.write(&file, "content")?;
    let bed = Bed::on(bed.stage.restart_daemon().await?);
    bed.stage.begin().await?;
    bed.mount(&pod).await?;
    bed.holds(&file, "content")?;
    bed.stage.close().await
}

async fn daemon_takes_away(bed: Bed) -> Outcome {
    let (pod, orphan) = (bed.scratch("a"), bed.scratch("orphan"));
    for pod in [&pod, &orphan] {
        let path = bed.mount(pod).await?.host_path;
        bed.write(path.join("data"), "content")?;
    }
    let bed = Bed::on(bed.stage.restart_daemon().await?);
    bed.stage.begin().await?;
    bed.unmount(&pod).await?;
    bed.remove(&pod).await?;
    bed.remove(&orphan).await?;
    for pod in [&pod, &orphan] {
        demand(!bed.is_there(bed.dir(pod))?, || "a directory is still there".to_owned())?;
    }
    bed.stage.close().await
}

async fn gone_by_hand(bed: Bed) -> Outcome {
    let uid = bed.uid("a");
    bed.make(&uid).await?;
    bed.forget_dir(&uid)?;
    until("its row goes", std::time::Duration::from_secs(150), || bed.row(&uid).is_none()).await
}

async fn asked_twice(bed: Bed) -> Outcome {
    let pod = bed.scratch("a");
    let (one, other) = try_join(bed.mount(&pod), bed.mount(&pod)).await?;
    demand(one == other, || format!("{one:?} and {other:?}"))
}

async fn asker_gone(bed: Bed) -> Outcome {
    let pod = bed.mapped("a");
    let job = bed.beside(&pod);
    until("the pod waits", SOON, || !bed.events.lines().is_empty()).await?;
    job.abort();
    bed.objects.put_map("m", json!({"a": "1"}));
    let path = bed.mount(&pod).await?.host_path;
    bed.holds(path.join("a"), "1")
}

async fn wait_holds_up_no_others(bed: Bed) -> Outcome {
    let jobs: Vec<_> = (0..20).map(|n| bed.beside(&bed.mapped(&format!("w{n}")))).collect();
    until("a pod waits", SOON, || !bed.events.lines().is_empty()).await?;
    let mounted = tokio::time::timeout(SOON, bed.mount(&bed.scratch("a"))).await;
    jobs.iter().for_each(tokio::task::JoinHandle::abort);
    mounted.map_err(|_| Broken(format!("it has no answer within {SOON:?}")))?.map(drop)
}

async fn disk_in_trouble(bed: Bed) -> Outcome {
    let pod = bed.scratch("a");
    let files = bed.stage.outside().files();
    files.trouble(&bed.dir(&pod), FileTrouble::FailWrites(Errno::NoSpc));
    let job = bed.beside(&pod);
    let is_told = |line: &String| line.contains("FailedMount") && line.contains("No space left");
    until("it is told", SOON, || bed.events.lines().iter().any(is_told)).await?;
    files.calm();
    came(job).await?.map(drop).map_err(|e| Broken(format!("{e}")))
}

async fn clock_set_back(bed: Bed) -> Outcome {
    let (pod, file) = bed.following().await?;
    bed.stage.set_clock_by(-86_400_000_000_000);
    for content in ["2", "3"] {
        bed.objects.put_map("m", json!({"a": content}));
        bed.turns(&file, content).await?;
    }
    bed.unmount(&pod).await
}

async fn a_hundred_pods(bed: Bed) -> Outcome {
    let pods: Vec<_> = (0..100).map(|n| bed.scratch(&format!("p{n}"))).collect();
    try_join_all(pods.iter().map(|pod| bed.mount(pod))).await?;
    for pod in &pods {
        bed.shows(&model::pod::uid(pod), Some(&["v"]))?;
    }
    try_join_all(pods.iter().map(async |pod| {
        bed.unmount(pod).await?;
        bed.remove(pod).await
    }))
    .await?;
    for pod in &pods {
        bed.shows(&model::pod::uid(pod), None)?;
    }
    Ok(())
}
