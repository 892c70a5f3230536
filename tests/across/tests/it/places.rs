//! A whole node whose ProbeManager is replaced by a process while it runs: what becomes of a candidate that is good, and of one
//! that hangs, lies or crashes.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use actor::testing::{run_real, spin_until};
use contract::event::EventView;
use contract::probe::PodProbes;
use model::PodUid;
use server::local::{Done, ManagerLine, Managers, NotDone, SwapOrder};
use sim::SimNode;

use crate::world::{Program, World};

/// A node with pods of these names, each with a probe, and the world beside it in which programs run.
struct Bed {
    node: SimNode,
    world: World,
}

impl Bed {
    async fn with(kernel: actor::Kernel, pods: &[&str]) -> Self {
        let node = SimNode::start(&kernel);
        node.world.runtime.add_images(&["app:1"]);
        let bed = Bed { node, world: World::new(kernel) };
        for name in pods {
            let spec = "spec:\n  containers:\n  - name: c\n    image: app:1\n    readinessProbe: {exec: {command: [\"true\"]}, periodSeconds: 1}\n";
            bed.node.put(name, &format!("apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\n{spec}"));
        }
        spin_until("all pods are probed", || bed.rows().len() == pods.len()).await;
        bed
    }

    fn rows(&self) -> BTreeSet<PodUid> {
        self.node.wiring().board::<PodProbes>().snapshot().into_keys().collect()
    }

    /// What stands in the row of the one pod that the program has written into it.
    fn words(&self) -> Vec<String> {
        let rows = self.node.wiring().board::<PodProbes>().snapshot();
        rows.into_values().flat_map(|row| row.probes.keys().cloned().collect::<Vec<_>>()).collect()
    }

    fn order(&self, probation: &str) -> SwapOrder {
        let to = format!("unix://{}", self.world.socket().display());
        SwapOrder { to, dry_run: false, shadow: false, probation: Some(probation.to_owned()), when_away: None }
    }

    /// Once its program listens.
    async fn swap(&self, order: SwapOrder) -> Result<Done, NotDone> {
        spin_until("it listens", || self.world.is_listened_to()).await;
        self.node.places().swap("probes", order).await
    }

    fn line(&self) -> ManagerLine {
        self.node.places().lines().into_iter().find(|line| line.name == "probes").unwrap()
    }

    async fn until(&self, what: &str, so: impl Fn(&ManagerLine) -> bool) -> ManagerLine {
        spin_until(what, || so(&self.line())).await;
        self.line()
    }

    /// The events of the node about places.
    async fn events(&self, reasons: &[&str]) {
        let found = || -> Vec<String> {
            let view = self.node.wiring().value::<EventView>().get();
            let about = view.entries.iter().filter(|e| e.reason.starts_with("Manager"));
            about.map(|e| e.reason.clone()).collect()
        };
        let mut last = Vec::new();
        let so = || {
            let now = found();
            if now != last {
                let view = self.node.wiring().value::<EventView>().get();
                eprintln!("events: {now:?} of {}, {} dropped", view.entries.len(), view.dropped);
                last.clone_from(&now);
            }
            now == reasons
        };
        spin_until("the events are there", so).await;
    }

    /// The candidate lost the place by itself, within its probation; the one that is built in does its work.
    async fn rolled_back(&self, why: &str) {
        let began = Instant::now();
        let line = self.until("it is rolled back", |line| line.served_by == "builtin").await;
        assert!(began.elapsed() < Duration::from_secs(20), "{line:#?}");
        assert_eq!((line.chosen.as_str(), line.probation_left_ms), ("builtin", None));
        let last = &line.history.last().unwrap().text;
        let said = "ProbeManager is served by the one that is built in again, as unix://";
        assert!(last.starts_with(said) && last.contains("is rolled back: ") && last.contains(why), "{last}");
        self.events(&["ManagerReplaced", "ManagerRolledBack"]).await;
        spin_until("it probes again", || self.words().contains(&"c".to_owned())).await;
    }
}

