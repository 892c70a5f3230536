use model::allocation::Amounts;
use pod_plan::ContainerResize;

use super::*;

fn shrink(name: &str, from: i64, to: i64) -> ContainerResize {
    let of = |memory_limit_bytes| Amounts { memory_limit_bytes, ..Amounts::default() };
    ContainerResize {
        id: format!("id-{name}").as_str().into(),
        name: name.to_owned(),
        wanted: of(to),
        actuated: of(from),
    }
}

fn used(limit: i64, pod: Option<u64>, children: &[(&str, Option<u64>)]) -> PodCgroupUse {
    PodCgroupUse {
        values: CgroupValues { memory_limit_bytes: Some(limit), ..CgroupValues::default() },
        memory_bytes: pod,
        children: children.iter().map(|(name, bytes)| (format!("cri-containerd-id-{name}.scope"), *bytes)).collect(),
    }
}

/// Edge 26.
#[test]
fn a_limit_below_what_is_used_is_refused() {
    let check = |list: Vec<ContainerResize>, wanted: Option<i64>, used: &PodCgroupUse| {
        let plan = Resize { memory: list, ..Resize::default() };
        let wanted = CgroupValues { memory_limit_bytes: wanted, ..CgroupValues::default() };
        limits_too_low(&plan, used, &wanted).err().unwrap_or_default()
    };
    let a = || vec![shrink("a", 200, 100)];
    let pod = "attempting to set pod memory limit (100) below current usage (100)";
    let one = "attempting to set container \"a\" memory limit (100) below current usage (150)";
    assert_eq!(check(a(), Some(100), &used(200, Some(99), &[("a", Some(99))])), "");
    assert_eq!(check(a(), Some(100), &used(200, Some(100), &[])), format!("cannot decrease memory limits: {pod}"));
    assert_eq!(
        check(a(), None, &used(200, None, &[("b", Some(999)), ("a", Some(150))])),
        format!("cannot decrease memory limits: {one}")
    );
    let both = format!("cannot decrease memory limits: [{pod}, {one}]");
    assert_eq!(check(a(), Some(100), &used(-1, Some(100), &[("a", Some(150))])), both, "a first limit takes as well");
    assert_eq!(check(a(), Some(100), &used(200, None, &[])), "cannot decrease memory limits: missing pod memory usage");
    let unknown = "cannot decrease memory limits: missing container \"a\" memory usage";
    assert_eq!(check(a(), Some(150), &used(200, Some(99), &[("a", None)])), unknown, "not taken for one that ended");
    let grows = || vec![shrink("a", 100, 200)];
    assert_eq!(check(grows(), Some(200), &used(100, Some(999), &[("a", Some(999))])), "");
    assert_eq!(check(Vec::new(), Some(100), &used(200, Some(999), &[])), "", "memory does not change");
    // One that does not run gave memory up: those that run may have it.
    let plan = Resize { pod: true, ..Resize::default() };
    let wanted = CgroupValues { memory_limit_bytes: Some(100), ..CgroupValues::default() };
    assert!(limits_too_low(&plan, &used(200, Some(150), &[]), &wanted).is_err());
    assert!(limits_too_low(&plan, &used(200, Some(99), &[]), &wanted).is_ok());
    assert!(limits_too_low(&plan, &used(100, Some(150), &[]), &wanted).is_ok(), "it has no more already");
}
