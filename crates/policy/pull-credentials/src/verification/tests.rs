//! Rows of pod-lifecycle 5.4.

use std::collections::BTreeMap;

use model::Timestamp;

use super::{Decision, Policy, Trace, decide};
use crate::docker_config::Auth;
use crate::keyring::{Credential, Source};
use crate::records::{Access, PullRecord, access_by};

const REPO: &str = "quay.io/team/app";

/// Enough of the rules for these tests; the real ones are tested where they stand.
fn repository(image: &str) -> Result<String, String> {
    if image.contains(char::is_uppercase) {
        return Err("must be lowercase".to_owned());
    }
    let name = image.split(':').next().unwrap_or(image);
    Ok(if name.contains('/') { name.to_owned() } else { format!("docker.io/library/{name}") })
}

fn by_secret(uid: &str, password: &str) -> Credential {
    let source = Source::Secret { uid: uid.into(), namespace: "ns".into(), name: "s".into() };
    Credential { auth: Auth { password: password.into(), ..Auth::default() }, source }
}

fn by_account(uid: &str) -> Credential {
    let source = Source::ServiceAccount { uid: uid.into(), namespace: "ns".into(), name: "sa".into() };
    Credential { auth: Auth::default(), source }
}

fn trace(repository: &str, access: Access) -> Trace {
    let access = BTreeMap::from([(repository.to_owned(), access)]);
    Trace::Record(PullRecord { updated: Timestamp::ZERO, image_ref: "r".into(), access })
}

#[test]
fn policies_table() {
    let list = ["quay.io/team/*".to_owned(), "docker.io/library/busybox".to_owned()];
    let allow = |word: &str| Policy::parse(word, &list, repository).unwrap();
    for (word, repository, preloaded, pulled_here) in [
        ("NeverVerify", REPO, false, false),
        ("NeverVerifyPreloadedImages", REPO, false, true),
        ("", REPO, false, true),
        ("AlwaysVerify", REPO, true, true),
        ("NeverVerifyAllowlistedImages", REPO, false, false),
        ("NeverVerifyAllowlistedImages", "docker.io/library/busybox", false, false),
        ("NeverVerifyAllowlistedImages", "docker.io/library/busybox2", true, true),
        ("NeverVerifyAllowlistedImages", "quay.io/other", true, true),
    ] {
        let policy = allow(word);
        let got = (policy.verifies(repository, false), policy.verifies(repository, true));
        assert_eq!(got, (preloaded, pulled_here), "{word} {repository}");
    }
}

#[test]
fn policies_that_are_refused() {
    for (word, pattern, error) in [
        ("Sometimes", "", "unknown image pull credential verification policy: Sometimes"),
        ("NeverVerifyAllowlistedImages", " a", "leading/trailing spaces are not allowed:  a"),
        ("NeverVerifyAllowlistedImages", "", "the supplied pattern is too short: "),
        (
            "NeverVerifyAllowlistedImages",
            "*",
            "not a valid wildcard pattern, only patterns ending with '/*' are allowed: *",
        ),
        (
            "NeverVerifyAllowlistedImages",
            "a/*/b",
            "not a valid wildcard pattern, only patterns ending with '/*' are allowed: a/*/b",
        ),
        ("NeverVerifyAllowlistedImages", "/*", "at least registry hostname is required"),
        (
            "NeverVerifyAllowlistedImages",
            "quay.io/a:1",
            "neither tag nor digest is accepted in an image reference: quay.io/a:1",
        ),
        (
            "NeverVerifyAllowlistedImages",
            "busybox",
            "neither tag nor digest is accepted in an image reference: busybox",
        ),
        ("NeverVerifyAllowlistedImages", "quay.io/A", "failed to parse as an image name: must be lowercase"),
    ] {
        let e = Policy::parse(word, &[pattern.to_owned()], repository).unwrap_err();
        assert_eq!(e.to_string(), error, "{pattern:?}");
    }
}

#[test]
fn decisions_table() {
    let (mine, same_name, same_hash) = (by_secret("1", "p"), by_secret("1", "new"), by_secret("2", "p"));
    let of = |c: &Credential| trace(REPO, access_by(Some(c)));
    let none: Vec<Credential> = Vec::new();
    let update = |c: &Credential| Decision::Use(Some(access_by(Some(c))));
    for (name, trace, credentials, expected) in [
        ("never pulled here", Trace::None, none.clone(), Decision::Use(None)),
        ("a pull was begun", Trace::Intent, vec![mine.clone()], Decision::Pull),
        ("files broken", Trace::Unreadable, vec![mine.clone()], Decision::Pull),
        ("open to all", of(&Credential { source: Source::Node, ..mine.clone() }), none.clone(), Decision::Use(None)),
        ("record of another repository", trace("quay.io/x", access_by(None)), none.clone(), Decision::Pull),
        ("open to nobody", trace(REPO, Access::default()), vec![mine.clone()], Decision::Pull),
        ("no credentials", of(&mine), none, Decision::Pull),
        ("the same secret", of(&mine), vec![mine.clone()], Decision::Use(None)),
        ("a secret with a new password", of(&mine), vec![same_name.clone()], update(&same_name)),
        ("another secret with the same password", of(&mine), vec![same_hash.clone()], update(&same_hash)),
        ("another secret", of(&mine), vec![by_secret("2", "q")], Decision::Pull),
        ("a second one fits", of(&mine), vec![by_secret("2", "q"), mine.clone()], Decision::Use(None)),
        (
            "credentials of the node",
            of(&mine),
            vec![Credential { source: Source::Node, ..mine.clone() }],
            Decision::Pull,
        ),
        ("the same account", of(&by_account("1")), vec![by_account("1")], Decision::Use(None)),
        ("another account", of(&by_account("1")), vec![by_account("2")], Decision::Pull),
    ] {
        let got = decide(&Policy::default(), REPO, &trace, &credentials);
        assert_eq!(got, expected, "{name}");
    }
    let never = decide(&Policy::NeverVerify, REPO, &of(&mine), &[]);
    assert_eq!(never, Decision::Use(None));
    assert_eq!(decide(&Policy::AlwaysVerify, REPO, &Trace::None, &[]), Decision::Pull);
}

#[test]
fn full_records_grow_no_further() {
    let mut access = Access::default();
    for i in 0..100 {
        access.kubernetes_secrets.extend(access_by(Some(&by_secret(&i.to_string(), "p"))).kubernetes_secrets);
    }
    let got = decide(&Policy::default(), REPO, &trace(REPO, access), &[by_secret("100", "p")]);
    assert_eq!(got, Decision::Use(None));
}
