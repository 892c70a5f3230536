//! Images that nobody uses are removed.

use contract::ImageManager;
use fakes::runtime::{Code, FakeImage, Fault, FaultKind};
use model::runtime::ContainerState::{Created, Exited, Running};

use super::bed::{Bed, pass, seconds};
use crate::case::Case;
use crate::outcome::{Outcome, demand};
use crate::stage::Stage;
use crate::watch::until;

pub(super) fn cases() -> Vec<Case<ImageManager>> {
    [asked(), by_itself()].into_iter().flatten().collect()
}

fn asked() -> Vec<Case<ImageManager>> {
    vec![
        stocked(
            "unused-go",
            "node-and-resources 4.1",
            "RemoveUnusedImages removes images that nobody uses, and answers their bytes",
            unused_go,
        )
        .core(),
        stocked(
            "used-stay",
            "node-and-resources 4.1",
            "images of containers stay, running or not, by whatever name the runtime calls them",
            used_stay,
        )
        .core(),
        stocked("pinned-stay", "node-and-resources 4.1", "images that the runtime pinned stay", pinned_stay).core(),
        stocked("young-stay", "node-and-resources 4.1", "images younger than imageMinimumGCAge stay", young_stay)
            .core(),
        stocked(
            "asked-for-stay",
            "contract",
            "an image that was just asked for stays, until its container shows",
            asked_for_stay,
        ),
        stocked(
            "remove-twice",
            "contract",
            "RemoveUnusedImages twice removes nothing twice, one after the other or at once",
            remove_twice,
        )
        .core(),
        stocked(
            "removal-fails",
            "node-and-resources 4.1",
            "an image that cannot be removed is not counted, and keeps no other one",
            removal_fails,
        )
        .core(),
        stocked(
            "list-fails",
            "contract",
            "without the runtime's list nothing is removed, and that is a failure",
            list_fails,
        )
        .core(),
        stocked(
            "comes-into-use",
            "node-and-resources 4.1",
            "an image that comes into use while others are removed stays",
            comes_into_use,
        ),
        stocked(
            "removed-are-pulled-again",
            "contract",
            "an image that was removed is pulled again",
            removed_are_pulled_again,
        )
        .core(),
    ]
}

fn by_itself() -> Vec<Case<ImageManager>> {
    vec![
        stocked("full-disk", "node-and-resources 4.1", "at imageGCHighThresholdPercent images are removed until imageGCLowThresholdPercent is reached, and no further", full_disk).inside(),
        stocked("room-enough", "node-and-resources 4.1", "below imageGCHighThresholdPercent nothing is removed", room_enough).inside(),
        stocked("oldest-use-first", "node-and-resources 4.1", "what was used last goes last", oldest_use_first).inside(),
        stocked("not-enough", "node-and-resources 4.1", "what cannot be freed is told as FreeDiskSpaceFailed, from the second time on as ImageGCFailed", not_enough).inside(),
        stocked("no-capacity", "node-and-resources 4.1", "a file system without a size is told as InvalidDiskCapacity, and nothing is removed", no_capacity).inside(),
        stocked("clock-set-back-keeps-no-images", "contract", "a clock that is set back by a day keeps no image for longer", clock_set_back_keeps_no_images).inside(),
        stocked("clock-set-forward-ages-no-images", "contract", "a clock that is set forward by a day makes no image old", clock_set_forward_ages_no_images).inside(),
    ]
}

const SIZE: u64 = 1 << 30;
const DAY: i64 = 86_400_000_000_000;

