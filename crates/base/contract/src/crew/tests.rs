use std::sync::Mutex;

use actor::testing;
use model::PodUid;
use model::core::Secret;
use model::event::{EventObject, EventType, NodeEvent};

use super::*;
use crate::event::RecordEvent;
use crate::objects::FetchSecret;
use crate::pod_worker::{WorkerPhase, WorkerState};
use crate::record::{Entry, Recorder, json};
use crate::stats::{Cadvisor, Resource, StatsError, Summarise};
use crate::volume::PodVolumes;
use crate::wiring::Wiring;
use crate::{EventRecorder, PodWorker, Server, VolumeManager};

fn uid() -> PodUid {
    PodUid::from("u1")
}

fn volumes(name: &str) -> Arc<PodVolumes> {
    Arc::new(PodVolumes { present: vec![name.to_owned()], error: None })
}

pub(crate) fn worker_state() -> WorkerState {
    WorkerState::new(WorkerPhase::Syncing)
}

#[test]
fn what_a_former_generation_posts_is_refused_and_counted() {
    let wiring = Wiring::default();
    let board = wiring.board::<PodVolumes>();
    let first = wiring.crew::<VolumeManager>();
    let old = first.poster::<PodVolumes>();
    assert!(old.post(uid(), volumes("old")));
    let second = first.succeed();
    assert!(!first.is_current() && second.is_current());
    assert!(!old.post(uid(), volumes("too late")) && !old.remove(&uid()));
    assert!(!first.poster::<PodVolumes>().post(uid(), volumes("made after its end")));
    assert_eq!(board.get(&uid()), Some(volumes("old")));
    assert_eq!((wiring.refused_posts::<VolumeManager>(), wiring.refused_posts::<PodWorker>()), (3, 0));
    assert!(second.poster::<PodVolumes>().post(uid(), volumes("new")));
    let replacement = wiring.crew::<VolumeManager>();
    assert!(!second.is_current(), "whoever takes the place ends the right of who had it");
    assert!(replacement.poster::<PodVolumes>().remove(&uid()));
    assert_eq!(board.get(&uid()), None);
}

/// A volume manager that posts one row at birth.
struct Volumes(&'static str, Crew<VolumeManager>);

impl actor::Actor for Volumes {
    type Context = actor::Ctx<Self>;
    fn started(&mut self, _: &mut Self::Context) {
        self.1.poster().post(uid(), volumes(self.0));
    }
}
actor::supervised!(Volumes);

#[test]
fn what_a_replaced_manager_posts_after_its_restart_is_refused_and_counted() {
    testing::run(1, |kernel| async move {
        let wiring = Wiring::default();
        let board = wiring.board::<PodVolumes>();
        let install = |name: &'static str| {
            let crew = wiring.crew::<VolumeManager>();
            kernel.spawn(actor::Spec::new(name), move |_| Volumes(name, crew.succeed()))
        };
        let old = install("old");
        testing::settle().await;
        old.kill();
        testing::settle().await;
        assert_eq!((board.get(&uid()), wiring.refused_posts::<VolumeManager>()), (Some(volumes("old")), 0));
        install("new");
        testing::settle().await;
        old.kill();
        // A second crash in a row backs off first.
        for _ in 0..20 {
            testing::settle().await;
        }
        assert_eq!(old.info().generation, 2, "it was rebuilt after it had been replaced");
        assert_eq!((board.get(&uid()), wiring.refused_posts::<VolumeManager>()), (Some(volumes("new")), 1));
    });
}

#[test]
fn a_value_is_fenced_as_a_board_is() {
    let wiring = Wiring::default();
    let first = wiring.crew::<crate::ImageManager>();
    let old = first.publisher::<crate::image::ImageView>();
    let view = |queued| crate::image::ImageView { pulling: Vec::new(), queued };
    assert!(old.publish(view(1)));
    let new = first.succeed().publisher::<crate::image::ImageView>();
    assert!(!old.publish(view(2)));
    assert_eq!((old.get().queued, new.reader().row().seq), (1, 1));
    assert!(new.publish(view(3)));
    let row = wiring.value::<crate::image::ImageView>().row();
    assert_eq!((row.value.queued, row.seq), (3, 2));
}

#[test]
fn members_of_a_family_do_not_end_each_others_rights() {
    let wiring = Wiring::default();
    let (a, b) = (wiring.member_crew::<PodWorker>("a"), wiring.member_crew::<PodWorker>("b"));
    let next = a.succeed();
    assert!(!a.is_current() && next.is_current() && b.is_current());
    assert!(!a.poster().post(PodUid::from("a"), Arc::new(worker_state())));
    assert!(b.poster().post(PodUid::from("b"), Arc::new(worker_state())));
}

