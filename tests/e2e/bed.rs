//! The bed itself, without bosun: what the other tests stand on.

use testbed::{BUSYBOX_IMAGES, Cri, Image, Login, Options, Registry, TestBed};

use crate::node::block as wait;

fn cri(bed: &TestBed) -> Cri {
    Cri::new(&bed.socket(), bed.cgroup_root(), &bed.dir().join("logs"))
}

#[test]
fn a_pod_starts_by_three_raw_calls_and_nothing_is_left_afterwards() {
    let bed = TestBed::start(Options::default()).expect("a bed");
    let (dir, cgroup) = (bed.dir().to_owned(), bed.cgroup_root().to_owned());
    wait(async {
        let cri = cri(&bed);
        let (_, container) = cri.start_pause_pod("raw", BUSYBOX_IMAGES[0], &["sleep", "1000"]).await.expect("starts");
        let status = cri.container_status(&container).await.expect("status").expect("exists");
        assert_eq!(status.state, 1, "CONTAINER_RUNNING: {status:?}");
    });
    assert_eq!(bed.close(), Vec::<String>::new());
    assert!(!dir.exists());
    for controller in std::fs::read_dir("/sys/fs/cgroup").expect("cgroups").flatten() {
        assert!(!controller.path().join(&cgroup[1..]).exists(), "{}", controller.path().display());
    }
}

#[test]
fn containers_outlive_a_killed_containerd() {
    let mut bed = TestBed::start(Options::default()).expect("a bed");
    wait(async {
        let id = cri(&bed).start_pause_pod("raw", BUSYBOX_IMAGES[0], &["sleep", "1000"]).await.expect("starts").1;
        bed.kill_containerd();
        bed.start_containerd().expect("comes back");
        let status = cri(&bed).container_status(&id).await.expect("status").expect("exists");
        assert_eq!(status.state, 1, "CONTAINER_RUNNING: {status:?}");
    });
}

#[test]
fn registries_serve_what_was_pushed_and_ask_for_passwords() {
    let mut bed = TestBed::start(Options::default()).expect("a bed");
    let open = Registry::start(&mut bed, "open.example", Login::Open).expect("an open registry");
    let closed = Registry::start(&mut bed, "closed.example", Login::Password).expect("a closed registry");
    let image = Image::busybox("app:1").expect("an image");
    open.push(&image, "app:1").expect("pushed");
    closed.push(&image, "app:1").expect("pushed with the password");
    wait(async {
        let cri = cri(&bed);
        cri.pull("open.example/app:1", None).await.expect("anyone may pull");
        let missing = cri.pull("open.example/app:2", None).await.expect_err("no such tag");
        assert!(missing.message().contains("not found"), "{missing}");
        let denied = cri.pull("closed.example/app:1", None).await.expect_err("no password");
        assert!(denied.message().contains("auth"), "{denied}");
        let login = Some((Registry::USER, Registry::PASSWORD));
        cri.pull("closed.example/app:1", login).await.expect("with the password");
    });
}
