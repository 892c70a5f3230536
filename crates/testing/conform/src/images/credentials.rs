//! With which credentials a pull is tried, and who may use what they opened.

use std::sync::Arc;

use contract::ImageManager;
use fakes::pull_secret as secret;
use fakes::runtime::Pull;
use model::core::Secret;
use serde_json::json;

use super::bed::{Bed, case, pass, seconds};
use crate::case::Case;
use crate::outcome::{Outcome, demand};

pub(super) fn cases() -> Vec<Case<ImageManager>> {
    [tried(), opened()].into_iter().flatten().collect()
}

fn tried() -> Vec<Case<ImageManager>> {
    vec![
        case(
            "secret-opens",
            "pod-lifecycle 5.3",
            "a pull is tried with the pod's pull secret for that registry",
            secret_opens,
        )
        .core(),
        case(
            "secret-of-another-registry",
            "pod-lifecycle 5.3",
            "what a secret says of another registry or another path is never sent",
            secret_of_another_registry,
        )
        .core(),
        case("specific-first", "pod-lifecycle 5.3", "credentials of a longer path are tried first", specific_first),
        case(
            "next-is-tried",
            "pod-lifecycle 5.3",
            "where one credential does not open, the next one is tried",
            next_is_tried,
        )
        .core(),
        case(
            "wildcard",
            "pod-lifecycle 5.3",
            "a star stands for one label of a registry's name, and for no more",
            wildcard,
        ),
        case(
            "dockercfg",
            "pod-lifecycle 5.3",
            "secrets of the older type kubernetes.io/dockercfg count too",
            dockercfg,
        ),
        case("other-types", "pod-lifecycle 5.3", "secrets of other types are passed over", other_types),
        case(
            "broken-secret",
            "pod-lifecycle 5.3",
            "a secret that cannot be read is ErrImagePull, and nothing is pulled",
            broken_secret,
        ),
        case("all-fail", "pod-lifecycle 5.3", "where none opens, the failure tells of each", all_fail),
        case(
            "passwords-are-not-told",
            "contract",
            "no answer and no event has a password in it",
            passwords_are_not_told,
        )
        .core(),
        case(
            "own-credentials-of-the-node",
            "pod-lifecycle 5.3",
            "the node's config.json is tried after the pod's secrets",
            nodes_own_credentials,
        )
        .inside(),
    ]
}

fn opened() -> Vec<Case<ImageManager>> {
    vec![
        case(
            "closed-to-strangers",
            "pod-lifecycle 5.4",
            "what a secret opened a pod without it has to pull itself",
            closed_to_strangers,
        )
        .core(),
        case(
            "closed-as-if-absent",
            "pod-lifecycle 5.3",
            "with Never a stranger reads the same as of an absent image",
            closed_as_if_absent,
        )
        .core(),
        case(
            "owner-need-not-pull",
            "pod-lifecycle 5.4",
            "a pod with the secret uses the image without a pull",
            owner_need_not_pull,
        ),
        case(
            "same-credential",
            "pod-lifecycle 5.4",
            "another secret with the same credential opens it too",
            same_credential,
        ),
        case(
            "renewed-secret",
            "pod-lifecycle 5.4",
            "a secret that opened it does so with another password, too",
            renewed_secret,
        ),
        case(
            "opened-for-all",
            "pod-lifecycle 5.4",
            "an image that was pulled without credentials is open to all",
            opened_for_all,
        )
        .core(),
        case("preloaded", "pod-lifecycle 5.4", "an image that this node never pulled is open to all", preloaded),
        case(
            "nobody-joins-a-secret",
            "pod-lifecycle 5.4",
            "a stranger who asks while it is pulled with a secret does not get it",
            nobody_joins_a_secret,
        )
        .core(),
        case(
            "removed-is-forgotten",
            "node-and-resources 4.1",
            "who may use an image is forgotten with the image",
            removed_is_forgotten,
        )
        .inside(),
        case(
            "unreadable-records",
            "pod-lifecycle 5.4",
            "records that cannot be read are no way in",
            unreadable_records,
        )
        .inside(),
    ]
}

async fn secret_opens(bed: Bed) -> Outcome {
    let image = bed.image("app");
    bed.private(&image, "u");
    bed.got(bed.wants_with("a", &image, &[secret("s", "r.io", "u")])).await?;
    bed.was_tried_as(&image, &["u"])
}

async fn secret_of_another_registry(bed: Bed) -> Outcome {
    let image = bed.image("app");
    let others = ["q.io", "r.io.evil", "io", "r.io/other", "r.io:5000"].map(|r| secret("s", r, "u"));
    bed.got(bed.wants_with("a", &image, &others)).await?;
    bed.was_tried_as(&image, &["-"])
}

