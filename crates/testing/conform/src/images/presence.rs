//! What is there, what is not, and what a name means.

use contract::ImageManager;
use contract::image::EnsuredImage;
use fakes::runtime::{Code, FakeImage, Fault};

use super::bed::{Bed, SOON, case};
use crate::case::Case;
use crate::outcome::{Broken, Outcome, demand};

pub(super) fn cases() -> Vec<Case<ImageManager>> {
    [looks(), names_and_users()].into_iter().flatten().collect()
}

fn looks() -> Vec<Case<ImageManager>> {
    vec![
        case(
            "present",
            "pod-lifecycle 5.3",
            "what is there is used without a pull, with IfNotPresent and with Never",
            present,
        )
        .core(),
        case(
            "present-is-told",
            "pod-lifecycle 5.3",
            "that an image is there is a Normal event Pulled of the container",
            present_is_told,
        ),
        case(
            "absent",
            "pod-lifecycle 5.3",
            "with IfNotPresent an absent image is pulled, once, and the answer is what the pull gave",
            absent,
        )
        .core(),
        case("always", "pod-lifecycle 5.3", "with Always it is pulled each time, though it is there", always).core(),
        case(
            "never",
            "pod-lifecycle 5.3",
            "with Never an absent image is ErrImageNeverPull, and nothing is pulled",
            never,
        )
        .core(),
        case(
            "never-is-told",
            "pod-lifecycle 5.3, 11",
            "ErrImageNeverPull says which image, to the pod and in an event",
            never_is_told,
        ),
        case("gone-again", "contract", "an image that somebody removed is pulled again", gone_again).core(),
        case("came-meanwhile", "contract", "an image that somebody else pulled is used", came_meanwhile).core(),
        case(
            "default-tag",
            "pod-lifecycle 5.3",
            "a name without tag and digest gets :latest, and nothing else of it changes",
            default_tag,
        )
        .core(),
        case("port-is-no-tag", "pod-lifecycle 5.3", "the port of a registry is no tag", port_is_no_tag),
        case("digest", "pod-lifecycle 5.3", "a name with a digest gets no tag", digest).core(),
    ]
}

fn names_and_users() -> Vec<Case<ImageManager>> {
    vec![
        case(
            "bad-name",
            "pod-lifecycle 5.3",
            "a name that is no reference is InvalidImageName, and the runtime is not asked",
            bad_name,
        )
        .core(),
        case(
            "bad-name-is-told",
            "pod-lifecycle 5.3, 11",
            "the Warning event InspectFailed says what is wrong with a name",
            bad_name_is_told,
        ),
        case(
            "inspection-fails",
            "pod-lifecycle 5.3",
            "a runtime that cannot say what it has is ImageInspectError, and nothing is pulled",
            inspection_fails,
        )
        .core(),
        case(
            "inspection-failure-is-told",
            "pod-lifecycle 5.3, 11",
            "ImageInspectError has the runtime's text, to the pod and in an event",
            inspection_failure_is_told,
        ),
        case(
            "numeric-user",
            "contract",
            "the numeric user of an image is answered, whether it was there or was pulled",
            numeric_user,
        )
        .core(),
        case(
            "named-user",
            "contract",
            "the user name of an image is answered when there is no numeric one",
            named_user,
        )
        .core(),
        case(
            "two-hundred-pods",
            "contract",
            "two hundred pods whose images are there have them at once",
            two_hundred_pods,
        ),
    ]
}

async fn present(bed: Bed) -> Outcome {
    let image = bed.image("app");
    let there = bed.has(&image);
    for policy in ["IfNotPresent", "Never"] {
        let got = bed.got(bed.want(&bed.pod("a"), &image, policy)).await?;
        let wanted = EnsuredImage { image_ref: there.id.clone(), ..EnsuredImage::default() };
        demand(got == wanted, || format!("{policy}: {got:?}, not {wanted:?}"))?;
    }
    bed.was_pulled(&image, 0)
}

async fn present_is_told(bed: Bed) -> Outcome {
    let (pod, image) = (bed.pod("a"), bed.image("app"));
    bed.has(&image);
    bed.got(bed.want(&pod, &image, "IfNotPresent")).await?;
    let told = format!("Container image \"{image}\" already present on machine and can be accessed by the pod");
    bed.tells(&pod, &format!("Normal Pulled: {told}")).await
}

async fn absent(bed: Bed) -> Outcome {
    let image = bed.image("app");
    let got = bed.got(bed.wants("a", &image)).await?;
    let wanted = FakeImage::new(&image).id;
    demand(got.image_ref == wanted, || format!("the image is {:?}, not {wanted:?}", got.image_ref))?;
    bed.was_pulled(&image, 1)?;
    bed.got(bed.wants("a", &image)).await?;
    bed.was_pulled(&image, 1)
}

async fn always(bed: Bed) -> Outcome {
    let (pod, image) = (bed.pod("a"), bed.image("app"));
    bed.has(&image);
    for times in 1..=2 {
        bed.got(bed.want(&pod, &image, "Always")).await?;
        bed.was_pulled(&image, times)?;
    }
    Ok(())
}

async fn never(bed: Bed) -> Outcome {
    let image = bed.image("app");
    for _ in 0..2 {
        bed.refused(bed.want(&bed.pod("a"), &image, "Never"), "ErrImageNeverPull").await?;
    }
    bed.was_pulled(&image, 0)
}

