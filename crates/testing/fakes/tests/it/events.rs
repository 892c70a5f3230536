use fakes::FakeRuntime;
use fakes::runtime::{EventTrouble, Features};
use futures::StreamExt;
use model::PodUid;
use model::runtime::EventTier;
use ports::runtime::RuntimeEventKind;
use ports::runtime::RuntimeEventKind::{Created, Deleted, Started, Stopped};
use tokio::time::timeout;

use super::{WAYS, create, pod, run_sandbox, secs, start};

/// Events of one pod's life with the tier that told them.
async fn told(features: Features) -> (EventTier, Vec<(RuntimeEventKind, char, Option<PodUid>, usize)>) {
    let fake = FakeRuntime::new(features);
    fake.add_images(&["app:1"]);
    let client = fake.client();
    let mut events = client.events().await.unwrap();
    let sandbox = run_sandbox(&*client, "web", 0).await.unwrap();
    let app = create(&*client, &sandbox, "app", 0).await.unwrap();
    start(&*client, &app).await.unwrap();
    fake.exit(&app, 1);
    client.remove_container(cri_api::v1::RemoveContainerRequest { container_id: app }).await.unwrap();
    let mut seen = Vec::new();
    while let Ok(Some(e)) = timeout(secs(1), events.events.next()).await {
        let e = e.unwrap();
        let carried = e.statuses.map_or(0, |s| s.containers.len());
        seen.push((e.kind, e.id.chars().next().unwrap(), e.pod, carried));
    }
    (events.tier, seen)
}

#[tokio::test(start_paused = true)]
async fn the_cri_stream_goes_first_and_carries_statuses() {
    let uid = || Some(PodUid::from("uid-web"));
    let (tier, seen) = told(Features::containerd_2()).await;
    assert_eq!(tier, EventTier::CriStream);
    assert_eq!(
        seen,
        [
            (Created, '5', uid(), 0),
            (Started, '5', uid(), 0),
            (Created, 'c', uid(), 1),
            (Started, 'c', uid(), 1),
            (Stopped, 'c', uid(), 1),
            (Deleted, 'c', uid(), 1),
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn containerds_own_events_are_next_and_carry_ids_only() {
    let (tier, seen) = told(Features::containerd_1_6()).await;
    assert_eq!(tier, EventTier::Containerd);
    let kinds: Vec<_> = seen.iter().map(|s| (s.0, s.1)).collect();
    let want = [(Created, '5'), (Started, '5'), (Created, 'c'), (Started, 'c'), (Stopped, 'c'), (Deleted, 'c')];
    assert_eq!(kinds, want);
    assert!(seen.iter().all(|s| s.2.is_none() && s.3 == 0));
}

#[tokio::test(start_paused = true)]
async fn without_either_the_stream_is_empty() {
    assert_eq!(told(Features::without_events()).await, (EventTier::Relist, Vec::new()));
}

#[tokio::test(start_paused = true)]
async fn a_stream_breaks_with_the_connection() {
    for way in WAYS {
        let fake = FakeRuntime::new(Features::containerd_2());
        let client = way(&fake);
        let mut events = client.events().await.unwrap();
        fake.down();
        assert!(events.events.next().await.unwrap().unwrap_err().is_unavailable());
        assert!(client.events().await.unwrap_err().is_unavailable());
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_told_before_a_connection_broke_is_read_and_nothing_after() {
    let fake = FakeRuntime::new(Features::containerd_2());
    fake.add_images(&["app:1"]);
    let (client, other) = (fake.client(), fake.client());
    let mut events = client.events().await.unwrap();
    run_sandbox(&*other, "web", 0).await.unwrap();
    fake.disconnect();
    assert_eq!(events.events.next().await.unwrap().unwrap().kind, Created);
    assert_eq!(events.events.next().await.unwrap().unwrap().kind, Started);
    assert!(events.events.next().await.unwrap().unwrap_err().is_unavailable());
    run_sandbox(&*other, "web2", 0).await.unwrap();
    let after = events.events.next().await;
    assert!(after.as_ref().is_none_or(Result::is_err), "the server's side went with the connection: {after:?}");
}

#[tokio::test(start_paused = true)]
async fn an_effect_whose_connection_breaks_has_no_answer() {
    let p = pod().await;
    let mut begun = Box::pin(start(&*p.client, &p.app));
    for polls in 0.. {
        assert!(futures::poll!(&mut begun).is_pending() && polls < 100, "the effect is there before the answer");
        if p.fake.container("web", "app").unwrap().running() {
            break;
        }
        tokio::task::yield_now().await;
    }
    p.fake.disconnect();
    assert!(begun.await.unwrap_err().is_unavailable());
    assert!(p.fake.container("web", "app").unwrap().running());
}

#[tokio::test(start_paused = true)]
async fn events_come_twice_late_or_in_another_order() {
    let seen = async |trouble| {
        let fake = FakeRuntime::default();
        fake.add_images(&["app:1"]);
        let client = fake.client();
        let mut events = client.events().await.unwrap();
        fake.trouble_events(trouble);
        let sandbox = run_sandbox(&*client, "web", 0).await.unwrap();
        create(&*client, &sandbox, "app", 0).await.unwrap();
        let begun = tokio::time::Instant::now();
        let mut seen = Vec::new();
        while let Ok(Some(e)) = timeout(secs(9), events.events.next()).await {
            seen.push((e.unwrap().kind, begun.elapsed().as_secs()));
        }
        seen
    };
    let (created, begun) = ((Created, 0), (Started, 0));
    assert_eq!(seen(EventTrouble::None).await, [created, begun, created]);
    assert_eq!(seen(EventTrouble::Lost).await, []);
    assert_eq!(seen(EventTrouble::Twice).await, [created, created, begun, begun, created, created]);
    assert_eq!(seen(EventTrouble::Late(secs(3))).await, [(Created, 3), (Started, 3), (Created, 3)]);
    assert_eq!(seen(EventTrouble::Reordered(secs(3))).await, [created, created, (Started, 3)]);
}