#[test]
fn a_member_whose_right_was_revoked_gets_no_successor() {
    let wiring = Wiring::default();
    let crew = wiring.member_crew::<PodWorker>("a");
    wiring.endpoint::<PodWorker>().fence().revoke("a");
    assert!(!crew.is_current());
    let rebuilt = crew.succeed();
    assert!(!rebuilt.poster().post(PodUid::from("a"), Arc::new(worker_state())), "a late rebuild brings no row back");
    assert!(wiring.member_crew::<PodWorker>("a").is_current(), "the pod is back: a worker made anew may post");
    assert!(!rebuilt.is_current());
}

/// A post that races with the issue of the next token is either before it or refused: the successor's first post stands.
#[test]
fn no_post_of_a_former_generation_follows_the_first_of_its_successor() {
    let wiring = Wiring::default();
    let board = wiring.board::<PodVolumes>();
    let mut crew = wiring.crew::<VolumeManager>();
    for round in 0..500 {
        let old = crew.poster::<PodVolumes>();
        let next = std::thread::scope(|threads| {
            let racing = threads.spawn(move || (0..).find(|_| !old.post(uid(), volumes("old"))));
            while board.get(&uid()).is_none_or(|row| row != volumes("old")) {
                std::thread::yield_now();
            }
            let next = crew.succeed();
            assert!(next.poster::<PodVolumes>().post(uid(), volumes("new")));
            assert!(racing.join().unwrap().is_some());
            next
        });
        assert_eq!(board.get(&uid()), Some(volumes("new")), "round {round}");
        crew = next;
    }
    assert_eq!(wiring.refused_posts::<VolumeManager>(), 500);
}

/// A stats manager that knows one answer.
struct Stats;

impl actor::Actor for Stats {
    type Context = actor::Ctx<Self>;
}
actor::supervised!(Stats);

impl actor::Handler<Resource> for Stats {
    type Result = actor::MessageResult<Resource>;
    fn handle(&mut self, _: Resource, _: &mut actor::Ctx<Self>) -> Self::Result {
        actor::MessageResult("cpu 1".into())
    }
}
impl actor::Handler<Summarise> for Stats {
    type Result = actor::MessageResult<Summarise>;
    fn handle(&mut self, _: Summarise, _: &mut actor::Ctx<Self>) -> Self::Result {
        actor::MessageResult(Err(StatsError { message: "no".to_owned() }))
    }
}
impl actor::Handler<Cadvisor> for Stats {
    type Result = actor::MessageResult<Cadvisor>;
    fn handle(&mut self, _: Cadvisor, _: &mut actor::Ctx<Self>) -> Self::Result {
        panic!("dies over it")
    }
}

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<String>>>);

impl Recorder for Lines {
    fn entry(&self, entry: &Entry) {
        let Entry { from, to, what, body } = entry;
        self.0.lock().unwrap().push(format!("{from} -> {to}: {what} {body}"));
    }
}

