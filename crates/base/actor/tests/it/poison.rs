//! Work that crashes its actor again and again.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use actor::{
    Actor, ActorRef, AskError, Ctx, Deferred, Handler, Kernel, Policy, SetAside, Spec, Strategy, message, supervised,
    testing,
};

/// Handles what is for anybody; dies of what is for `poison`.
struct Manager {
    done: Arc<Mutex<Vec<String>>>,
}

impl Actor for Manager {
    type Context = Ctx<Self>;
}
supervised!(Manager);

struct Do(&'static str);
message!(Do => usize, for |m| m.0.into());
impl Handler<Do> for Manager {
    type Result = usize;
    fn handle(&mut self, Do(subject): Do, _: &mut Ctx<Self>) -> usize {
        assert_ne!(subject, "poison");
        let mut done = self.done.lock().unwrap();
        done.push(subject.to_owned());
        done.len()
    }
}

/// The crash comes after the turn.
struct Later(&'static str);
message!(Later => (), for |m| m.0.into());
impl Handler<Later> for Manager {
    type Result = Deferred<Self, ()>;
    fn handle(&mut self, Later(subject): Later, _: &mut Ctx<Self>) -> Deferred<Self, ()> {
        Deferred::new(async move {
            tokio::time::sleep(Duration::from_millis(10)).await;
            assert_ne!(subject, "poison");
        })
    }
}

struct DoAll(Vec<&'static str>);
message!(DoAll => Vec<&'static str>);
impl Handler<DoAll> for Manager {
    type Result = actor::MessageResult<DoAll>;
    fn handle(&mut self, DoAll(all): DoAll, ctx: &mut Ctx<Self>) -> Self::Result {
        actor::MessageResult(all.into_iter().filter(|s| ctx.for_subject(s, |_| assert_ne!(*s, "poison"))).collect())
    }
}

type Told = Arc<Mutex<Vec<SetAside>>>;

fn manager(kernel: &Kernel) -> (ActorRef<Manager>, Arc<Mutex<Vec<String>>>, Told) {
    let (done, told) = (Arc::<Mutex<Vec<String>>>::default(), Told::default());
    let (log, seen) = (done.clone(), told.clone());
    let tell = move |aside: &SetAside| seen.lock().unwrap().push(aside.clone());
    kernel.on_set_aside(tell);
    let core = kernel.group("core", Policy::default());
    (kernel.spawn(Spec::new("manager").group(&core), move |_| Manager { done: log.clone() }), done, told)
}

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_message_that_crashed_twice_is_set_aside_and_its_askers_are_told_at_once() {
    testing::run(1, |kernel| async move {
        let (m, _, told) = manager(&kernel);
        for _ in 0..2 {
            assert_eq!(m.ask(Do("poison"), SECOND).await, Err(AskError::Crashed));
        }
        assert_eq!(m.info().restarts, 2);
        for n in 1..=50 {
            assert_eq!(m.ask(Do("poison"), SECOND).await, Err(AskError::Crashed));
            assert_eq!(m.ask(Do("healthy"), SECOND).await, Ok(n));
        }
        assert_eq!((m.info().restarts, m.info().set_aside), (2, 50), "nothing crashes meanwhile");
        let told = told.lock().unwrap().clone();
        let [aside] = &told[..] else { panic!("{told:?}") };
        assert_eq!((&*aside.actor, &*aside.what, &*aside.subject, aside.crashes), ("manager", "Do", "poison", 2));
        assert_eq!(m.info().aside.len(), 1);
        assert_eq!(kernel.directory().totals()["core"].set_aside, 50);
    });
}

#[test]
fn an_hour_of_poison_costs_a_few_restarts_and_no_budget() {
    testing::run(1, |kernel| async move {
        let (m, _, _) = manager(&kernel);
        for n in 1..=3_600 {
            assert_eq!(m.ask(Do("poison"), SECOND).await, Err(AskError::Crashed));
            assert_eq!(m.ask(Do("healthy"), SECOND).await, Ok(n));
            tokio::time::sleep(SECOND).await;
        }
        let restarts = m.info().restarts;
        assert!((10..=20).contains(&restarts), "{restarts}: twice, then after 10 s, 20 s, ... 300 s");
        assert!(kernel.health().is_ok());
    });
}

#[test]
fn a_tell_that_is_set_aside_waits_and_comes_in_its_time() {
    testing::run(1, |kernel| async move {
        let (m, done, _) = manager(&kernel);
        for _ in 0..3 {
            m.tell(Do("poison")).unwrap();
        }
        m.tell(Do("healthy")).unwrap();
        tokio::time::sleep(SECOND).await;
        assert_eq!((m.info().restarts, done.lock().unwrap().len()), (2, 1));
        tokio::time::sleep(SECOND * 10).await;
        assert_eq!(m.info().restarts, 3, "the third was not lost");
    });
}

/// Any other crash of the actor meanwhile is no reason to lose what waits.
#[test]
fn a_tell_that_is_set_aside_waits_over_restarts_for_other_reasons() {
    testing::run(1, |kernel| async move {
        let (done, sick) = (Arc::<Mutex<Vec<String>>>::default(), Arc::<Mutex<bool>>::new(true.into()));
        struct Convalescent(Arc<Mutex<Vec<String>>>, Arc<Mutex<bool>>);
        impl Actor for Convalescent {
            type Context = Ctx<Self>;
        }
        supervised!(Convalescent);
        impl Handler<Do> for Convalescent {
            type Result = usize;
            fn handle(&mut self, Do(subject): Do, _: &mut Ctx<Self>) -> usize {
                assert!(!*self.1.lock().unwrap(), "still sick");
                self.0.lock().unwrap().push(subject.to_owned());
                0
            }
        }
        let (log, state) = (done.clone(), sick.clone());
        let m = kernel.spawn(Spec::new("m"), move |_| Convalescent(log.clone(), state.clone()));
        for _ in 0..2 {
            assert_eq!(m.ask(Do("a"), SECOND).await, Err(AskError::Crashed));
        }
        for _ in 0..3 {
            m.tell(Do("a")).unwrap();
        }
        for _ in 0..3 {
            tokio::time::sleep(SECOND).await;
            m.kill();
        }
        *sick.lock().unwrap() = false;
        tokio::time::sleep(SECOND * 5).await;
        assert_eq!((m.info().restarts, done.lock().unwrap().len()), (5, 0), "their rest is not over");
        tokio::time::sleep(SECOND * 5).await;
        assert_eq!(*done.lock().unwrap(), ["a", "a", "a"], "each once, at its time");
    });
}

#[test]
fn a_crash_after_the_turn_is_blamed_on_the_message_too() {
    testing::run(1, |kernel| async move {
        let (m, _, told) = manager(&kernel);
        for _ in 0..20 {
            assert_eq!(m.ask(Later("poison"), SECOND).await, Err(AskError::Crashed));
            assert_eq!(m.ask(Later("healthy"), SECOND).await, Ok(()));
        }
        assert_eq!((m.info().restarts, told.lock().unwrap().len()), (2, 1));
    });
}

#[test]
fn one_of_many_in_a_turn_over_all_is_left_out_after_two_crashes() {
    testing::run(1, |kernel| async move {
        let (m, _, _) = manager(&kernel);
        let all = || DoAll(vec!["a", "poison", "b"]);
        for _ in 0..2 {
            assert_eq!(m.ask(all(), SECOND).await, Err(AskError::Crashed));
        }
        for _ in 0..20 {
            assert_eq!(m.ask(all(), SECOND).await, Ok(vec!["a", "b"]));
        }
        assert_eq!(m.info().restarts, 2);
    });
}

#[test]
fn an_actor_that_dies_of_everything_is_still_too_much_for_its_group() {
    testing::run(1, |kernel| async move {
        struct Broken;
        impl Actor for Broken {
            type Context = Ctx<Self>;
        }
        supervised!(Broken);
        impl Handler<Do> for Broken {
            type Result = usize;
            fn handle(&mut self, _: Do, _: &mut Ctx<Self>) -> usize {
                panic!("always")
            }
        }
        let (other, _, _) = manager(&kernel);
        let core = kernel.group("broken", Policy { max_restarts: 5, ..Policy::default() });
        let broken = kernel.spawn(Spec::new("broken").group(&core), |_| Broken);
        let generation = broken.info().generation;
        for subject in ["a", "b", "c", "d", "e", "f", "g"] {
            let _crashed = broken.ask(Do(subject), SECOND).await;
        }
        assert!(broken.info().generation > generation + 6, "the group was restarted too");
        drop(other);
    });
}

#[test]
fn a_crash_loop_in_an_isolated_group_is_nobody_elses() {
    testing::run(1, |kernel| async move {
        struct Worker(bool);
        impl Actor for Worker {
            type Context = Ctx<Self>;
            fn started(&mut self, ctx: &mut Ctx<Self>) {
                if self.0 {
                    ctx.after(Duration::from_millis(5), |_, _| panic!("again"));
                }
            }
        }
        supervised!(Worker);
        let pause = Duration::from_secs(60);
        let policy = Policy { strategy: Strategy::Isolated, backoff_max: pause, max_restarts: 3, ..Policy::default() };
        let crew = kernel.group("workers", policy);
        let sick = kernel.spawn(Spec::new("sick").group(&crew), |_| Worker(true));
        let healthy: Vec<_> =
            (0..20).map(|n| kernel.spawn(Spec::new(format!("w{n}")).group(&crew), |_| Worker(false))).collect();
        tokio::time::sleep(Duration::from_secs(3_600)).await;
        let restarts = sick.info().restarts;
        assert!((60..=80).contains(&restarts), "{restarts}: backs off to one a minute, and does not begin anew there");
        assert!(healthy.iter().all(|w| w.info().generation == 0));
        assert!(kernel.health().is_ok());
    });
}