/// Starts it, has it take the place, and waits until it has lost it again.
fn loses(pods: &'static [&'static str], start: fn(&World) -> Program, act: fn(&mut Program), why: &'static str) {
    run_real(|kernel| async move {
        let bed = Bed::with(kernel, pods).await;
        let mut program = start(&bed.world);
        let done = bed.swap(bed.order("60s")).await.unwrap();
        assert!(done.lines[0].starts_with("ProbeManager is served by unix://"), "{done:?}");
        act(&mut program);
        bed.rolled_back(why).await;
        assert_eq!(bed.rows().len(), pods.len(), "no row is lost");
    });
}

#[test]
fn a_good_one_knows_the_pods_at_once_and_stays_and_a_command_takes_the_place_from_it() {
    run_real(|kernel| async move {
        let bed = Bed::with(kernel, &["steady"]).await;
        let before = bed.line();
        assert_eq!((before.served_by.as_str(), before.chosen_by.as_str(), before.remembered), ("builtin", "nobody", 1));
        let _program = bed.world.honest();
        let done = bed.swap(bed.order("2s")).await.unwrap();
        assert!(done.lines[1].contains("on probation for 2 s"), "{done:?}");
        assert!(bed.words().contains(&"known 1".to_owned()), "it was told of the pod before it served");
        let line = bed.line();
        let at = format!("unix://{}", bed.world.socket().display());
        assert_eq!((line.served_by.as_str(), line.chosen_by.as_str()), (at.as_str(), "command"));
        assert_eq!((line.before.as_deref(), line.program.as_deref()), (Some("builtin"), Some("honest 0.1.0")));
        assert!(
            line.after_restart.starts_with("builtin, as the configuration says; to keep this one: --manager probes=")
        );
        assert!(line.probation_left_ms.is_some());
        let line = bed.until("its probation is over", |line| line.probation_left_ms.is_none()).await;
        assert_eq!(line.served_by, at);
        assert!(line.history.last().unwrap().text.starts_with(&format!("ProbeManager stays with {at}: ")), "{line:#?}");
        let again = bed.swap(bed.order("2s")).await;
        assert!(matches!(&again, Err(NotDone::Refused(why)) if why.contains("is served by it already")), "{again:?}");
        bed.node.places().roll_back("probes").await.unwrap();
        spin_until("it is probed here again", || bed.words() == ["c"]).await;
        let line = bed.line();
        assert_eq!((line.served_by.as_str(), line.chosen_by.as_str(), line.before), ("builtin", "nobody", None));
        assert!(matches!(bed.node.places().roll_back("probes").await, Err(NotDone::Refused(_))));
        bed.events(&["ManagerReplaced", "ManagerKept", "ManagerReplaced"]).await;
    });
}

#[test]
fn one_that_hangs_over_what_it_must_know_is_rolled_back() {
    loses(&["hangs"], World::honest, |_| {}, "it did not answer 1 of 1 messages that it must know");
}

#[test]
fn one_that_crashes_over_each_message_is_rolled_back() {
    loses(&["crashes"], World::honest, |_| {}, "it did not answer 1 of 1 messages that it must know");
}

#[test]
fn one_that_is_killed_is_rolled_back() {
    loses(&["steady"], World::honest, Program::kill, "it is away: ");
}

#[test]
fn one_that_stands_still_is_rolled_back() {
    let stop = |program: &mut Program| program.signal(rustix::process::Signal::STOP);
    // By its silence, or by a message that waits for it.
    loses(&["steady"], World::honest, stop, "");
}

#[test]
fn one_that_says_what_its_role_does_not_say_is_rolled_back() {
    loses(&["steady"], |world| world.liar("calls"), |_| {}, "things that its role may not say");
    loses(&["steady"], |world| world.liar("keys"), |_| {}, "things that its role may not say");
}

#[test]
fn one_that_lets_rows_vanish_is_rolled_back() {
    loses(&["steady"], |world| world.liar("forgets"), |_| {}, "1 of 1 rows of running pods vanished");
}

