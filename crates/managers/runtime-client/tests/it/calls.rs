use contract::runtime::{CallErrorKind, RemoveContainer, RemovePodSandbox, StopPodSandbox};
use fakes::runtime::{ExecReply, Fault, FaultKind, Features, OnTerm, Program};
use futures::future::join_all;
use model::runtime::ContainerState;
use tokio::time::{Instant, sleep};
use tonic::Code;

use super::{rig, secs, uid};

#[test]
fn a_pods_life_through_the_handle() {
    rig(Features::containerd_1_6(), |r| async move {
        let (sandbox, app) = r.run("web").await;
        assert_eq!(r.exec("web", &app, secs(1)).await, Ok(0));
        r.stop("web", &app, 30).await.unwrap();
        let remove = RemoveContainer { uid: uid("web"), container: app };
        r.wiring.call(remove).await.unwrap();
        assert_eq!(r.observe("web", false).await.unwrap().containers.len(), 0);
        r.wiring.call(StopPodSandbox { uid: uid("web"), sandbox: sandbox.clone() }).await.unwrap();
        assert!(!r.observe("web", false).await.unwrap().sandboxes[0].ready);
        r.wiring.call(RemovePodSandbox { uid: uid("web"), sandbox }).await.unwrap();
        assert!(r.observe("web", false).await.unwrap().sandboxes.is_empty());
        assert!(r.row("web").is_none());
    });
}

#[test]
fn stopping_and_removing_what_is_gone_succeeds() {
    rig(Features::containerd_1_6(), |r| async move {
        r.stop("web", &"nope".into(), 1).await.unwrap();
        let container = "nope".into();
        r.wiring.call(RemoveContainer { uid: uid("web"), container }).await.unwrap();
        let sandbox = || "nope".into();
        r.wiring.call(StopPodSandbox { uid: uid("web"), sandbox: sandbox() }).await.unwrap();
        r.wiring.call(RemovePodSandbox { uid: uid("web"), sandbox: sandbox() }).await.unwrap();
        assert_eq!(r.start("web", &"nope".into()).await.unwrap_err().kind, CallErrorKind::NotFound);
    });
}

#[test]
fn errors_carry_the_runtimes_words_and_their_kind() {
    rig(Features::containerd_1_6(), |r| async move {
        let rows = [
            (Code::NotFound, CallErrorKind::NotFound),
            (Code::Unimplemented, CallErrorKind::Unimplemented),
            (Code::DeadlineExceeded, CallErrorKind::Timeout),
            (Code::Unknown, CallErrorKind::Failed),
            (Code::Internal, CallErrorKind::Failed),
        ];
        for (code, kind) in rows {
            r.fake.inject(Fault::error("RunPodSandbox", code, "boom").times(1));
            let e = r.sandbox("web", 0).await.unwrap_err();
            assert_eq!((e.kind, e.message.as_str()), (kind, "boom"), "{code:?}");
        }
    });
}

#[test]
fn commands_end_with_their_timeout() {
    rig(Features::containerd_1_6(), |r| async move {
        let (_, app) = r.run("web").await;
        r.fake.on_exec(|_| ExecReply { exit_code: 4, takes: secs(5), ..ExecReply::default() });
        let before = Instant::now();
        assert_eq!(r.exec("web", &app, secs(1)).await.unwrap_err().kind, CallErrorKind::Timeout);
        assert_eq!(before.elapsed(), secs(1));
        assert_eq!(r.exec("web", &app, secs(0)).await, Ok(4));
    });
}

#[test]
fn a_hung_start_stalls_its_own_pod_only() {
    rig(Features::containerd_1_6(), |r| async move {
        for n in 0..10 {
            r.fake.inject(Fault::hang("RunPodSandbox").matching(&format!("ns/hung{n}")).times(1));
        }
        let before = Instant::now();
        let hung = join_all((0..10).map(|n| {
            let r = &r;
            async move { r.sandbox(&format!("hung{n}"), 0).await }
        }));
        let healthy = async {
            sleep(secs(1)).await;
            join_all((0..20).map(|n| {
                let r = &r;
                async move { r.run(&format!("p{n}")).await }
            }))
            .await;
            before.elapsed()
        };
        let (hung, healthy) = tokio::join!(hung, healthy);
        // The hung ones fill the lane until its patience ends, and never again.
        assert!(healthy <= secs(21), "{healthy:?}");
        assert!(hung.iter().all(|r| r.as_ref().is_err_and(|e| e.kind == CallErrorKind::Timeout)));
        assert!(before.elapsed() >= secs(240));
    });
}

#[test]
fn starts_run_five_at_a_time_and_graces_do_not_add_up() {
    rig(Features::containerd_1_6(), |r| async move {
        r.fake.program("app", &[Program::forever().on_term(OnTerm::Ignore)]);
        r.fake.inject(Fault::delay("StartContainer", secs(1)));
        let before = Instant::now();
        let pods = join_all((0..24).map(|n| {
            let r = &r;
            async move { (n, r.run(&format!("p{n}")).await) }
        }))
        .await;
        assert_eq!(before.elapsed(), secs(5));
        let before = Instant::now();
        join_all(pods.iter().map(|(n, (_, app))| {
            let r = &r;
            async move { r.stop(&format!("p{n}"), app, 30).await.unwrap() }
        }))
        .await;
        assert!(before.elapsed() < secs(33), "{:?}", before.elapsed());
    });
}

#[test]
fn a_call_that_takes_effect_behind_our_back_is_seen() {
    rig(Features::without_events(), |r| async move {
        let sandbox = r.sandbox("web", 0).await.unwrap();
        r.fake.inject(Fault::new("CreateContainer", FaultKind::ErrorAfter(Code::Unknown, "lost".to_owned())).times(1));
        assert_eq!(r.create("web", &sandbox, "app", 0).await.unwrap_err().message, "lost");
        assert_eq!(r.observe("web", false).await.unwrap().containers.len(), 1, "a failed call makes it look");
        r.fake.inject(Fault::new("CreateContainer", FaultKind::Late(secs(150))).times(1));
        assert_eq!(r.create("web", &sandbox, "late", 0).await.unwrap_err().kind, CallErrorKind::Timeout);
        assert!(r.observe("web", false).await.unwrap().container("late").is_none());
        sleep(secs(60)).await;
        let late = r.row("web").unwrap();
        assert_eq!(late.container("late").unwrap().state, ContainerState::Created);
    });
}
