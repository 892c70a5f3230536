//! Pulls: what is asked of the runtime, what is told of them, and which run at a time.

use std::sync::Arc;

use contract::ImageManager;
use contract::image::{EnsureImage, ImageView};
use fakes::runtime::{Code, FakeImage, Fault, Pull};
use model::core::Pod;
use tokio::task::JoinHandle;

use super::bed::{Answer, Bed, SOON, came, case, pass, seconds};
use crate::case::Case;
use crate::outcome::{Broken, Outcome, demand};
use crate::watch::until;

pub(super) fn cases() -> Vec<Case<ImageManager>> {
    [single(), several()].into_iter().flatten().collect()
}

fn single() -> Vec<Case<ImageManager>> {
    vec![
        case(
            "pull-names-the-pod",
            "contract",
            "the runtime is told of the pod's sandbox, annotations and handler",
            pull_names_the_pod,
        )
        .core(),
        case(
            "pull-is-told",
            "pod-lifecycle 5.3",
            "Pulling is told when a pull begins, Pulled when it is over, each once",
            pull_is_told,
        ),
        case(
            "pulled-tells-time-and-size",
            "pod-lifecycle 5.3",
            "Pulled says how long it took, with and without waiting, and how large the image is",
            pulled_tells_time_and_size,
        ),
        case("failure", "pod-lifecycle 5.3", "a pull that fails is ErrImagePull, with the runtime's text", failure)
            .core(),
        case(
            "failure-is-told",
            "pod-lifecycle 5.3",
            "the Warning event Failed says which image and why",
            failure_is_told,
        ),
        case(
            "codes-in-texts",
            "interfaces 7",
            "of a failure without a code the text stands alone, others name their code",
            codes_in_texts,
        ),
        case(
            "registry-unavailable",
            "pod-lifecycle 5.3",
            "a failure that begins with RegistryUnavailable has this reason",
            registry_unavailable,
        ),
        case(
            "signature-refused",
            "pod-lifecycle 5.3",
            "a failure that begins with SignatureValidationFailed has this reason",
            signature_refused,
        ),
        case(
            "status-fails-after-a-pull",
            "pod-lifecycle 5.3",
            "a pull that went well stands though the runtime cannot describe the image",
            status_fails_after_a_pull,
        ),
        case("slow-pull", "contract", "a pull may take long: nobody gives it up", slow_pull).core(),
    ]
}

fn several() -> Vec<Case<ImageManager>> {
    vec![
        case("asked-twice", "contract", "who asks twice at once has the image twice", asked_twice).core(),
        case(
            "five-pods-one-image",
            "contract",
            "pods that want the same image at once all have it, and each is told of its own",
            five_pods_one_image,
        )
        .core(),
        case(
            "failure-is-everybodys",
            "contract",
            "pods that wait for a pull that fails are all told so",
            failure_is_everybodys,
        ),
        case("one-pull-at-a-time", "pod-lifecycle 5.3", "pulls run one at a time", one_pull_at_a_time),
        case(
            "line-in-order",
            "pod-lifecycle 5.3",
            "pulls run in the order in which they were asked for",
            line_in_order,
        ),
        case("waiting-is-told", "pod-lifecycle 5.3", "who waited in line reads so in Pulled", waiting_is_told),
        case(
            "pull-holds-up-no-others",
            "contract",
            "a pull that hangs holds up nobody whose image is there",
            pull_holds_up_no_others,
        )
        .core(),
        case(
            "view",
            "contract",
            "ImageView names the image that is pulled and how many wait, and is empty afterwards",
            view,
        )
        .core(),
        case(
            "over-the-rate",
            "pod-lifecycle 5.3",
            "pulls over registryPullQPS fail with \"pull QPS exceeded\", and back off",
            over_the_rate,
        ),
    ]
}

async fn pull_names_the_pod(bed: Bed) -> Outcome {
    let image = bed.image("app");
    let handler = "kata".to_owned();
    bed.got(EnsureImage { runtime_handler: handler.clone(), ..bed.wants("web", &image) }).await?;
    let sent = bed.pulls(&image).pop().ok_or_else(|| Broken("nothing was pulled".to_owned()))?;
    let spec = sent.image.unwrap_or_default();
    let sandbox = sent.sandbox_config.and_then(|c| c.metadata).map(|m| m.name);
    let note = spec.annotations.get("note").map(String::as_str);
    let told = (sandbox.as_deref(), note, spec.runtime_handler == handler, sent.auth.is_none());
    let wanted = (Some("web"), Some("kept"), true, true);
    demand(told == wanted, || format!("sandbox, annotation, handler, nobody's name are {told:?}, not {wanted:?}"))
}