#[test]
fn one_that_would_not_do_is_refused_with_the_reason_before_anything_is_changed() {
    run_real(|kernel| async move {
        let bed = Bed::with(kernel, &["steady"]).await;
        let nobody = bed.node.places().swap("probes", bed.order("1s")).await;
        let Err(NotDone::Failed(why)) = nobody else { panic!("{nobody:?}") };
        assert!(why.starts_with("dial unix ") && why.ends_with("; nothing was changed"), "{why}");
        assert!(why.contains("; start the manager's program with --at unix:///"), "{why}");
        for (how, said) in [
            ("hash", "another contract"),
            ("role", "wanted is a ProbeManager"),
            ("deaf", "no answer within 5 s"),
            ("premature", "it acted before it was told to start"),
            ("garbage", ""),
        ] {
            let program = bed.world.liar(how);
            let answer = bed.swap(bed.order("1s")).await;
            let Err(NotDone::Failed(why)) = answer else { panic!("{how}: {answer:?}") };
            assert!(why.contains(said) && why.ends_with("; nothing was changed"), "{how}: {why}");
            drop(program);
            std::fs::remove_file(bed.world.socket()).unwrap();
        }
        let line = bed.line();
        assert_eq!((line.served_by.as_str(), line.history.len(), line.before), ("builtin", 0, None));
    });
}

#[test]
fn a_dry_run_says_what_would_happen_and_changes_nothing() {
    run_real(|kernel| async move {
        let bed = Bed::with(kernel, &["steady"]).await;
        let _program = bed.world.honest();
        let done = bed.swap(SwapOrder { dry_run: true, ..bed.order("60s") }).await.unwrap();
        let text = done.lines.join("\n");
        for words in [
            "honest 0.1.0, a ProbeManager",
            "its contract is the one here",
            "1 remembered messages",
            "nothing was changed",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
        assert_eq!((bed.line().history.len(), bed.words()), (0, vec!["c".to_owned()]));
    });
}

#[test]
fn a_candidate_in_the_shadow_is_compared_and_changes_nothing() {
    run_real(|kernel| async move {
        let bed = Bed::with(kernel, &["steady"]).await;
        let _program = bed.world.honest();
        let done = bed.swap(SwapOrder { shadow: true, ..bed.order("4s") }).await.unwrap();
        assert!(done.lines[1].contains("nothing is changed"), "{done:?}");
        let shown = |line: &ManagerLine| line.shadow.clone().unwrap();
        bed.until("its row is another one", |line| !shown(line).differences.is_empty()).await;
        let pod = serde_json::json!({"metadata": {"uid": "u9", "name": "steady", "namespace": "n"}, "spec": {"containers": []}});
        let start = contract::probe::StartProbes { pod: serde_json::from_value(pod).unwrap() };
        assert_eq!(bed.node.wiring().ask(start).await, Ok(()));
        let stop = contract::probe::StopProbes { uid: "u9".into(), keep_readiness: false };
        assert_eq!(bed.node.wiring().ask(stop).await, Ok(()));
        let line = bed.until("its time is over", |line| !shown(line).running).await;
        let shadow = shown(&line);
        assert_eq!((shadow.ended.as_deref(), shadow.same), (Some("its time is over"), shadow.compared));
        assert!(shadow.compared >= 2, "{shadow:#?}");
        let difference = shadow.differences.iter().find(|d| d.of.starts_with("PodProbes of ")).unwrap();
        assert!(difference.at.starts_with("/probes/") && difference.count > 0, "{shadow:#?}");
        assert_eq!((line.served_by.as_str(), line.history.len()), ("builtin", 0));
        assert_eq!(bed.words(), ["c"], "its rows are nobody's");
        assert_eq!(bed.line().remembered, 1);
    });
}

#[test]
fn what_was_asked_of_a_process_that_hangs_is_asked_of_the_next_one() {
    run_real(|kernel| async move {
        let bed = Bed::with(kernel, &["steady"]).await;
        let _program = bed.world.honest();
        bed.swap(bed.order("60s")).await.unwrap();
        let pod = serde_json::json!({"metadata": {"uid": "u9", "name": "hangs", "namespace": "n"}, "spec": {"containers": []}});
        let start = contract::probe::StartProbes { pod: serde_json::from_value(pod).unwrap() };
        let began = Instant::now();
        // It would wait for half a minute.
        let (answer, ()) = futures::join!(bed.node.wiring().ask(start), bed.rolled_back("StartProbes has waited "));
        assert_eq!(answer, Ok(()));
        assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    });
}
