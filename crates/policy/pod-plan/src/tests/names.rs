use super::world::World;
use crate::hash::{container_hash, hash_annotation};
use crate::logs::{container_log_dir, log_path, next_restart_count, pod_log_dir, symlink_name};

#[test]
fn container_hash_equals_a_go_kubelets_4_7() {
    assert_eq!(container_hash("test_container", "foo/image:v1"), 0x8e45_cbd0);
}

#[test]
fn container_hash_equals_what_kubelet_1_36_2_wrote() {
    let busybox = "registry.k8s.io/e2e-test-images/busybox:1.36.1-1";
    let rows = [
        ("app", busybox, "93722c2f"),
        ("i1", busybox, "4dffe42c"),
        ("side", busybox, "a5fb30e3"),
        ("two", busybox, "107ed5a5"),
        ("app", "registry.k8s.io/pause:3.10", "ed432b69"),
        ("http", "registry.k8s.io/e2e-test-images/agnhost:2.53", "c6de80cf"),
    ];
    for (name, image, want) in rows {
        assert_eq!(format!("{:x}", container_hash(name, image)), want, "{name} {image}");
    }
}

#[test]
fn container_hash_covers_name_and_image_only() {
    let hash = |w: World| hash_annotation(&w.container("m").1);
    let base = World::new("Always").regular("m");
    assert_eq!(hash(base.clone()), hash(base.clone().with("m", |c| c.command = Some(vec!["x".into()]))));
    assert_ne!(hash(base.clone()), hash(base.with("m", |c| c.image = Some("img:2".into()))));
}

#[test]
fn log_names_5_2() {
    let w = World::new("Always").regular("m");
    assert_eq!(pod_log_dir("/var/log/pods", &w.pod), "/var/log/pods/ns_web_u1");
    assert_eq!(pod_log_dir("/var/log/pods/", &w.pod), "/var/log/pods/ns_web_u1");
    assert_eq!(container_log_dir("/var/log/pods", &w.pod, "m"), "/var/log/pods/ns_web_u1/m");
    assert_eq!(log_path("m", 3), "m/3.log");
    assert_eq!(symlink_name(&w.pod, "m", "abc"), "web_ns_m-abc.log");
}

#[test]
fn symlink_names_fit_a_file_system() {
    let long = |n: usize| World::new("Always").then(|w| w.pod.metadata.name = Some("p".repeat(n)));
    for n in [100, 243, 244, 245, 253] {
        let name = symlink_name(&long(n).pod, "m", "abc");
        assert!(name.len() <= 255 && name.ends_with(".log"), "{n}: {}", name.len());
        assert_eq!(name.len(), (n + "_ns_m-abc.log".len()).min(255));
    }
    let accents = World::new("Always").then(|w| w.pod.metadata.name = Some("é".repeat(200)));
    assert!(symlink_name(&accents.pod, "m", "abc").len() <= 255);
}

#[test]
fn restart_count_from_log_names_5_1() {
    let rows: [(&str, &[&str], u32); 8] = [
        ("empty directory", &[], 0),
        ("edge 68: 3.log is the last", &["0.log", "3.log", "1.log"], 4),
        ("rotated files count", &["0.log", "5.log.20240101-000000.gz"], 6),
        ("ten is more than nine", &["9.log", "10.log"], 11),
        ("foreign files do not count", &["x.log", "7.txt", ".log", "-1.log", "3"], 0),
        ("numbers must be whole", &["1a.log", " 2.log", "+3.log"], 0),
        ("a number too large is passed over", &["99999999999999999999.log", "2.log"], 3),
        ("the largest number stays", &["4294967295.log"], u32::MAX),
    ];
    for (name, files, want) in rows {
        assert_eq!(next_restart_count(files), want, "{name}");
    }
}