async fn specific_first(bed: Bed) -> Outcome {
    let image = bed.image("app");
    bed.private(&image, "path");
    let secrets = [secret("host", "r.io", "host"), secret("path", &bed.repository("app"), "path")];
    bed.got(bed.wants_with("a", &image, &secrets)).await?;
    bed.was_tried_as(&image, &["path"])
}

async fn next_is_tried(bed: Bed) -> Outcome {
    let image = bed.image("app");
    bed.private(&image, "host");
    let secrets = [secret("host", "r.io", "host"), secret("path", &bed.repository("app"), "path")];
    bed.got(bed.wants_with("a", &image, &secrets)).await?;
    bed.was_tried_as(&image, &["path", "host"])
}

async fn wildcard(bed: Bed) -> Outcome {
    for (pattern, host, user) in [("*.r.io", "a.r.io", "u"), ("*.r.io", "a.b.r.io", "-"), ("*.r.io", "r.io", "-")] {
        let image = format!("{host}/{}:1", bed.stage.uid("app"));
        bed.got(bed.wants_with("a", &image, &[secret("s", pattern, "u")])).await?;
        let tried = bed.tried(&image);
        demand(tried == [user], || format!("{image} was tried as {tried:?} with a secret for {pattern}"))?;
    }
    Ok(())
}

/// A secret of this type with this one key.
fn typed(type_: &str, key: &str, content: &str) -> Arc<Secret> {
    let mut secret = (*secret("s", "r.io", "u")).clone();
    secret.type_ = Some(type_.to_owned());
    let bytes = model::k8s_openapi::ByteString(content.as_bytes().to_vec());
    secret.data = Some([(key.to_owned(), bytes)].into());
    Arc::new(secret)
}

async fn dockercfg(bed: Bed) -> Outcome {
    let image = bed.image("app");
    bed.private(&image, "u");
    let content = json!({"r.io": {"username": "u", "password": "p"}}).to_string();
    let secret = typed("kubernetes.io/dockercfg", ".dockercfg", &content);
    bed.got(bed.wants_with("a", &image, &[secret])).await.map(drop)
}

async fn other_types(bed: Bed) -> Outcome {
    let image = bed.image("app");
    let content = json!({"auths": {"r.io": {"username": "u", "password": "p"}}}).to_string();
    bed.got(bed.wants_with("a", &image, &[typed("Opaque", ".dockerconfigjson", &content)])).await?;
    bed.was_tried_as(&image, &["-"])
}

async fn broken_secret(bed: Bed) -> Outcome {
    let image = bed.image("app");
    let broken = typed("kubernetes.io/dockerconfigjson", ".dockerconfigjson", "not json");
    bed.refused(bed.wants_with("a", &image, &[broken]), "ErrImagePull").await?;
    bed.was_pulled(&image, 0)
}

/// A pull that both of these users fail at.
async fn denied(bed: &Bed) -> Outcome<String> {
    let image = bed.image("app");
    bed.private(&image, "nobody");
    let secrets = [secret("one", &bed.repository("app"), "first"), secret("two", "r.io", "second")];
    Ok(bed.refused(bed.wants_with("a", &image, &secrets), "ErrImagePull").await?.message)
}

async fn all_fail(bed: Bed) -> Outcome {
    let text = denied(&bed).await?;
    // The runtime names the user.
    demand(["\"first\"", "\"second\""].iter().all(|user| text.contains(user)), || format!("the pod is told {text:?}"))
}

async fn passwords_are_not_told(bed: Bed) -> Outcome {
    let image = bed.image("app");
    bed.private(&image, "nobody");
    let password = "hunter2";
    let content = json!({"auths": {"r.io": {"username": "u", "password": password}}}).to_string();
    let broken = format!("{content} and more");
    let mut told = Vec::new();
    for (pod, content) in [("a", &content), ("b", &broken)] {
        let secret = typed("kubernetes.io/dockerconfigjson", ".dockerconfigjson", content);
        told.push(bed.refused(bed.wants_with(pod, &image, &[secret]), "ErrImagePull").await?.message);
    }
    pass(0.5).await;
    told.extend(bed.all_told());
    let leak = told.iter().find(|text| text.contains(password));
    demand(leak.is_none(), || format!("it is told in {leak:?}"))
}

async fn nodes_own_credentials(bed: Bed) -> Outcome {
    let image = bed.image("app");
    let config = json!({"auths": {"r.io": {"username": "node", "password": "p"}}});
    bed.write("config.json", &config.to_string());
    bed.private(&image, "node");
    bed.got(bed.wants_with("a", &image, &[secret("s", "r.io", "pod")])).await?;
    bed.was_tried_as(&image, &["pod", "node"])?;
    // Every pod of the node has them.
    bed.got(bed.want(&bed.pod("other"), &image, "Never")).await.map(drop)
}