async fn pull_is_told(bed: Bed) -> Outcome {
    let (pod, image) = (bed.pod("a"), bed.image("app"));
    bed.pulls_so(&image, Pull::Succeeds(seconds(2.0)));
    let job = bed.beside(bed.want(&pod, &image, "IfNotPresent"));
    bed.is_being_pulled(&image).await?;
    bed.tells(&pod, &format!("Normal Pulling: Pulling image \"{image}\"")).await?;
    let told = bed.told(&pod);
    demand(told.len() == 1, || format!("while it is pulled: {told:?}"))?;
    came(job).await?.map_err(|e| Broken(format!("{e}")))?;
    until("it is told", SOON, || bed.told(&pod).len() >= 2).await?;
    pass(0.5).await;
    let told = bed.told(&pod);
    let so =
        told.len() == 2 && told[1].starts_with(&format!("Normal Pulled: Successfully pulled image \"{image}\" in "));
    demand(so, || format!("{told:?}"))
}

async fn pulled_tells_time_and_size(bed: Bed) -> Outcome {
    let (pod, image) = (bed.pod("a"), bed.image("app"));
    bed.pulls_so(&image, Pull::Succeeds(seconds(2.345)));
    bed.runtime.registry_offers(FakeImage { size: 4242, ..FakeImage::new(&image) });
    bed.got(bed.want(&pod, &image, "IfNotPresent")).await?;
    let told = bed.pulled(&pod).await?;
    let well =
        times_of(&told).is_some_and(|[took, all]| took <= all && bed.is_time(took, 2.345) && bed.is_time(all, 2.345));
    demand(well && told.ends_with("including waiting). Image size: 4242 bytes."), || format!("{told:?}"))
}

impl Bed {
    /// The event Pulled of a pod's container.
    async fn pulled(&self, pod: &Pod) -> Outcome<String> {
        let pulled = || self.told(pod).into_iter().find(|e| e.starts_with("Normal Pulled"));
        until("Pulled is told", SOON, || pulled().is_some()).await?;
        Ok(pulled().unwrap_or_default())
    }

    /// It took so many seconds. On a real clock that may be more, as machines are busy.
    fn is_time(&self, found: f64, wanted: f64) -> bool {
        let more = if self.stage.is_real() { 30.0 } else { 0.05 };
        (wanted - 0.05..wanted + more).contains(&found)
    }
}

/// The two times of `... in 345ms (2.4s including waiting). ...`, in seconds.
fn times_of(pulled: &str) -> Option<[f64; 2]> {
    let (took, rest) = pulled.split_once(" in ")?.1.split_once(" (")?;
    let (all, _) = rest.split_once(" including waiting)")?;
    let seconds = |text| model::go_duration::parse(text).ok().map(|time| time.as_secs_f64());
    Some([seconds(took)?, seconds(all)?])
}

fn fails(text: &str) -> Pull {
    Pull::Fails(seconds(0.1), Code::Unknown, text.to_owned())
}

async fn failure(bed: Bed) -> Outcome {
    let image = bed.image("app");
    bed.pulls_so(&image, fails("no match for platform"));
    let refused = bed.refused(bed.wants("a", &image), "ErrImagePull").await?;
    demand(refused.message.contains("no match for platform"), || format!("the pod is told {:?}", refused.message))
}

async fn failure_is_told(bed: Bed) -> Outcome {
    let (pod, image) = (bed.pod("a"), bed.image("app"));
    bed.pulls_so(&image, fails("no match for platform"));
    bed.refused(bed.want(&pod, &image, "IfNotPresent"), "ErrImagePull").await?;
    bed.tells(&pod, &format!("Warning Failed: Failed to pull image \"{image}\": no match for platform")).await
}

async fn codes_in_texts(bed: Bed) -> Outcome {
    for (word, code, wanted) in [
        ("plain", Code::Unknown, "not here"),
        ("found", Code::NotFound, "rpc error: code = NotFound desc = not here"),
        ("late", Code::DeadlineExceeded, "rpc error: code = DeadlineExceeded desc = not here"),
    ] {
        let image = bed.image(word);
        bed.pulls_so(&image, Pull::Fails(seconds(0.1), code, "not here".to_owned()));
        let refused = bed.refused(bed.wants(word, &image), "ErrImagePull").await?;
        demand(refused.message == wanted, || format!("{word}: the pod is told {:?}", refused.message))?;
    }
    Ok(())
}

