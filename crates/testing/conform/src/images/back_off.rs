//! How long a pull that failed is not tried again.

use contract::ImageManager;
use fakes::runtime::{Code, Pull};

use super::bed::{Bed, case, pass, seconds};
use crate::case::Case;
use crate::outcome::{Outcome, demand};

pub(super) fn cases() -> Vec<Case<ImageManager>> {
    [delays(), whose(), clocks()].into_iter().flatten().collect()
}

fn delays() -> Vec<Case<ImageManager>> {
    vec![
        case(
            "back-off",
            "pod-lifecycle 6.2",
            "after a pull that failed the image is not pulled for the pod for 10 s: ImagePullBackOff",
            back_off,
        )
        .core(),
        case("back-off-ends", "pod-lifecycle 6.2", "after 10 s it is pulled again, and may go well", back_off_ends)
            .core(),
        case("back-off-doubles", "pod-lifecycle 6.2", "the second failure waits for 20 s", back_off_doubles),
        case(
            "back-off-has-a-limit",
            "pod-lifecycle 6.2",
            "pulls wait for 10, 20, 40, 80, 160 and then 300 s",
            back_off_has_a_limit,
        )
        .inside(),
        case(
            "back-off-is-forgotten",
            "pod-lifecycle 6.2",
            "ten minutes after the last failure the next one waits for 10 s",
            back_off_is_forgotten,
        )
        .inside(),
    ]
}

fn whose() -> Vec<Case<ImageManager>> {
    vec![
        case("back-off-of-each-pod", "pod-lifecycle 6.2", "other pods try the image themselves", back_off_of_each_pod)
            .core(),
        case(
            "back-off-of-each-image",
            "pod-lifecycle 6.2",
            "the pod's other images are pulled",
            back_off_of_each_image,
        )
        .core(),
        case(
            "back-off-of-containers",
            "pod-lifecycle 6.2",
            "containers of a pod that want the same image wait together",
            back_off_of_containers,
        ),
        case(
            "back-off-says-why",
            "pod-lifecycle 5.3",
            "ImagePullBackOff names the failure before, and BackOff is a Normal event",
            back_off_says_why,
        ),
        case(
            "back-off-looks-first",
            "pod-lifecycle 5.3",
            "an image that came meanwhile is used, however long the back-off",
            back_off_looks_first,
        )
        .core(),
        case(
            "never-has-no-back-off",
            "pod-lifecycle 5.3",
            "ErrImageNeverPull does not turn into ImagePullBackOff",
            never_has_no_back_off,
        ),
    ]
}

fn clocks() -> Vec<Case<ImageManager>> {
    vec![
        case(
            "clock-set-back",
            "contract",
            "a clock that is set back by an hour holds no pull back for longer",
            clock_set_back,
        )
        .inside(),
        case(
            "clock-set-back-and-the-rate",
            "contract",
            "a clock that is set back by an hour takes no pull for too many",
            clock_set_back_and_the_rate,
        )
        .inside(),
        case(
            "clock-set-forward",
            "contract",
            "a clock that is set forward by an hour ends no back-off",
            clock_set_forward,
        )
        .inside(),
    ]
}

const HOUR: i64 = 3_600_000_000_000;

impl Bed {
    /// An image whose pulls fail at once.
    fn broken(&self, word: &str) -> String {
        let image = self.image(word);
        self.pulls_so(&image, Pull::Fails(seconds(0.0), Code::NotFound, "no such thing".to_owned()));
        image
    }

    /// It is pulled, and that fails.
    async fn fails_at(&self, image: &str) -> Outcome {
        self.refused(self.wants("a", image), "ErrImagePull").await.map(drop)
    }

    /// It is not pulled.
    async fn waits_for(&self, image: &str) -> Outcome {
        let before = self.pulls(image).len();
        self.refused(self.wants("a", image), "ImagePullBackOff").await?;
        self.was_pulled(image, before)
    }

    /// It is held back for so long from now, and then pulled.
    async fn holds(&self, image: &str, delay: f64) -> Outcome {
        let early = if self.stage.is_real() { delay / 2.0 } else { delay - 1.0 };
        pass(early).await;
        self.waits_for(image).await?;
        pass(delay - early + 0.5).await;
        self.fails_at(image).await
    }
}

async fn back_off(bed: Bed) -> Outcome {
    let image = bed.broken("app");
    bed.fails_at(&image).await?;
    bed.waits_for(&image).await?;
    pass(5.0).await;
    bed.waits_for(&image).await
}