impl Bed {
    /// An image that the pod `owner` pulled with its secret `s`.
    pub(super) async fn locked(&self, word: &str) -> Outcome<String> {
        let image = self.image(word);
        self.private(&image, "u");
        self.got(self.wants_with("owner", &image, &[secret("s", "r.io", "u")])).await?;
        Ok(image)
    }

    /// A pod without secrets may not use it, though the runtime has it.
    pub(super) async fn is_locked(&self, image: &str) -> Outcome {
        demand(self.runtime.has_image(image), || "the image is gone".to_owned())?;
        self.refused(self.want(&self.pod("stranger"), image, "Never"), "ErrImageNeverPull").await.map(drop)
    }
}

async fn closed_to_strangers(bed: Bed) -> Outcome {
    let image = bed.locked("app").await?;
    bed.refused(bed.wants("stranger", &image), "ErrImagePull").await?;
    let wrong = [secret("other", "r.io", "somebody")];
    bed.refused(bed.wants_with("third", &image, &wrong), "ErrImagePull").await?;
    bed.was_tried_as(&image, &["u", "-", "somebody"])
}

async fn closed_as_if_absent(bed: Bed) -> Outcome {
    let (image, absent) = (bed.locked("app").await?, bed.image("absent"));
    let read = async |image: &str| {
        let never = bed.want(&bed.pod("stranger"), image, "Never");
        let refused = bed.refused(never, "ErrImageNeverPull").await?;
        Ok(refused.message.replace(image, "X"))
    };
    let (locked, absent) = (read(&image).await?, read(&absent).await?);
    demand(locked == absent, || format!("{locked:?} is not {absent:?}"))
}

async fn owner_need_not_pull(bed: Bed) -> Outcome {
    let image = bed.locked("app").await?;
    bed.got(bed.wants_with("owner", &image, &[secret("s", "r.io", "u")])).await?;
    bed.got(bed.wants_with("sibling", &image, &[secret("s", "r.io", "u")])).await?;
    bed.was_pulled(&image, 1)
}

async fn same_credential(bed: Bed) -> Outcome {
    let image = bed.locked("app").await?;
    bed.got(bed.wants_with("b", &image, &[secret("other", "r.io", "u")])).await?;
    bed.was_pulled(&image, 1)
}

async fn renewed_secret(bed: Bed) -> Outcome {
    let image = bed.locked("app").await?;
    bed.got(bed.wants_with("owner", &image, &[secret("s", "r.io", "renamed")])).await?;
    bed.was_pulled(&image, 1)
}

async fn opened_for_all(bed: Bed) -> Outcome {
    let image = bed.image("app");
    bed.got(bed.wants("a", &image)).await?;
    bed.private(&image, "u");
    bed.got(bed.want(&bed.pod("b"), &image, "Never")).await.map(drop)
}

async fn preloaded(bed: Bed) -> Outcome {
    let image = bed.image("app");
    bed.has(&image);
    bed.private(&image, "u");
    bed.got(bed.want(&bed.pod("a"), &image, "Never")).await?;
    bed.got(bed.wants("b", &image)).await?;
    bed.was_pulled(&image, 0)
}

async fn nobody_joins_a_secret(bed: Bed) -> Outcome {
    let image = bed.image("app");
    bed.pulls_so(&image, Pull::NeedsAuth(seconds(1.0), "u".to_owned(), "p".to_owned()));
    let secrets = [secret("s", "r.io", "u")];
    let owner = bed.got(bed.wants_with("owner", &image, &secrets));
    let stranger = async {
        bed.is_being_pulled(&image).await?;
        bed.refused(bed.wants("stranger", &image), "ErrImagePull").await
    };
    futures::future::try_join(owner, stranger).await.map(drop)
}

async fn removed_is_forgotten(bed: Bed) -> Outcome {
    let image = bed.locked("app").await?;
    // The manager sees it unused, then it is old, and no pod is still to come for it.
    pass(1300.0).await;
    bed.frees().await?;
    demand(!bed.runtime.has_image(&image), || "the image is still there".to_owned())?;
    bed.has(&image);
    bed.got(bed.want(&bed.pod("stranger"), &image, "Never")).await.map(drop)
}

async fn unreadable_records(bed: Bed) -> Outcome {
    let image = bed.locked("app").await?;
    bed.damage("image_manager/pulled")?;
    bed.is_locked(&image).await?;
    bed.refused(bed.wants("stranger", &image), "ErrImagePull").await.map(drop)
}
