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
fn containers_outlive_a_killed_runtime() {
    let mut bed = TestBed::start(Options::default()).expect("a bed");
    wait(async {
        let id = cri(&bed).start_pause_pod("raw", BUSYBOX_IMAGES[0], &["sleep", "1000"]).await.expect("starts").1;
        bed.kill_runtime();
        bed.start_runtime().expect("comes back");
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

#[test]
fn host_ports_are_served_and_leave_no_rule_behind() {
    let bed = TestBed::start(Options::default()).expect("a bed");
    let rules = || {
        let list = std::process::Command::new("iptables").args(["-w", "-t", "nat", "-S"]).output().expect("iptables");
        String::from_utf8_lossy(&list.stdout).into_owned()
    };
    let network = format!("bosun-{}", bed.id());
    wait(async {
        let cri = cri(&bed).host_port(31_947, 80);
        let serve = "while :; do echo -e 'HTTP/1.0 200 OK\\r\\n\\r\\nhello' | nc -l -p 80; done";
        cri.start_pause_pod("served", BUSYBOX_IMAGES[0], &["sh", "-c", serve]).await.expect("starts");
    });
    let chain = rules().lines().find(|r| r.contains(&network)).expect("a rule of our network").to_owned();
    let chain = chain.rsplit(' ').next().expect("the chain it jumps to").to_owned();
    let address = format!("{}:31947", bed.node_ip());
    let ask = || testbed::http_get(&address).map_err(|e| e.to_string());
    let answer = testbed::wait_until("the host port to answer", crate::node::SOON, ask);
    assert!(answer.expect("an answer").contains("hello"));
    assert_eq!(bed.close(), Vec::<String>::new());
    let left = rules();
    assert!(!left.contains(&network) && !left.contains(&chain), "{left}");
}