async fn registry_unavailable(bed: Bed) -> Outcome {
    let image = bed.image("app");
    bed.pulls_so(&image, fails("RegistryUnavailable: gone for lunch"));
    let refused = bed.refused(bed.wants("a", &image), "RegistryUnavailable").await?;
    let wanted = format!("image pull failed for {image} because the registry is unavailable");
    demand(refused.message.starts_with(&wanted), || format!("the pod is told {:?}", refused.message))
}

async fn signature_refused(bed: Bed) -> Outcome {
    let image = bed.image("app");
    bed.pulls_so(&image, fails("SignatureValidationFailed: nobody signed it"));
    let refused = bed.refused(bed.wants("a", &image), "SignatureValidationFailed").await?;
    let told = refused.message.contains(&image) && refused.message.contains("signature validation failed");
    demand(told, || format!("the pod is told {:?}", refused.message))
}

async fn status_fails_after_a_pull(bed: Bed) -> Outcome {
    let (pod, image) = (bed.pod("a"), bed.image("app"));
    bed.strikes(Fault::error("ImageStatus", Code::Internal, "confused"));
    let got = bed.got(bed.want(&pod, &image, "Always")).await?;
    let wanted = FakeImage::new(&image).id;
    demand(got.image_ref == wanted, || format!("the image is {:?}, not {wanted:?}", got.image_ref))
}

async fn slow_pull(bed: Bed) -> Outcome {
    let image = bed.image("app");
    bed.pulls_so(&image, Pull::Succeeds(seconds(25.0)));
    bed.got(bed.wants("a", &image)).await?;
    bed.was_pulled(&image, 1)
}

async fn asked_twice(bed: Bed) -> Outcome {
    let (pod, image) = (bed.pod("a"), bed.image("app"));
    bed.pulls_so(&image, Pull::Succeeds(seconds(1.0)));
    let ask = || bed.got(bed.want(&pod, &image, "IfNotPresent"));
    let (one, other) = futures::future::try_join(ask(), ask()).await?;
    demand(one == other, || format!("the answers are {one:?} and {other:?}"))
}

async fn five_pods_one_image(bed: Bed) -> Outcome {
    let image = bed.image("app");
    bed.pulls_so(&image, Pull::Succeeds(seconds(1.0)));
    let pods: Vec<_> = (0..5).map(|n| bed.pod(&format!("p{n}"))).collect();
    futures::future::try_join_all(pods.iter().map(|pod| bed.got(bed.want(pod, &image, "IfNotPresent")))).await?;
    let is_told = |pod: &Arc<_>, event| bed.told(pod).iter().any(|e| e.starts_with(event));
    let so = |pod: &Arc<_>| is_told(pod, "Normal Pulling: ") && is_told(pod, "Normal Pulled: ");
    until("each pod is told Pulling and Pulled", SOON, || pods.iter().all(so)).await
}

async fn failure_is_everybodys(bed: Bed) -> Outcome {
    let image = bed.image("app");
    bed.pulls_so(&image, Pull::Fails(seconds(1.0), Code::Unknown, "bad".to_owned()));
    let asks = (0..5).map(|n| bed.refused(bed.wants(&format!("p{n}"), &image), "ErrImagePull"));
    futures::future::try_join_all(asks).await.map(drop)
}

/// All these have their images.
async fn all_come(jobs: impl IntoIterator<Item = JoinHandle<Outcome<Answer>>>) -> Outcome {
    for job in jobs {
        came(job).await?.map_err(|e| Broken(format!("{e}")))?;
    }
    Ok(())
}

/// Three images that take half a second each, asked for one after the other, and the same as they were asked of the runtime.
async fn in_line(bed: &Bed) -> Outcome<(Vec<String>, Vec<String>)> {
    let images: Vec<String> = (0..3).map(|n| bed.image(&format!("i{n}"))).collect();
    images.iter().for_each(|image| bed.pulls_so(image, Pull::Succeeds(seconds(0.5))));
    let mut jobs = Vec::new();
    for (n, image) in images.iter().enumerate() {
        jobs.push(bed.beside(bed.wants(&format!("p{n}"), image)));
        pass(0.1).await;
    }
    all_come(jobs).await?;
    let pulls = |calls: &[fakes::runtime::Call]| -> Vec<_> {
        calls.iter().filter(|c| c.rpc == "PullImage").map(|c| (c.subject.clone(), c.at, c.answered)).collect()
    };
    let pulls = bed.runtime.peek_calls(pulls);
    let overlap = pulls.windows(2).any(|two| two[0].2.is_none_or(|end| two[1].1 < end));
    demand(!overlap, || format!("two were pulled at one time: {pulls:?}"))?;
    Ok((images, pulls.into_iter().map(|(image, ..)| image).collect()))
}

