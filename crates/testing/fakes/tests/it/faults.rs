use std::time::Duration;

use cri_client::Deadlines;
use fakes::FakeRuntime;
use fakes::runtime::{Fault, FaultKind, Features};
use model::node::CgroupDriver;
use ports::runtime::{ContainerRuntime, RuntimeCode, RuntimeError};
use tokio::time::{Instant, sleep};
use tonic::Code;

use super::{WAYS, create, pod, pod_by, run_sandbox, secs, start, status};

#[tokio::test(start_paused = true)]
async fn injected_errors_hit_the_calls_they_are_meant_for() {
    let p = pod().await;
    let c = &*p.client;
    p.fake.inject(Fault::error("CreateContainer", Code::Internal, "boom").matching("web/two").after(1).times(1));
    create(c, &p.sandbox, "one", 0).await.unwrap();
    create(c, &p.sandbox, "two", 0).await.unwrap();
    let e = create(c, &p.sandbox, "two", 1).await.unwrap_err();
    assert_eq!(e, RuntimeError::new(RuntimeCode::Internal, "boom"));
    create(c, &p.sandbox, "two", 1).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_hung_call_ends_with_its_own_deadline_and_stalls_no_other() {
    for way in WAYS {
        let p = pod_by(way).await;
        p.fake.inject(Fault::hang("StartContainer").times(1));
        let before = Instant::now();
        let (hung, other) = tokio::join!(start(&*p.client, &p.app), async {
            sleep(secs(1)).await;
            status(&*p.client, &p.app).await.unwrap();
            before.elapsed()
        });
        assert_eq!(hung.unwrap_err().code, RuntimeCode::DeadlineExceeded);
        assert_eq!(before.elapsed(), secs(120));
        assert_eq!(other, secs(1));
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_held_up_goes_on_when_the_faults_end() {
    let p = pod().await;
    p.fake.inject(Fault::hold("StartContainer"));
    let before = Instant::now();
    let (started, ()) = tokio::join!(start(&*p.client, &p.app), async {
        sleep(secs(7)).await;
        p.fake.clear_faults();
    });
    started.unwrap();
    assert_eq!(before.elapsed(), secs(7));
}

#[tokio::test(start_paused = true)]
async fn a_sandbox_may_take_three_minutes_but_not_five() {
    let p = pod().await;
    p.fake.inject(Fault::delay("RunPodSandbox", secs(180)).times(1));
    run_sandbox(&*p.client, "slow", 0).await.unwrap();
    p.fake.inject(Fault::delay("RunPodSandbox", secs(300)).times(1));
    let before = Instant::now();
    assert_eq!(run_sandbox(&*p.client, "slower", 0).await.unwrap_err().code, RuntimeCode::DeadlineExceeded);
    assert_eq!(before.elapsed(), secs(240));
}

#[tokio::test(start_paused = true)]
async fn late_success_happens_behind_the_callers_back() {
    let p = pod().await;
    p.fake.inject(Fault::new("CreateContainer", FaultKind::Late(secs(150))).times(1));
    assert_eq!(create(&*p.client, &p.sandbox, "late", 0).await.unwrap_err().code, RuntimeCode::DeadlineExceeded);
    assert!(p.fake.container("web", "late").is_none());
    sleep(secs(60)).await;
    assert!(p.fake.container("web", "late").is_some());
    p.fake.inject(Fault::new("CreateContainer", FaultKind::ErrorAfter(Code::Unknown, "lost".to_owned())).times(1));
    assert_eq!(create(&*p.client, &p.sandbox, "lost", 0).await.unwrap_err().message, "lost");
    assert!(p.fake.container("web", "lost").is_some());
}

#[tokio::test(start_paused = true)]
async fn a_runtime_that_goes_away_is_unavailable_at_once_and_found_again() {
    for way in WAYS {
        let p = pod_by(way).await;
        p.fake.inject(Fault::hang("StartContainer").times(1));
        let (cut, ()) = tokio::join!(start(&*p.client, &p.app), async {
            sleep(secs(5)).await;
            p.fake.down();
        });
        assert!(cut.unwrap_err().is_unavailable(), "calls under way end when the connection breaks");
        let before = Instant::now();
        for _ in 0..100 {
            assert!(p.client.version().await.unwrap_err().is_unavailable());
        }
        assert!(before.elapsed() < Duration::from_millis(1), "no waiting while it is away");
        p.fake.up();
        sleep(secs(4)).await;
        start(&*p.client, &p.app).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn the_handshake_takes_what_the_book_says() {
    let old = FakeRuntime::default().cri_client(Deadlines::default());
    let h = old.handshake().await.unwrap();
    assert_eq!((h.runtime_name.as_str(), h.runtime_version.as_str(), h.cgroup_driver), ("fake", "1.0.0", None));
    let new = FakeRuntime::new(Features::containerd_2()).cri_client(Deadlines::default());
    assert_eq!(new.handshake().await.unwrap().cgroup_driver, Some(CgroupDriver::Cgroupfs));
}

#[tokio::test(start_paused = true)]
async fn the_handshake_says_which_half_failed_and_where() {
    let rows = [
        ("Version", "validate CRI v1 runtime API for endpoint \"fake\": rpc error: code = Internal desc = boom"),
        ("ImageFsInfo", "validate CRI v1 image API for endpoint \"fake\": rpc error: code = Internal desc = boom"),
        ("RuntimeConfig", "get runtime configuration: rpc error: code = Internal desc = boom"),
    ];
    for (rpc, want) in rows {
        let fake = FakeRuntime::default();
        fake.inject(Fault::error(rpc, Code::Internal, "boom"));
        let e = fake.cri_client(Deadlines::default()).handshake().await.unwrap_err();
        assert_eq!(e.to_string(), want);
        assert_eq!(fake.count("RuntimeConfig"), if rpc == "RuntimeConfig" { 3 } else { 0 });
    }
}

#[tokio::test(start_paused = true)]
async fn a_missing_call_is_asked_for_once_per_connection() {
    for way in WAYS {
        let fake = FakeRuntime::default();
        let client = way(&fake);
        for _ in 0..3 {
            assert!(client.runtime_config().await.unwrap_err().is_unimplemented());
        }
        assert_eq!(fake.count("RuntimeConfig"), 1);
        fake.disconnect();
        sleep(secs(1)).await;
        client.version().await.unwrap();
        assert!(client.runtime_config().await.unwrap_err().is_unimplemented());
        assert_eq!(fake.count("RuntimeConfig"), 2, "a new connection may lead to a newer runtime");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_over_16_mib_is_resource_exhausted() {
    for way in WAYS {
        let p = pod_by(way).await;
        start(&*p.client, &p.app).await.unwrap();
        p.fake.on_exec(|_| fakes::runtime::ExecReply { stdout: vec![0; 17 << 20], ..Default::default() });
        let request =
            cri_api::v1::ExecSyncRequest { container_id: p.app.clone(), cmd: vec!["cat".to_owned()], timeout: 0 };
        let e = p.client.exec_sync(request).await.unwrap_err();
        assert_eq!(e.code, RuntimeCode::ResourceExhausted, "{e}");
    }
}

#[tokio::test(start_paused = true)]
async fn not_implemented_in_other_words_is_unimplemented() {
    let p = pod().await;
    p.fake.inject(Fault::error("UpdatePodSandboxResources", Code::Unknown, "not implemented yet"));
    let request =
        cri_api::v1::UpdatePodSandboxResourcesRequest { pod_sandbox_id: p.sandbox.clone(), ..Default::default() };
    assert!(p.client.update_pod_sandbox_resources(request).await.unwrap_err().is_unimplemented());
}

/// On the real clock: sockets know no other.
#[tokio::test]
async fn the_same_runtime_serves_a_unix_socket() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("cri.sock");
    let options = cri_client::Options {
        runtime: cri_client::Endpoint::parse(&format!("unix://{}", path.display())).unwrap(),
        images: None,
        deadlines: Deadlines::default(),
        seed: 1,
    };
    let client = cri_client::CriClient::new(&options);
    let absent = client.version().await.unwrap_err();
    assert!(absent.is_unavailable() && absent.message.contains("dial unix"), "{absent}");
    let fake = FakeRuntime::default();
    fake.serve_unix(&path).unwrap();
    while client.version().await.is_err() {
        tokio::task::yield_now().await;
    }
    assert_eq!(client.handshake().await.unwrap().runtime_name, "fake");
}