/// A case whose runtime has two images of a gigabyte, `old-a` and `old-b`, before the manager comes.
fn stocked<F, Fut>(name: &'static str, source: &'static str, rule: &'static str, play: F) -> Case<ImageManager>
where
    F: Fn(Bed) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = Outcome> + 'static,
{
    let on = |stage: Stage<ImageManager>| {
        let bed = Bed::on(stage);
        OLD.iter().for_each(|word| bed.large(word));
        bed
    };
    Case::begun(name, source, rule, on, play).anew()
}

const OLD: [&str; 2] = ["old-a", "old-b"];

impl Bed {
    fn large(&self, word: &str) {
        self.runtime.add_image(FakeImage { size: SIZE, ..FakeImage::new(&self.image(word)) });
    }

    fn old(&self) -> [FakeImage; 2] {
        OLD.map(|word| FakeImage::new(&self.image(word)))
    }

    /// Of the two old images these are there, and no other one.
    fn left(&self, words: &[&str]) -> Outcome {
        let left: Vec<_> = OLD.into_iter().filter(|word| self.runtime.has_image(&self.image(word))).collect();
        demand(left == words, || format!("{left:?} are there, not {words:?}"))
    }

    /// A pod has a container of the image.
    fn uses(&self, pod: &str, word: &str) {
        let image = FakeImage::new(&self.image(word));
        self.shows(&self.pod(pod), Running, &image.name, &image.id);
    }
}

async fn unused_go(bed: Bed) -> Outcome {
    let freed = bed.frees().await?;
    demand(freed == 2 * SIZE, || format!("{freed} bytes are said to be freed, not {}", 2 * SIZE))?;
    bed.left(&[])
}

async fn used_stay(bed: Bed) -> Outcome {
    let [a, b] = bed.old();
    bed.shows(&bed.pod("runs"), Running, &a.name, "");
    bed.shows(&bed.pod("ended"), Exited, "sha256:0", &b.id);
    bed.frees().await?;
    bed.left(&OLD)?;
    pass(0.1).await;
    bed.shows(&bed.pod("runs"), Created, "", &a.digest);
    bed.shows_no_more(&bed.pod("ended"));
    bed.frees().await?;
    bed.left(&["old-a"])
}

async fn pinned_stay(bed: Bed) -> Outcome {
    let image = bed.image("sandbox");
    bed.runtime.add_image(FakeImage::new(&image).pinned());
    bed.frees().await?;
    bed.left(&[])?;
    demand(bed.runtime.has_image(&image), || "a pinned image was removed".to_owned())
}

async fn young_stay(bed: Bed) -> Outcome {
    // It has seen what was there before.
    bed.frees().await?;
    let image = bed.image("young");
    bed.got(bed.wants("a", &image)).await?;
    bed.has(&bed.image("by-hand"));
    let freed = bed.frees().await?;
    demand(freed == 0, || format!("{freed} bytes are said to be freed"))?;
    let there = bed.runtime.has_image(&image) && bed.runtime.has_image(&bed.image("by-hand"));
    demand(there, || "an image of seconds ago was removed".to_owned())
}

async fn asked_for_stay(bed: Bed) -> Outcome {
    bed.got(bed.wants("a", &bed.image("old-a"))).await?;
    bed.frees().await?;
    bed.left(&["old-a"])
}

async fn remove_twice(bed: Bed) -> Outcome {
    let (one, other) = futures::future::try_join(bed.frees(), bed.frees()).await?;
    let third = bed.frees().await?;
    demand(one + other + third == 2 * SIZE, || format!("{one}, {other} and {third} bytes are said to be freed"))?;
    let removed = bed.removed();
    demand(removed.len() == 2, || format!("the runtime was asked to remove {removed:?}"))?;
    bed.left(&[])
}

async fn removal_fails(bed: Bed) -> Outcome {
    let [a, _] = bed.old();
    bed.strikes(Fault::error("RemoveImage", Code::Internal, "in use by somebody").matching(&a.id));
    let freed = bed.frees().await?;
    demand(freed == SIZE, || format!("{freed} bytes are said to be freed, not {SIZE}"))?;
    bed.left(&["old-a"])?;
    bed.runtime.clear_faults();
    bed.frees().await?;
    bed.left(&[])
}

async fn list_fails(bed: Bed) -> Outcome {
    bed.strikes(Fault::error("ListImages", Code::Internal, "confused"));
    let answer = bed.remove_unused().await?;
    demand(answer.as_ref().is_err_and(|e| e.message.contains("confused")), || format!("the answer is {answer:?}"))?;
    bed.left(&OLD)
}

async fn comes_into_use(bed: Bed) -> Outcome {
    bed.strikes(Fault::new("RemoveImage", FaultKind::Delay(seconds(1.0))).times(1));
    let answered = bed.frees();
    let meanwhile = async {
        until("the first is being removed", seconds(5.0), || bed.removed().len() == 1).await?;
        let first = bed.removed().remove(0);
        let [a, b] = bed.old();
        let other = if first == a.id { b } else { a };
        bed.shows(&bed.pod("late"), Running, &other.name, &other.id);
        Ok(other)
    };
    let (freed, other) = futures::future::try_join(answered, meanwhile).await?;
    demand(freed == SIZE, || format!("{freed} bytes are said to be freed"))?;
    demand(bed.runtime.has_image(&other.name), || "an image that a container uses was removed".to_owned())
}

async fn removed_are_pulled_again(bed: Bed) -> Outcome {
    let image = bed.image("old-a");
    bed.frees().await?;
    bed.got(bed.wants("a", &image)).await?;
    bed.was_pulled(&image, 1)
}

impl Bed {
    /// So much of the disk of 100 GiB is free.
    fn has_free(&self, gigabytes: u64) {
        self.stage.outside().files().set_free(gigabytes << 30);
    }
}

async fn full_disk(bed: Bed) -> Outcome {
    bed.has_free(19);
    pass(700.0).await;
    bed.left(&OLD)?;
    bed.has_free(15);
    until("something is removed", seconds(400.0), || !bed.removed().is_empty()).await?;
    pass(10.0).await;
    // Five are wanted, and there are two.
    bed.left(&[])?;
    for n in 0..7 {
        bed.large(&format!("new-{n}"));
    }
    bed.has_free(16);
    pass(700.0).await;
    let before = bed.removed().len();
    bed.has_free(15);
    until("something is removed", seconds(400.0), || bed.removed().len() > before).await?;
    pass(10.0).await;
    let went = bed.removed().len() - before;
    demand(went == 5, || format!("{went} images of a gigabyte went to free five"))
}

async fn room_enough(bed: Bed) -> Outcome {
    bed.has_free(16);
    pass(3600.0).await;
    demand(bed.removed().is_empty(), || format!("{:?} were removed", bed.removed()))?;
    let told = bed.told_of_node();
    demand(told.is_empty(), || format!("{told:?}"))
}

async fn oldest_use_first(bed: Bed) -> Outcome {
    for word in ["new-0", "new-1", "new-2", "new-3"] {
        bed.large(word);
    }
    // Each is used for a while, one after the other.
    let order = ["new-2", "old-b", "new-0", "new-3", "old-a", "new-1"];
    for word in order {
        bed.uses("user", word);
        pass(700.0).await;
    }
    bed.shows_no_more(&bed.pod("user"));
    pass(700.0).await;
    // Five of the six must go.
    bed.has_free(15);
    until("something is removed", seconds(400.0), || !bed.removed().is_empty()).await?;
    pass(10.0).await;
    let wanted: Vec<String> = order.iter().take(5).map(|word| FakeImage::new(&bed.image(word)).id).collect();
    demand(bed.removed() == wanted, || format!("{:?} were removed, not {wanted:?}", bed.removed()))
}

async fn not_enough(bed: Bed) -> Outcome {
    bed.has_free(10);
    until("it is told", seconds(700.0), || !bed.told_of_node().is_empty()).await?;
    let wanted = 10_u64 << 30;
    let text = format!(
        "Failed to garbage collect required amount of images. Attempted to free {wanted} bytes, but only found {} bytes eligible to free.",
        2 * SIZE
    );
    let told = bed.told_of_node();
    demand(told == [format!("Warning FreeDiskSpaceFailed: {text}")], || format!("first: {told:?}"))?;
    let is_news = |e: &String| e.starts_with("Warning ImageGCFailed: Failed to garbage collect");
    until("ImageGCFailed is told", seconds(700.0), || bed.told_of_node().iter().any(is_news)).await
}

async fn no_capacity(bed: Bed) -> Outcome {
    bed.stage.outside().files().set_size(0);
    until("it is told", seconds(700.0), || !bed.told_of_node().is_empty()).await?;
    let told = bed.told_of_node();
    demand(told[0] == "Warning InvalidDiskCapacity: invalid capacity 0 on image filesystem", || format!("{told:?}"))?;
    bed.left(&OLD)
}

/// A while after the clock was set by so much, images that had been there for a minute go, and none of seconds ago.
async fn clock_was_set(bed: Bed, by: i64) -> Outcome {
    bed.frees().await?;
    bed.has(&bed.image("first"));
    bed.frees().await?;
    pass(60.0).await;
    bed.stage.set_clock_by(by);
    bed.has(&bed.image("second"));
    bed.frees().await?;
    demand(bed.runtime.has_image(&bed.image("first")), || "an image of a minute ago was removed".to_owned())?;
    pass(61.0).await;
    bed.frees().await?;
    demand(!bed.runtime.has_image(&bed.image("first")), || "an image of two minutes ago stays".to_owned())?;
    demand(bed.runtime.has_image(&bed.image("second")), || "an image of a minute ago was removed".to_owned())
}

async fn clock_set_back_keeps_no_images(bed: Bed) -> Outcome {
    clock_was_set(bed, -DAY).await
}

async fn clock_set_forward_ages_no_images(bed: Bed) -> Outcome {
    clock_was_set(bed, DAY).await
}