#[test]
fn a_recorder_notes_everything_that_is_said_in_order() {
    let lines = Lines::default();
    let noted = lines.clone();
    testing::run(1, |kernel| async move {
        let wiring = Wiring::default();
        wiring.connect::<crate::StatsManager, _>(&kernel.spawn(actor::Spec::new("stats-manager"), |_| Stats));
        let server = wiring.crew::<Server>();
        server.ask(Resource).await.unwrap();
        wiring.record(noted);
        assert_eq!(&*server.ask(Resource).await.unwrap(), "cpu 1");
        let refused: Result<_, StatsError> = server.call(Summarise { only_cpu_and_memory: true }).await;
        assert_eq!(refused.unwrap_err().message, "no");
        assert_eq!(server.ask(Cadvisor).await.unwrap_err(), AskError::Crashed);
        let volume_manager = wiring.crew::<VolumeManager>();
        let event = NodeEvent {
            kind: EventType::Normal,
            reason: "Pulled".into(),
            message: "done".to_owned(),
            object: EventObject::Node,
        };
        assert_eq!(volume_manager.tell(RecordEvent::from(event)), Err(TellError::Gone), "nobody is connected");
        volume_manager.poster().post(uid(), volumes("data"));
        volume_manager.poster::<PodVolumes>().remove(&uid());
        let _next = volume_manager.succeed();
        volume_manager.poster().post(uid(), volumes("too late"));
        assert_eq!(&*wiring.ask(Resource).await.unwrap(), "cpu 1");
        assert_eq!(wiring.tell(Cadvisor), Ok(()));
        wiring.put(uid(), PodVolumes::default());
        wiring.take_away::<PodVolumes>(&uid());
        wiring.set(crate::image::ImageView { pulling: Vec::new(), queued: 1 });
    });
    let want = [
        "Server -> StatsManager: Resource null".to_owned(),
        r#"StatsManager -> Server: Resource "cpu 1""#.to_owned(),
        r#"Server -> StatsManager: Summarise {"only_cpu_and_memory":true}"#.to_owned(),
        r#"StatsManager -> Server: Summarise {"Err":{"message":"no"}}"#.to_owned(),
        "Server -> StatsManager: Cadvisor null".to_owned(),
        format!("StatsManager -> Server: Cadvisor {}", json(&AskError::Crashed.to_string())),
        format!(
            "VolumeManager -> {}: RecordEvent {}",
            EventRecorder::NAME,
            r#"{"event":{"kind":"Normal","reason":"Pulled","message":"done","object":"Node"}}"#
        ),
        r#"VolumeManager -> : PodVolumes "u1" {"present":["data"],"error":null}"#.to_owned(),
        r#"VolumeManager -> : PodVolumes "u1" gone"#.to_owned(),
        "VolumeManager -> : PodVolumes refused".to_owned(),
        " -> StatsManager: Resource null".to_owned(),
        r#"StatsManager -> : Resource "cpu 1""#.to_owned(),
        " -> StatsManager: Cadvisor null".to_owned(),
        r#"VolumeManager -> : PodVolumes "u1" {"present":[],"error":null}"#.to_owned(),
        r#"VolumeManager -> : PodVolumes "u1" gone"#.to_owned(),
        r#"ImageManager -> : ImageView {"pulling":[],"queued":1}"#.to_owned(),
    ];
    assert_eq!(*lines.0.lock().unwrap(), want);
}

/// What says `sesame` to whoever asks.
struct Store;
impl actor::Actor for Store {
    type Context = actor::Ctx<Self>;
}
actor::supervised!(Store);
impl actor::Handler<FetchSecret> for Store {
    type Result = actor::MessageResult<FetchSecret>;
    fn handle(&mut self, _: FetchSecret, _: &mut actor::Ctx<Self>) -> Self::Result {
        let words = [("password".to_owned(), "sesame".to_owned())].into();
        actor::MessageResult(Ok(Arc::new(Secret { string_data: Some(words), ..Secret::default() })))
    }
}

#[test]
fn a_recorder_gets_a_digest_of_what_is_kept_secret() {
    let lines = Lines::default();
    let noted = lines.clone();
    testing::run(1, |kernel| async move {
        let wiring = Wiring::default();
        wiring.inlet::<FetchSecret>().connect(&kernel.spawn(actor::Spec::new("object-store"), |_| Store));
        wiring.record(noted);
        for name in ["a", "a", "b"] {
            let asked = FetchSecret { namespace: "ns".to_owned(), name: name.to_owned() };
            let answer = wiring.call(asked).await.unwrap();
            assert_eq!(answer.string_data.as_ref().unwrap()["password"], "sesame");
        }
    });
    let lines = lines.0.lock().unwrap();
    assert!(lines.iter().all(|l| l.contains(": FetchSecret secret, sha256 ") && !l.contains("sesame")), "{lines:#?}");
    assert_eq!((lines.len(), &lines[0], &lines[1]), (6, &lines[2], &lines[3]), "the same has the same digest");
    assert_ne!(lines[2], lines[4]);
    assert_eq!(lines[3], lines[5]);
}

#[test]
fn whatever_is_named_for_a_secret_is_kept_as_one() {
    let messages = crate::DECLARATIONS.iter().flat_map(|d| d.answers);
    for m in messages {
        let named = ["Secret", "Token"].iter().any(|word| m.name.contains(word) || m.answer.contains(word));
        assert!(m.secret || !named, "{}: declare it as `kept secret`", m.name);
    }
    let secret =
        Secret { string_data: Some([("password".to_owned(), "sesame".to_owned())].into()), ..Secret::default() };
    let ensure = crate::image::EnsureImage {
        pod: Arc::default(),
        field_path: String::new(),
        image: "app:1".to_owned(),
        pull_policy: "Always".to_owned(),
        sandbox_config: Arc::default(),
        runtime_handler: String::new(),
        pull_secrets: [Arc::new(secret)].into(),
    };
    assert!(!format!("{ensure:?}").contains("sesame"));
}
