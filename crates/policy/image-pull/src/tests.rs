use super::*;
use crate::reference::with_default_tag;

#[test]
fn policy_table() {
    for (policy, present, verdict) in [
        (PullPolicy::Always, true, Verdict::Pull),
        (PullPolicy::Always, false, Verdict::Pull),
        (PullPolicy::IfNotPresent, true, Verdict::Present),
        (PullPolicy::IfNotPresent, false, Verdict::Pull),
        (PullPolicy::Never, true, Verdict::Present),
        (PullPolicy::Never, false, Verdict::Refused),
    ] {
        assert_eq!(Verdict::of(policy, present), verdict, "{policy:?} {present}");
    }
    assert!(!PullPolicy::Always.inspects());
    assert!(PullPolicy::IfNotPresent.inspects());
    assert!(PullPolicy::Never.inspects());
    for (word, policy) in [("Always", PullPolicy::Always), ("Never", PullPolicy::Never), ("", PullPolicy::IfNotPresent)]
    {
        assert_eq!(PullPolicy::parse(word), policy);
    }
}

#[test]
fn failures_are_told_apart_by_their_prefix() {
    for (error, reason, message) in [
        (
            "rpc error: code = DeadlineExceeded desc = Deadline Exceeded",
            "ErrImagePull",
            "rpc error: code = DeadlineExceeded desc = Deadline Exceeded",
        ),
        ("pull QPS exceeded", "ErrImagePull", "pull QPS exceeded"),
        (
            "RegistryUnavailable: 503",
            "RegistryUnavailable",
            "image pull failed for img:1 because the registry is unavailable: 503",
        ),
        (
            "SignatureValidationFailed",
            "SignatureValidationFailed",
            "image pull failed for img:1 because the signature validation failed",
        ),
        ("oh: RegistryUnavailable", "ErrImagePull", "oh: RegistryUnavailable"),
    ] {
        assert_eq!(classify("img:1", error), PullFailure { reason, message: message.into() }, "{error}");
    }
}

#[test]
fn texts_are_those_of_a_kubelet_1_36() {
    let image = "registry.k8s.io/e2e-test-images/nope:1.0";
    let error = "ErrImagePull: rpc error: code = DeadlineExceeded desc = Deadline Exceeded";
    for (ours, theirs) in [
        (text::pulling(image), r#"Pulling image "registry.k8s.io/e2e-test-images/nope:1.0""#),
        (text::back_off(image), r#"Back-off pulling image "registry.k8s.io/e2e-test-images/nope:1.0""#),
        (
            text::back_off_waiting(image, Some(error)),
            r#"Back-off pulling image "registry.k8s.io/e2e-test-images/nope:1.0": ErrImagePull: rpc error: code = DeadlineExceeded desc = Deadline Exceeded"#,
        ),
        (text::back_off_waiting("a", None), r#"Back-off pulling image "a""#),
        (
            text::never_pull("registry.k8s.io/e2e-test-images/nope:2.0"),
            r#"Container image "registry.k8s.io/e2e-test-images/nope:2.0" is not present with pull policy of Never"#,
        ),
        (
            text::present("busybox:1"),
            r#"Container image "busybox:1" already present on machine and can be accessed by the pod"#,
        ),
        (
            text::pulled("a:1", "1.5s", "2s", 7),
            r#"Successfully pulled image "a:1" in 1.5s (2s including waiting). Image size: 7 bytes."#,
        ),
        (text::pull_failed("a", "e"), r#"Failed to pull image "a": e"#),
        (text::inspect_failed("a", "e"), r#"Failed to inspect image "a": e"#),
        (
            text::bad_name("A b", &with_default_tag("a b").unwrap_err()),
            r#"Failed to apply default image tag "A b": couldn't parse image name "A b": invalid reference format"#,
        ),
        (text::pulling("a\"\n\\\u{1}"), r#"Pulling image "a\"\n\\\x01""#),
    ] {
        assert_eq!(ours, theirs);
    }
}

#[test]
fn the_bucket_holds_the_burst_and_fills_at_the_rate() {
    let second = 1_000_000_000;
    let mut l = Limiter::new(5, 10);
    let start = 1_000 * second;
    let taken = |l: &mut Limiter, now| (0..100).filter(|_| l.try_accept(now)).count();
    assert_eq!(taken(&mut l, start), 10);
    assert_eq!(taken(&mut l, start + second / 5 - 1), 0);
    assert_eq!(taken(&mut l, start + second), 5);
    assert_eq!(taken(&mut l, start + 100 * second), 10);
    assert_eq!(taken(&mut l, start), 0, "a clock that goes back gives nothing");
    for qps in [0, -1] {
        assert_eq!(taken(&mut Limiter::new(qps, 1), start), 100);
    }
}
