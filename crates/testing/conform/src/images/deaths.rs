//! The manager dies, another one takes its place, the daemon is started again.

use contract::ImageManager;
use contract::image::ImageView;
use fakes::runtime::{Code, Fault, FaultKind, Pull};
use futures::future::try_join;

use super::bed::{Bed, SOON, came, case, pass, seconds};
use crate::case::Case;
use crate::outcome::{Broken, Outcome, demand};
use crate::watch::until;

pub(super) fn cases() -> Vec<Case<ImageManager>> {
    [crashes(), successors()].into_iter().flatten().collect()
}

fn crashes() -> Vec<Case<ImageManager>> {
    vec![
        case(
            "crash-in-a-pull",
            "contract",
            "who waits for a pull when the manager dies has the image in the end",
            crash_in_a_pull,
        )
        .core(),
        case(
            "crash-in-an-inspection",
            "contract",
            "who waits for an inspection when the manager dies has an answer",
            crash_in_an_inspection,
        )
        .core(),
        case(
            "crash-in-a-line",
            "contract",
            "pods whose pulls wait in line when the manager dies have their images",
            crash_in_a_line,
        )
        .core(),
        case(
            "crash-in-a-removal",
            "contract",
            "who waits for RemoveUnusedImages when the manager dies has an answer",
            crash_in_a_removal,
        )
        .core()
        .anew(),
        case(
            "crash-keeps-locks",
            "pod-lifecycle 5.4",
            "what a secret opened stays closed to strangers after a death of the manager",
            crash_keeps_locks,
        )
        .core(),
        case(
            "crash-in-a-locked-pull",
            "pod-lifecycle 5.4",
            "an image whose pull with a secret the manager did not survive is not open to strangers",
            crash_in_a_locked_pull,
        )
        .core(),
        case(
            "crash-keeps-the-young",
            "node-and-resources 4.1",
            "a crash of the manager makes no image old",
            crash_keeps_the_young,
        )
        // What a process saw goes with it.
        .inside(),
        case(
            "crash-tries-once",
            "pod-lifecycle 6.2",
            "after a death of the manager a failing image is tried once, and is held back again",
            crash_tries_once,
        )
        .core(),
        case(
            "crash-clears-the-view",
            "contract",
            "after a death of the manager ImageView shows no pull that is over",
            crash_clears_the_view,
        )
        .core(),
        case("many-crashes", "contract", "five deaths within seconds, and every pod has its image", many_crashes),
    ]
}

fn successors() -> Vec<Case<ImageManager>> {
    vec![
        case(
            "successor",
            "contract",
            "another manager that takes the place uses what is there, and pulls what is not",
            successor,
        )
        .core(),
        case(
            "successor-in-a-pull",
            "contract",
            "who asks again for an image that was being pulled when another manager took the place has it",
            successor_in_a_pull,
        )
        .core(),
        case(
            "successor-keeps-locks",
            "pod-lifecycle 5.4",
            "what a secret opened stays closed to strangers when another manager takes the place",
            successor_keeps_locks,
        )
        .core(),
        case(
            "daemon-keeps-locks",
            "pod-lifecycle 5.4",
            "what a secret opened stays closed to strangers after the daemon was started again",
            daemon_keeps_locks,
        )
        .core(),
        case(
            "daemon-in-a-locked-pull",
            "pod-lifecycle 5.4",
            "an image whose pull with a secret the daemon did not survive is not open to strangers",
            daemon_in_a_locked_pull,
        ),
    ]
}

async fn crash_in_a_pull(bed: Bed) -> Outcome {
    let image = bed.image("app");
    bed.pulls_so(&image, Pull::Succeeds(seconds(1.5)));
    let job = bed.beside(bed.wants("a", &image));
    bed.is_being_pulled(&image).await?;
    bed.stage.crash().await?;
    came(job).await?.map_err(|e| Broken(format!("{}: {e}", e.reason)))?;
    bed.got(bed.want(&bed.pod("b"), &image, "Never")).await.map(drop)
}

async fn crash_in_an_inspection(bed: Bed) -> Outcome {
    let image = bed.image("app");
    bed.has(&image);
    bed.strikes(Fault::new("ImageStatus", FaultKind::Delay(seconds(1.0))));
    let job = bed.beside(bed.wants("a", &image));
    until("it is being inspected", SOON, || bed.runtime.count("ImageStatus") > 0).await?;
    bed.stage.crash().await?;
    came(job).await?.map_err(|e| Broken(format!("{}: {e}", e.reason)))?;
    bed.was_pulled(&image, 0)
}

async fn crash_in_a_line(bed: Bed) -> Outcome {
    let images: Vec<String> = (0..4).map(|n| bed.image(&format!("i{n}"))).collect();
    images.iter().for_each(|image| bed.pulls_so(image, Pull::Succeeds(seconds(0.5))));
    let jobs: Vec<_> = images.iter().map(|image| bed.beside(bed.wants("a", image))).collect();
    until("one is being pulled", SOON, || images.iter().any(|image| bed.running(image) > 0)).await?;
    bed.stage.crash().await?;
    for job in jobs {
        came(job).await?.map_err(|e| Broken(format!("{}: {e}", e.reason)))?;
    }
    Ok(())
}

async fn crash_in_a_removal(bed: Bed) -> Outcome {
    // What was there when the manager first looked counts as old.
    bed.has(&bed.image("app"));
    bed.strikes(Fault::new("RemoveImage", FaultKind::Delay(seconds(1.0))).times(1));
    let removal = bed.frees();
    let crash = async {
        until("it is being removed", SOON, || !bed.removed().is_empty()).await?;
        bed.stage.crash().await
    };
    try_join(removal, crash).await?;
    demand(!bed.runtime.has_image(&bed.image("app")), || "it is still there".to_owned())
}

