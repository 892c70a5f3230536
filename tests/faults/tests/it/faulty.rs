//! Every actor is panicked, killed and stalled at each of its fault points while residents run and others come and go.
//!
//! One case: arm one rule, go through one round ([`round`]), and wait until everything is as it would be without the fault.
//! What must hold afterwards is in [`Round::verdict`]. The points are those that actors pass in an undisturbed round;
//! [`points`] holds them against the source: a fault point that no round passes fails, unless it is listed there. What no round can
//! have is in [`scenes`].

mod cases;
mod cast;
mod points;
mod round;
mod scenes;
mod wanted;
mod world;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use actor::Kernel;

use cases::{ACTIONS, Case, Kind, Passages, cases, is_enough, kinds};
pub(crate) use round::Round;

/// How far the cases of one actor are.
#[derive(Default)]
struct Progress {
    /// Cases of the present kind of runtime that are left.
    left: Option<Vec<Case>>,
    done: BTreeSet<Case>,
    struck: usize,
    points: BTreeSet<String>,
    failures: String,
    times: Vec<(Duration, String)>,
}

impl Progress {
    /// Goes through the cases on one node, up to the first failure.
    async fn go_on(&mut self, kernel: Kernel, actor: &str, (name, features, takes): Kind, is_last: bool) {
        let mut round = Round::out_of_step(&kernel, features()).await;
        let mut left = self.left.take().unwrap_or_else(|| {
            let points: BTreeSet<String> =
                Passages::of(&kernel).0.remove(actor).into_iter().flat_map(BTreeMap::into_keys).collect();
            let mut all = cases(actor, &points, &round.passages);
            self.points.extend(points);
            let takes_all = is_last || is_enough(self.points.len());
            all.retain(|c| (takes_all || takes(c)) && !self.done.contains(c));
            all.reverse();
            all
        });
        while let Some(case) = left.pop() {
            let outcome = round.case(Some(&case)).await;
            self.times.push((round.took, case.rule()));
            self.struck += usize::from(round.struck);
            let rule = case.rule();
            self.done.insert(case);
            if let Err(e) = outcome {
                self.failures += &format!("--- {rule} with {name}\n{e}\n");
                break;
            }
        }
        self.left = Some(left);
    }
}

/// All points of one actor, each with each action. After a failure the rest goes on with a fresh node.
fn strike(actor: &str) {
    sim::log_to_stderr();
    let mut progress = Progress::default();
    let kinds = kinds(actor);
    for (n, kind) in kinds.into_iter().enumerate() {
        if is_enough(progress.points.len()) {
            break;
        }
        progress.left = None;
        while progress.left.as_ref().is_none_or(|left| !left.is_empty()) {
            actor::testing::run(7, |kernel| progress.go_on(kernel, actor, kind, n + 1 == kinds.len()));
        }
    }
    let Progress { done, struck, points, times, .. } = &mut progress;
    let later = done.iter().filter(|case| case.nth > 1).count();
    println!(
        "{actor}: {} points, {} cases, {later} of them at later passages, {struck} struck; the slowest to recover:",
        points.len(),
        done.len()
    );
    times.sort();
    for (took, rule) in times.iter().rev().take(5) {
        println!("  {took:.1?} {rule}");
    }
    assert!(!progress.done.is_empty(), "{actor} passes no fault point");
    let pairs: BTreeSet<(&str, &str)> = progress.done.iter().map(|c| (c.point.as_str(), c.action)).collect();
    let all = std::env::var_os("FAULT").is_none();
    assert!(
        !all || pairs.len() == progress.points.len() * ACTIONS.len(),
        "cases of {actor} that no kind of runtime takes"
    );
    assert!(progress.failures.is_empty(), "{}", progress.failures);
    assert_eq!(progress.struck, progress.done.len(), "cases of {actor} that did not strike");
}

/// A test per actor that is declared.
macro_rules! each_actor {
    ($($other:ident: $other_role:ident),*; $($name:ident: $role:ident),* $(,)?) => {
        $(mod $name {
            #[test]
            fn recovers_from_each_fault() {
                super::strike(<contract::$role as contract::Role>::DECLARATION.actor);
            }
        })*
    };
}
contract::for_each_role!(each_actor);
