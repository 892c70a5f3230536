//! Askers that go, a runtime that is slow, loses answers or goes.

use contract::ImageManager;
use fakes::runtime::{Code, Fault, FaultKind, Pull};

use super::bed::{Bed, SOON, came, case, pass, seconds};
use crate::case::Case;
use crate::outcome::{Broken, Outcome, demand};
use crate::watch::until;

pub(super) fn cases() -> Vec<Case<ImageManager>> {
    vec![
        case("asker-gone", "contract", "a pull goes on when the asker is gone", asker_gone).core(),
        case(
            "asker-gone-leaves-others",
            "contract",
            "others have the image though the first who asked is gone",
            asker_gone_leaves_others,
        )
        .core(),
        case(
            "askers-gone-in-a-line",
            "contract",
            "askers that are gone leave no line behind them",
            askers_gone_in_a_line,
        )
        .core(),
        case(
            "runtime-away",
            "pod-lifecycle 5.3",
            "while the runtime is away images are not to be had, and are again when it is back",
            runtime_away,
        )
        .core(),
        case(
            "runtime-goes-in-a-pull",
            "pod-lifecycle 5.3",
            "a pull over which the runtime goes has failed, and is tried again after its back-off",
            runtime_goes_in_a_pull,
        )
        .core(),
        case(
            "answer-of-a-pull-lost",
            "pod-lifecycle 5.3",
            "an image whose pull went well, but not its answer, is found",
            answer_of_a_pull_lost,
        )
        .core(),
        case("slow-inspection", "contract", "a runtime that is slow to say what it has is waited for", slow_inspection)
            .core(),
        case(
            "hung-inspection",
            "interfaces 7",
            "a runtime that does not say what it has is given up, and nothing is pulled",
            hung_inspection,
        )
        .inside(),
        case("slow-list", "contract", "while images are looked through for removal, pods have theirs", slow_list)
            .core(),
    ]
}

async fn asker_gone(bed: Bed) -> Outcome {
    let image = bed.image("app");
    bed.pulls_so(&image, Pull::Succeeds(seconds(2.0)));
    let job = bed.beside(bed.wants("a", &image));
    bed.is_being_pulled(&image).await?;
    job.abort();
    until("the image is there", seconds(2.0) + SOON, || bed.runtime.has_image(&image)).await?;
    bed.got(bed.wants("b", &image)).await?;
    bed.was_pulled(&image, 1)
}

async fn asker_gone_leaves_others(bed: Bed) -> Outcome {
    let image = bed.image("app");
    bed.pulls_so(&image, Pull::Succeeds(seconds(2.0)));
    let first = bed.beside(bed.wants("a", &image));
    bed.is_being_pulled(&image).await?;
    let other = bed.beside(bed.wants("b", &image));
    pass(0.3).await;
    first.abort();
    came(other).await?.map_err(|e| Broken(format!("{}: {e}", e.reason))).map(drop)
}

async fn askers_gone_in_a_line(bed: Bed) -> Outcome {
    let images: Vec<String> = (0..4).map(|n| bed.image(&format!("i{n}"))).collect();
    images.iter().for_each(|image| bed.pulls_so(image, Pull::Succeeds(seconds(0.5))));
    let jobs: Vec<_> = images.iter().map(|image| bed.beside(bed.wants("a", image))).collect();
    until("one is being pulled", SOON, || images.iter().any(|image| bed.running(image) > 0)).await?;
    jobs.iter().for_each(tokio::task::JoinHandle::abort);
    bed.got(bed.wants("b", &bed.image("last"))).await?;
    until("nobody waits", seconds(2.0) + SOON, || bed.view().queued == 0 && bed.view().pulling.is_empty()).await
}

async fn runtime_away(bed: Bed) -> Outcome {
    let image = bed.image("app");
    bed.has(&image);
    bed.runtime.down();
    for _ in 0..2 {
        bed.refused(bed.wants("a", &image), "ImageInspectError").await?;
    }
    bed.runtime.up();
    pass(5.0).await;
    bed.got(bed.wants("a", &image)).await?;
    bed.was_pulled(&image, 0)
}

async fn runtime_goes_in_a_pull(bed: Bed) -> Outcome {
    let image = bed.image("app");
    bed.pulls_so(&image, Pull::Hangs);
    let job = bed.beside(bed.wants("a", &image));
    bed.is_being_pulled(&image).await?;
    bed.runtime.disconnect();
    let answer = came(job).await?;
    demand(answer.as_ref().is_err_and(|e| e.reason == "ErrImagePull"), || format!("the answer is {answer:?}"))?;
    bed.pulls_so(&image, Pull::Succeeds(seconds(0.1)));
    pass(10.5).await;
    bed.got(bed.wants("a", &image)).await.map(drop)
}

async fn answer_of_a_pull_lost(bed: Bed) -> Outcome {
    let image = bed.image("app");
    bed.strikes(Fault::new("PullImage", FaultKind::ErrorAfter(Code::Unavailable, "lost".to_owned())).times(1));
    bed.refused(bed.wants("a", &image), "ErrImagePull").await?;
    demand(bed.runtime.has_image(&image), || "the runtime does not have it".to_owned())?;
    // Whether it may be used without a further pull is another matter, so that one may come, after its back-off.
    pass(10.5).await;
    bed.got(bed.wants("a", &image)).await.map(drop)
}

async fn slow_inspection(bed: Bed) -> Outcome {
    let image = bed.image("app");
    bed.has(&image);
    bed.strikes(Fault::new("ImageStatus", FaultKind::Delay(seconds(3.0))));
    bed.got(bed.wants("a", &image)).await?;
    bed.was_pulled(&image, 0)
}

async fn hung_inspection(bed: Bed) -> Outcome {
    let image = bed.image("app");
    bed.strikes(Fault::hang("ImageStatus").times(1));
    let answer = tokio::time::timeout(seconds(600.0), bed.refused(bed.wants("a", &image), "ImageInspectError"));
    answer.await.map_err(|_| Broken("there is no answer after ten minutes".to_owned()))??;
    bed.was_pulled(&image, 0)?;
    bed.got(bed.wants("a", &image)).await.map(drop)
}

async fn slow_list(bed: Bed) -> Outcome {
    let (image, absent) = (bed.image("app"), bed.image("absent"));
    bed.has(&image);
    bed.strikes(Fault::hold("ListImages"));
    let removal = bed.frees();
    let pods = async {
        until("images are looked through", SOON, || bed.runtime.count("ListImages") > 0).await?;
        for image in [&image, &absent] {
            let got = tokio::time::timeout(SOON, bed.got(bed.wants("a", image))).await;
            got.map_err(|_| Broken(format!("{image} is not to be had meanwhile")))??;
        }
        bed.runtime.clear_faults();
        Ok(())
    };
    futures::future::try_join(removal, pods).await.map(drop)
}
