use super::*;

#[test]
fn every_family_is_well_formed_and_has_a_name_of_its_own() {
    declare();
    for (families, least) in [(&*MAIN, 60), (&*PROBES, 2), (&*SLIS, 2)] {
        let all = families.declared();
        assert!(all.len() >= least, "{}", all.len());
        for pair in all.windows(2) {
            assert_ne!(pair[0].name, pair[1].name);
        }
    }
}

#[test]
fn a_family_without_labels_shows_before_it_is_counted_and_one_with_labels_does_not() {
    declare();
    let names: Vec<String> = MAIN.gather().iter().map(|f| f.name().to_owned()).collect();
    assert!(names.iter().any(|n| n == "kubelet_pleg_discard_events"), "{names:?}");
    assert!(!names.iter().any(|n| n == "kubelet_credential_provider_plugin_duration"), "{names:?}");
}

#[test]
fn help_tells_the_stability_of_kubernetes_names_only() {
    declare();
    for family in MAIN.declared() {
        assert_eq!(family.help.starts_with('['), !family.name.starts_with("bosun_"), "{}", family.name);
    }
}

#[test]
fn runtime_buckets_grow_by_two_and_a_half() {
    let all = buckets::runtime();
    assert_eq!(all.len(), 14);
    assert_eq!(all[..3], [0.005, 0.0125, 0.03125]);
    assert!((all[13] - 745.058_059_692_382_8).abs() < 1e-9, "{}", all[13]);
}

#[test]
fn sizes_of_images_fall_into_the_bucket_whose_lower_bound_they_exceed() {
    const MB: u64 = 1024 * 1024;
    for (bytes, bucket) in [
        (0, ""),
        (1, "0-10MB"),
        (10 * MB, "0-10MB"),
        (10 * MB + 1, "10MB-100MB"),
        (100 * MB, "10MB-100MB"),
        (500 * MB + 1, "500MB-1GB"),
        (1024 * MB + 1, "1GB-5GB"),
        (101 * 1024 * MB, "GT100GB"),
    ] {
        assert_eq!(images::size_bucket(bytes), bucket, "{bytes}");
    }
}

#[test]
fn reasons_of_refusal_are_a_closed_set() {
    assert_eq!(pods::rejection_reason("OutOfcpu"), "OutOfcpu");
    assert_eq!(pods::rejection_reason("OutOfexample.com/gpu"), "Other");
}
