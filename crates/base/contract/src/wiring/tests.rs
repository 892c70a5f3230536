use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use actor::{Actor, Ctx, Kernel, Spec, supervised, testing};

use super::*;
use crate::crew::tests::worker_state;
use crate::pod_worker::UpdateKind;
use crate::{Crew, DECLARATIONS, Declaration};

#[test]
fn requests_never_go_round_in_a_circle() {
    let asks = |d: &Declaration| d.asks.iter().map(|e| e.role).collect::<BTreeSet<_>>();
    let mut left: BTreeMap<_, _> = DECLARATIONS.iter().map(|d| (d.role, asks(d))).collect();
    while !left.is_empty() {
        let leaf = left.iter().find(|(_, asks)| asks.iter().all(|a| !left.contains_key(a))).map(|(role, _)| *role);
        let Some(leaf) = leaf else { panic!("a circle among {:?}", left.keys()) };
        left.remove(leaf);
    }
}

#[test]
fn roles_are_listed_bottom_up() {
    let mut below = BTreeSet::new();
    for d in DECLARATIONS {
        let above: Vec<_> = d.asks.iter().map(|e| e.role).filter(|role| !below.contains(role)).collect();
        assert!(above.is_empty(), "{} asks {above:?}, which come after it", d.role);
        below.insert(d.role);
    }
}

#[test]
fn every_edge_names_a_role_and_what_it_answers_or_posts_once() {
    let by_name: BTreeMap<_, _> = DECLARATIONS.iter().map(|d| (d.role, d)).collect();
    assert_eq!(by_name.len(), DECLARATIONS.len(), "a role stands twice");
    for d in DECLARATIONS {
        for edge in d.asks {
            let answers = by_name.get(edge.role).is_some_and(|d| d.answers.iter().any(|m| m.name == edge.what));
            assert!(answers, "{} asks {edge:?}", d.role);
        }
        for edge in d.reads {
            let posts = by_name.get(edge.role).is_some_and(|d| d.posts.iter().any(|r| r.name == edge.what));
            assert!(posts, "{} reads {edge:?}", d.role);
        }
        for edges in [d.asks, d.reads] {
            let different: BTreeSet<_> = edges.iter().map(|e| (e.role, e.what)).collect();
            assert_eq!(different.len(), edges.len(), "{} declares an edge twice", d.role);
        }
    }
}

#[test]
fn actors_and_what_they_answer_and_post_have_names_of_their_own() {
    let actors: Vec<_> = DECLARATIONS.iter().map(|d| d.actor).filter(|a| !a.is_empty()).collect();
    let answers = DECLARATIONS.iter().flat_map(|d| d.answers.iter().map(|m| m.name));
    let posts = DECLARATIONS.iter().flat_map(|d| d.posts.iter().map(|r| r.name));
    for names in [actors, answers.chain(posts).collect()] {
        let different: BTreeSet<_> = names.iter().collect();
        assert_eq!(different.len(), names.len(), "{names:?}");
    }
}

#[test]
fn every_role_says_what_it_is_for_and_every_deadline_is_one() {
    for d in DECLARATIONS {
        assert!(d.purpose.trim().len() > 10, "{}", d.role);
        let endless: Vec<_> = d.answers.iter().filter(|m| m.deadline.is_zero()).collect();
        assert!(endless.is_empty(), "{}: {endless:?}", d.role);
    }
}

/// A worker that posts a row whenever it is updated.
struct Worker {
    uid: PodUid,
    crew: Crew<PodWorker>,
    log: Log,
}

type Log = Arc<Mutex<Vec<String>>>;

impl Worker {
    fn note(&self, what: &str) {
        self.log.lock().unwrap().push(format!("{} {what}", self.uid));
    }
}

impl Actor for Worker {
    type Context = Ctx<Self>;
}
supervised!(Worker);

impl Handler<UpdatePod> for Worker {
    type Result = ();
    fn handle(&mut self, message: UpdatePod, _: &mut Ctx<Self>) {
        if message.kind == UpdateKind::Update {
            panic!("dies over it");
        }
        let posted = self.crew.poster().post(self.uid.clone(), Arc::new(worker_state()));
        self.note(if posted { "posts" } else { "is refused" });
    }
}

impl Handler<GrantStart> for Worker {
    type Result = ();
    fn handle(&mut self, _: GrantStart, _: &mut Ctx<Self>) {
        self.note("may start");
    }
}

fn family(kernel: Kernel, wiring: &Wiring, log: &Log) -> Arc<Family<PodUid, Worker>> {
    let (wiring, log) = (wiring.clone(), log.clone());
    Family::new(move |uid: &PodUid| {
        let (crew, uid, log) = (wiring.member_crew::<PodWorker>(uid.as_str()), uid.clone(), log.clone());
        kernel.spawn(Spec::new(format!("pod-worker/{uid}")), move |_| Worker {
            uid: uid.clone(),
            crew: crew.succeed(),
            log: log.clone(),
        })
    })
}

fn update(uid: &str, kind: UpdateKind) -> UpdatePod {
    UpdatePod { uid: uid.into(), pod: None, kind, pending: None, is_behind: false }
}

#[test]
fn workers_are_made_by_updates_and_retired_with_their_row_and_right() {
    testing::run(1, |kernel| async move {
        let (wiring, log) = (Wiring::default(), Log::default());
        wiring.connect_workers(&family(kernel, &wiring, &log));
        let rows = wiring.board::<WorkerState>();
        let grant = |uid: &str| GrantStart { uid: uid.into() };
        assert_eq!(wiring.ask(grant("a")).await, Err(AskError::NotDelivered), "a grant makes no worker");
        assert_eq!(wiring.ask(RetireWorker { uid: "a".into() }).await, Ok(()), "nothing to retire");
        wiring.ask(update("a", UpdateKind::Create)).await.unwrap();
        wiring.ask(grant("a")).await.unwrap();
        wiring.ask(update("b", UpdateKind::Create)).await.unwrap();
        assert_eq!(wiring.ask(update("a", UpdateKind::Update)).await, Err(AskError::Crashed));
        wiring.ask(update("a", UpdateKind::Sync)).await.unwrap();
        assert_eq!(rows.snapshot().len(), 2);
        // What is queued when it retires is worked off, and posts nothing any more.
        wiring.tell(update("a", UpdateKind::Sync)).unwrap();
        wiring.tell(RetireWorker { uid: "a".into() }).unwrap();
        testing::settle().await;
        assert_eq!(rows.snapshot().into_keys().collect::<Vec<_>>(), [PodUid::from("b")]);
        assert_eq!(wiring.refused_posts::<PodWorker>(), 0, "nobody else has its place: these were its last words");
        wiring.ask(update("a", UpdateKind::Create)).await.unwrap();
        assert_eq!(rows.snapshot().len(), 2, "the pod is back, with a worker made anew");
        let want = ["a posts", "a may start", "b posts", "a posts", "a is refused", "a posts"];
        assert_eq!(*log.lock().unwrap(), want);
    });
}
