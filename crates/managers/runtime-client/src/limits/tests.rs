use std::future::pending;
use std::time::Duration;

use futures::future::{join_all, select_all};
use model::PodUid;
use tokio::time::{Instant, sleep, timeout};

use super::{CallLimits, lock};

fn uid(n: usize) -> PodUid {
    format!("u{n}").into()
}

/// Takes that long from when it is let in.
async fn work(d: Duration) {
    sleep(d).await;
}

#[tokio::test(start_paused = true)]
async fn as_many_calls_run_as_there_are_permits() {
    let limits = CallLimits::new(2, 8, 8);
    let before = Instant::now();
    let pods: Vec<_> = (0..6).map(uid).collect();
    join_all(pods.iter().map(|p| limits.start.run(p, work(Duration::from_secs(1))))).await;
    assert_eq!(before.elapsed(), Duration::from_secs(3));
    assert!(lock(limits.start.turns.as_ref().unwrap()).is_empty());
}

#[test]
fn limits_grow_with_the_machine_up_to_some_bound() {
    let permits = |cores| {
        let limits = CallLimits::for_cores(cores);
        [&limits.sandbox, &limits.start, &limits.stop, &limits.exec].map(|l| l.permits.available_permits())
    };
    for (cores, expected) in
        [(0, [5, 5, 8, 16]), (2, [5, 5, 8, 16]), (3, [7, 7, 12, 24]), (16, [40, 40, 64, 128]), (192, [40, 40, 64, 128])]
    {
        assert_eq!(permits(cores), expected, "{cores}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_pod_starts_one_thing_at_a_time() {
    let limits = CallLimits::default();
    let before = Instant::now();
    let pod = uid(1);
    join_all((0..3).map(|_| limits.start.run(&pod, work(Duration::from_secs(1))))).await;
    assert_eq!(before.elapsed(), Duration::from_secs(3));
}

#[tokio::test(start_paused = true)]
async fn hung_calls_give_their_permits_back() {
    let limits = CallLimits::new(2, 2, 2);
    let pods: Vec<_> = (0..20).map(uid).collect();
    for limit in [&limits.start, &limits.stop, &limits.exec] {
        let hung = select_all(pods[..10].iter().map(|p| Box::pin(limit.run(p, pending::<()>()))));
        let healthy = join_all(pods[10..].iter().map(|p| limit.run(p, work(Duration::from_millis(100)))));
        tokio::select! {
            _ = hung => panic!("hung calls do not end"),
            r = timeout(Duration::from_secs(60), healthy) => assert!(r.is_ok()),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn grace_periods_do_not_add_up() {
    let limits = CallLimits::default();
    let before = Instant::now();
    let pods: Vec<_> = (0..110).map(uid).collect();
    join_all(pods.iter().map(|p| limits.stop.run(p, work(Duration::from_secs(30))))).await;
    assert!(before.elapsed() < Duration::from_secs(38), "{:?}", before.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_leaves_frees_its_places() {
    let limits = CallLimits::new(1, 1, 1);
    let pod = uid(1);
    assert!(timeout(Duration::from_secs(1), limits.start.run(&pod, pending::<()>())).await.is_err());
    timeout(Duration::from_secs(1), limits.start.run(&pod, async {})).await.unwrap();
}