async fn crash_keeps_locks(bed: Bed) -> Outcome {
    let image = bed.locked("app").await?;
    bed.stage.crash().await?;
    bed.is_locked(&image).await
}

impl Bed {
    /// The pod `owner` waits for a pull with its secret, of whose end the manager never hears, and what happens meanwhile.
    async fn in_a_locked_pull(&self, meanwhile: impl Future<Output = Outcome>) -> Outcome<String> {
        let image = self.image("app");
        self.pulls_so(&image, Pull::Hangs);
        let job = self.beside(self.wants_with("owner", &image, &[fakes::pull_secret("s", "r.io", "u")]));
        self.is_being_pulled(&image).await?;
        meanwhile.await?;
        job.abort();
        // The runtime ends what it began.
        self.has(&image);
        Ok(image)
    }
}

async fn crash_in_a_locked_pull(bed: Bed) -> Outcome {
    let image = bed.in_a_locked_pull(bed.stage.crash()).await?;
    bed.is_locked(&image).await
}

async fn crash_keeps_the_young(bed: Bed) -> Outcome {
    bed.frees().await?;
    let image = bed.image("app");
    bed.got(bed.wants("a", &image)).await?;
    bed.frees().await?;
    bed.stage.crash().await?;
    bed.frees().await?;
    demand(bed.runtime.has_image(&image), || "an image of seconds ago was removed".to_owned())
}

async fn crash_tries_once(bed: Bed) -> Outcome {
    let image = bed.image("app");
    bed.pulls_so(&image, Pull::Fails(seconds(0.0), Code::NotFound, "no such thing".to_owned()));
    bed.refused(bed.wants("a", &image), "ErrImagePull").await?;
    bed.stage.crash().await?;
    for _ in 0..5 {
        bed.ask(bed.wants("a", &image)).await?.err().ok_or_else(|| Broken("it was to be had".to_owned()))?;
    }
    let pulls = bed.pulls(&image).len();
    demand(pulls <= 2, || format!("it was pulled {pulls} times"))
}

async fn crash_clears_the_view(bed: Bed) -> Outcome {
    let (image, other) = (bed.image("app"), bed.image("other"));
    bed.pulls_so(&image, Pull::Succeeds(seconds(1.0)));
    let jobs = [bed.beside(bed.wants("a", &image)), bed.beside(bed.wants("b", &other))];
    until("the view shows the pull", SOON, || !bed.view().pulling.is_empty()).await?;
    bed.stage.crash().await?;
    for job in jobs {
        came(job).await?.map_err(|e| Broken(format!("{}: {e}", e.reason)))?;
    }
    until("the view is empty", SOON, || *bed.view() == ImageView::default()).await
}

async fn many_crashes(bed: Bed) -> Outcome {
    let images: Vec<String> = (0..3).map(|n| bed.image(&format!("i{n}"))).collect();
    images.iter().for_each(|image| bed.pulls_so(image, Pull::Succeeds(seconds(0.5))));
    for _ in 0..5 {
        // Who asks here asks again, as a worker does with its next step.
        let jobs: Vec<_> = images.iter().map(|image| bed.beside(bed.wants("a", image))).collect();
        pass(0.2).await;
        bed.stage.crash().await?;
        jobs.iter().for_each(tokio::task::JoinHandle::abort);
    }
    for image in &images {
        bed.got(bed.wants("a", image)).await?;
    }
    Ok(())
}

async fn successor(bed: Bed) -> Outcome {
    let (image, other) = (bed.image("app"), bed.image("other"));
    bed.got(bed.wants("a", &image)).await?;
    bed.stage.take_over().await?;
    bed.got(bed.wants("a", &image)).await?;
    bed.was_pulled(&image, 1)?;
    bed.got(bed.wants("a", &other)).await.map(drop)
}

async fn successor_in_a_pull(bed: Bed) -> Outcome {
    let image = bed.image("app");
    bed.pulls_so(&image, Pull::Succeeds(seconds(1.5)));
    let job = bed.beside(bed.wants("a", &image));
    bed.is_being_pulled(&image).await?;
    bed.stage.take_over().await?;
    // Nobody had the place for a moment. Who was not answered then asks again, as a worker does with its next step.
    job.abort();
    bed.got(bed.wants("a", &image)).await.map(drop)
}

async fn successor_keeps_locks(bed: Bed) -> Outcome {
    let image = bed.locked("app").await?;
    bed.stage.take_over().await?;
    bed.is_locked(&image).await
}

async fn daemon_keeps_locks(bed: Bed) -> Outcome {
    let image = bed.locked("app").await?;
    let bed = Bed::on(bed.stage.restart_daemon().await?);
    bed.stage.begin().await?;
    bed.is_locked(&image).await?;
    bed.stage.close().await
}

async fn daemon_in_a_locked_pull(bed: Bed) -> Outcome {
    let stage = std::cell::RefCell::new(None);
    let image = bed
        .in_a_locked_pull(async {
            *stage.borrow_mut() = Some(bed.stage.restart_daemon().await?);
            Ok(())
        })
        .await?;
    let stage = stage.into_inner().ok_or_else(|| Broken("the daemon was not started again".to_owned()))?;
    let bed = Bed::on(stage);
    bed.stage.begin().await?;
    bed.is_locked(&image).await?;
    bed.stage.close().await
}