async fn never_is_told(bed: Bed) -> Outcome {
    let (pod, image) = (bed.pod("a"), bed.image("app"));
    let refused = bed.refused(bed.want(&pod, &image, "Never"), "ErrImageNeverPull").await?;
    let text = format!("Container image \"{image}\" is not present with pull policy of Never");
    demand(refused.message == text, || format!("the pod is told {:?}", refused.message))?;
    bed.tells(&pod, &format!("Warning ErrImageNeverPull: {text}")).await
}

async fn gone_again(bed: Bed) -> Outcome {
    let image = bed.image("app");
    bed.got(bed.wants("a", &image)).await?;
    bed.runtime.remove_image(&image);
    bed.refused(bed.want(&bed.pod("a"), &image, "Never"), "ErrImageNeverPull").await?;
    bed.got(bed.wants("a", &image)).await?;
    bed.was_pulled(&image, 2)
}

async fn came_meanwhile(bed: Bed) -> Outcome {
    let image = bed.image("app");
    bed.refused(bed.want(&bed.pod("a"), &image, "Never"), "ErrImageNeverPull").await?;
    bed.has(&image);
    bed.got(bed.want(&bed.pod("a"), &image, "Never")).await?;
    bed.was_pulled(&image, 0)
}

async fn default_tag(bed: Bed) -> Outcome {
    // What a registry makes of a short name is the runtime's affair.
    for name in [bed.repository("long"), bed.stage.uid("short")] {
        bed.got(bed.wants("a", &name)).await?;
        bed.was_pulled(&format!("{name}:latest"), 1)?;
    }
    Ok(())
}

async fn port_is_no_tag(bed: Bed) -> Outcome {
    let name = format!("localhost:5000/{}", bed.stage.uid("app"));
    bed.got(bed.wants("a", &name)).await?;
    bed.was_pulled(&format!("{name}:latest"), 1)
}

async fn digest(bed: Bed) -> Outcome {
    let name = format!("{}@sha256:{}", bed.repository("app"), "0123456789abcdef".repeat(4));
    bed.got(bed.wants("a", &name)).await?;
    bed.was_pulled(&name, 1)
}

async fn bad_name(bed: Bed) -> Outcome {
    for name in ["Upper/Case", "with space", "a:b:c", "", "r.io/app@sha256:short"] {
        for policy in ["Always", "IfNotPresent", "Never"] {
            bed.refused(bed.want(&bed.pod("a"), name, policy), "InvalidImageName").await?;
        }
    }
    let asked = bed.runtime.count("PullImage") + bed.runtime.count("ImageStatus");
    demand(asked == 0, || format!("the runtime was asked {asked} times"))
}

async fn bad_name_is_told(bed: Bed) -> Outcome {
    let pod = bed.pod("a");
    let refused = bed.refused(bed.want(&pod, "Bad Name", "Always"), "InvalidImageName").await?;
    let head = "Failed to apply default image tag \"Bad Name\": ";
    demand(refused.message.starts_with(head), || format!("the pod is told {:?}", refused.message))?;
    bed.tells(&pod, &format!("Warning InspectFailed: {}", refused.message)).await
}

fn gone() -> Fault {
    Fault::error("ImageStatus", Code::Unavailable, "gone for lunch").times(1)
}

async fn inspection_fails(bed: Bed) -> Outcome {
    let image = bed.image("app");
    for policy in ["IfNotPresent", "Never"] {
        bed.strikes(gone());
        bed.refused(bed.want(&bed.pod("a"), &image, policy), "ImageInspectError").await?;
    }
    bed.was_pulled(&image, 0)?;
    bed.got(bed.wants("a", &image)).await.map(drop)
}

async fn inspection_failure_is_told(bed: Bed) -> Outcome {
    let (pod, image) = (bed.pod("a"), bed.image("app"));
    bed.strikes(gone());
    let refused = bed.refused(bed.want(&pod, &image, "IfNotPresent"), "ImageInspectError").await?;
    let text = format!("Failed to inspect image \"{image}\": rpc error: code = Unavailable desc = gone for lunch");
    demand(refused.message == text, || format!("the pod is told {:?}", refused.message))?;
    bed.tells(&pod, &format!("Warning InspectFailed: {text}")).await
}

/// The user of an image, when it was pulled and when it is there.
async fn users(bed: &Bed, offered: FakeImage) -> Outcome<[(Option<i64>, String); 2]> {
    let image = offered.name.clone();
    bed.runtime.registry_offers(offered);
    let (pulled, there) = (bed.got(bed.wants("a", &image)).await?, bed.got(bed.wants("b", &image)).await?);
    bed.was_pulled(&image, 1)?;
    Ok([(pulled.uid, pulled.username), (there.uid, there.username)])
}

async fn numeric_user(bed: Bed) -> Outcome {
    for uid in [1000, 0] {
        let image = bed.image(&format!("u{uid}"));
        let users = users(&bed, FakeImage::new(&image).uid(uid)).await?;
        let are = users.iter().all(|(numeric, name)| *numeric == Some(uid) && name.is_empty());
        demand(are, || format!("of an image with user {uid}: {users:?}"))?;
    }
    Ok(())
}

async fn named_user(bed: Bed) -> Outcome {
    let users = users(&bed, FakeImage::new(&bed.image("app")).username("web")).await?;
    demand(users.iter().all(|(numeric, name)| numeric.is_none() && name == "web"), || format!("{users:?}"))
}

async fn two_hundred_pods(bed: Bed) -> Outcome {
    let image = bed.image("app");
    bed.has(&image);
    let all = (0..200).map(|n| bed.got(bed.wants(&format!("p{n}"), &image)));
    let answered = tokio::time::timeout(SOON, futures::future::try_join_all(all)).await;
    answered.map_err(|_| Broken(format!("not all have it within {SOON:?}")))??;
    bed.was_pulled(&image, 0)
}