async fn back_off_ends(bed: Bed) -> Outcome {
    let image = bed.broken("app");
    bed.fails_at(&image).await?;
    bed.pulls_so(&image, Pull::Succeeds(seconds(0.1)));
    pass(10.5).await;
    bed.got(bed.wants("a", &image)).await.map(drop)
}

async fn back_off_doubles(bed: Bed) -> Outcome {
    let image = bed.broken("app");
    bed.fails_at(&image).await?;
    bed.holds(&image, 10.0).await?;
    bed.holds(&image, 20.0).await
}

async fn back_off_has_a_limit(bed: Bed) -> Outcome {
    let image = bed.broken("app");
    bed.fails_at(&image).await?;
    for delay in [10.0, 20.0, 40.0, 80.0, 160.0, 300.0, 300.0] {
        bed.holds(&image, delay).await?;
    }
    Ok(())
}

async fn back_off_is_forgotten(bed: Bed) -> Outcome {
    let image = bed.broken("app");
    bed.fails_at(&image).await?;
    for delay in [10.0, 20.0] {
        bed.holds(&image, delay).await?;
    }
    pass(601.0).await;
    bed.fails_at(&image).await?;
    bed.holds(&image, 10.0).await
}

async fn back_off_of_each_pod(bed: Bed) -> Outcome {
    let image = bed.broken("app");
    bed.fails_at(&image).await?;
    bed.refused(bed.wants("other", &image), "ErrImagePull").await?;
    bed.was_pulled(&image, 2)?;
    bed.waits_for(&image).await
}

async fn back_off_of_each_image(bed: Bed) -> Outcome {
    let (image, other) = (bed.broken("app"), bed.image("other"));
    bed.fails_at(&image).await?;
    bed.got(bed.wants("a", &other)).await?;
    bed.waits_for(&image).await
}

async fn back_off_of_containers(bed: Bed) -> Outcome {
    let image = bed.broken("app");
    bed.fails_at(&image).await?;
    let mut other = bed.wants("a", &image);
    other.field_path = "spec.initContainers{first}".to_owned();
    bed.refused(other, "ImagePullBackOff").await?;
    bed.was_pulled(&image, 1)
}

async fn back_off_says_why(bed: Bed) -> Outcome {
    let (pod, image) = (bed.pod("a"), bed.broken("app"));
    bed.fails_at(&image).await?;
    let refused = bed.refused(bed.want(&pod, &image, "IfNotPresent"), "ImagePullBackOff").await?;
    let text = format!("Back-off pulling image \"{image}\"");
    let wanted = format!("{text}: ErrImagePull: rpc error: code = NotFound desc = no such thing");
    demand(refused.message == wanted, || format!("the pod is told {:?}", refused.message))?;
    bed.tells(&pod, &format!("Normal BackOff: {text}")).await
}

async fn back_off_looks_first(bed: Bed) -> Outcome {
    let image = bed.broken("app");
    bed.fails_at(&image).await?;
    bed.waits_for(&image).await?;
    // By somebody's hand: the node did not pull it.
    bed.has(&image);
    bed.got(bed.wants("a", &image)).await.map(drop)
}

async fn never_has_no_back_off(bed: Bed) -> Outcome {
    let (pod, image) = (bed.pod("a"), bed.broken("app"));
    bed.fails_at(&image).await?;
    for _ in 0..2 {
        bed.refused(bed.want(&pod, &image, "Never"), "ErrImageNeverPull").await?;
    }
    Ok(())
}

async fn clock_set_back(bed: Bed) -> Outcome {
    let image = bed.broken("app");
    bed.fails_at(&image).await?;
    bed.stage.set_clock_by(-HOUR);
    bed.waits_for(&image).await?;
    pass(10.5).await;
    bed.fails_at(&image).await
}

async fn clock_set_back_and_the_rate(bed: Bed) -> Outcome {
    // The burst is used up; after that there are five a second.
    for n in 0..10 {
        bed.pulls_so(&bed.image(&format!("i{n}")), Pull::Succeeds(seconds(0.0)));
        bed.got(bed.wants("a", &bed.image(&format!("i{n}")))).await?;
    }
    bed.stage.set_clock_by(-HOUR);
    pass(5.0).await;
    for n in 10..15 {
        bed.got(bed.wants("a", &bed.image(&format!("i{n}")))).await?;
    }
    Ok(())
}

async fn clock_set_forward(bed: Bed) -> Outcome {
    let image = bed.broken("app");
    bed.fails_at(&image).await?;
    bed.stage.set_clock_by(HOUR);
    bed.waits_for(&image).await?;
    pass(10.5).await;
    bed.fails_at(&image).await?;
    // The second failure, so it waits for longer.
    bed.holds(&image, 20.0).await
}