async fn one_pull_at_a_time(bed: Bed) -> Outcome {
    let (mut asked, mut pulled) = in_line(&bed).await?;
    asked.sort();
    pulled.sort();
    demand(asked == pulled, || format!("of {asked:?} were pulled {pulled:?}"))
}

async fn line_in_order(bed: Bed) -> Outcome {
    let (asked, pulled) = in_line(&bed).await?;
    demand(asked == pulled, || format!("{asked:?} were asked for, and pulled in the order {pulled:?}"))
}

/// What the second pull takes, in seconds: more than [`SOON`], so that it is seen.
const SECOND_PULL: f64 = 6.0;

/// The pod `a` has an image pulled until faults are cleared, and the pod `b` is in line behind it.
async fn two_in_line(bed: &Bed) -> Outcome<[JoinHandle<Outcome<Answer>>; 2]> {
    let (one, two) = (bed.image("one"), bed.image("two"));
    bed.strikes(Fault::hold("PullImage").matching(&one));
    bed.pulls_so(&two, Pull::Succeeds(seconds(SECOND_PULL)));
    let first = bed.beside(bed.wants("a", &one));
    bed.is_being_pulled(&one).await?;
    let second = bed.beside(bed.wants("b", &two));
    // Who pulls two at a time has nobody waiting.
    let so = |v: &ImageView| v.pulling.contains(&one) && v.pulling.len() + v.queued == 2;
    until("the view shows one pull and one that waits", SOON, || so(&bed.view())).await?;
    Ok([first, second])
}

async fn waiting_is_told(bed: Bed) -> Outcome {
    let jobs = two_in_line(&bed).await?;
    pass(1.0).await;
    bed.runtime.clear_faults();
    all_come(jobs).await?;
    let told = bed.pulled(&bed.pod("b")).await?;
    // The first pull held it up for that second, and then took a tenth of one.
    let so = |[took, all]: [f64; 2]| {
        bed.is_time(took, SECOND_PULL) && bed.is_time(all, SECOND_PULL + 1.1) && all - took > 1.0
    };
    demand(times_of(&told).is_some_and(so), || format!("{told:?}"))
}

async fn pull_holds_up_no_others(bed: Bed) -> Outcome {
    let (hung, there) = (bed.image("hung"), bed.image("there"));
    bed.pulls_so(&hung, Pull::Hangs);
    let job = bed.beside(bed.wants("a", &hung));
    bed.is_being_pulled(&hung).await?;
    bed.has(&there);
    let got = tokio::time::timeout(SOON, bed.got(bed.wants("b", &there))).await;
    job.abort();
    got.map_err(|_| Broken(format!("it has no answer within {SOON:?}")))?.map(drop)
}

async fn view(bed: Bed) -> Outcome {
    let jobs = two_in_line(&bed).await?;
    bed.runtime.clear_faults();
    all_come(jobs).await?;
    until("the view is empty", SOON, || *bed.view() == ImageView::default()).await
}

async fn over_the_rate(bed: Bed) -> Outcome {
    bed.runtime.registry_has_all(Pull::Succeeds(seconds(0.0)));
    let images: Vec<String> = (0..60).map(|n| bed.image(&format!("i{n}"))).collect();
    let answers = futures::future::try_join_all(images.iter().map(|image| bed.ask(bed.wants("a", image)))).await?;
    let over: Vec<_> = images.iter().zip(&answers).filter_map(|(i, a)| Some((i, a.as_ref().err()?))).collect();
    let had = answers.len() - over.len();
    demand((10..60).contains(&had), || format!("of 60 pulls at once {had} went well"))?;
    for (image, failure) in over {
        let told = (failure.reason.as_str(), failure.message.as_str());
        demand(told == ("ErrImagePull", "pull QPS exceeded"), || format!("{image}: {told:?}"))?;
        bed.was_pulled(image, 0)?;
        bed.refused(bed.wants("a", image), "ImagePullBackOff").await?;
    }
    Ok(())
}
