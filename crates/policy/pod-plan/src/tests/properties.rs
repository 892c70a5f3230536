//! Properties over random pods and random observations.

use std::collections::BTreeSet;
use std::time::Duration;

use model::ContainerId;
use model::core::{Container, Probe};
use model::pod::{self, ContainerKind};
use model::probe::ProbeVerdict;
use model::runtime::ContainerState;
use proptest::prelude::*;

use super::world::{World, container};
use crate::PodPlan;
use crate::restart::{exit_restarts, failed_init_restarts, init_failed};

/// How one container of a random pod is made.
#[derive(Clone, Debug)]
struct Shape {
    sidecar: bool,
    startup: bool,
    liveness: bool,
    own: Option<&'static str>,
    /// Code of each exit of a regular container; `None`: runs for ever.
    exits: Option<i32>,
}

fn shape() -> impl Strategy<Value = Shape> {
    let own =
        prop_oneof![3 => Just(None), 1 => prop_oneof![Just("Always"), Just("OnFailure"), Just("Never")].prop_map(Some)];
    let exits = prop_oneof![Just(None), Just(Some(0)), Just(Some(1))];
    (any::<bool>(), any::<bool>(), any::<bool>(), own, exits)
        .prop_map(|(sidecar, startup, liveness, own, exits)| Shape { sidecar, startup, liveness, own, exits })
}

#[derive(Clone, Debug)]
struct PodShape {
    policy: &'static str,
    inits: Vec<Shape>,
    regulars: Vec<Shape>,
    ephemeral: usize,
}

fn pod_shape() -> impl Strategy<Value = PodShape> {
    let policy = prop_oneof![Just("Always"), Just("OnFailure"), Just("Never")];
    let inits = prop::collection::vec(shape(), 0..4);
    let regulars = prop::collection::vec(shape(), 1..4);
    (policy, inits, regulars, 0..2usize).prop_map(|(policy, inits, regulars, ephemeral)| PodShape {
        policy,
        inits,
        regulars,
        ephemeral,
    })
}

impl PodShape {
    fn world(&self) -> World {
        let probe = |on: bool| on.then(Probe::default);
        let mut w = World::new(self.policy);
        for (i, s) in self.inits.iter().enumerate() {
            let own = if s.sidecar { Some("Always") } else { None };
            let c = Container {
                restart_policy: own.map(str::to_owned),
                startup_probe: probe(s.startup && s.sidecar),
                liveness_probe: probe(s.liveness && s.sidecar),
                ..container(&format!("i{i}"))
            };
            w.spec().init_containers.get_or_insert_default().push(c);
        }
        for (i, s) in self.regulars.iter().enumerate() {
            let c = Container {
                restart_policy: s.own.map(str::to_owned),
                startup_probe: probe(s.startup),
                liveness_probe: probe(s.liveness),
                ..container(&format!("c{i}"))
            };
            w.spec().containers.push(c);
        }
        (0..self.ephemeral).fold(w, |w, i| w.ephemeral(&format!("e{i}")))
    }

    fn shape_of(&self, name: &str) -> Option<&Shape> {
        let index: usize = name.get(1..)?.parse().ok()?;
        if name.starts_with('c') { self.regulars.get(index) } else { self.inits.get(index) }
    }
}

/// One random instance in the history of a pod.
#[derive(Clone, Debug)]
struct Seen {
    container: prop::sample::Index,
    state: u8,
    code: i32,
    oom: bool,
    other_image: bool,
    sandbox: prop::sample::Index,
    liveness: Option<u8>,
    startup: Option<u8>,
    resumable: bool,
}

prop_compose! {
    fn seen()(
        container in any::<prop::sample::Index>(),
        state in 0..6u8,
        code in prop_oneof![2 => Just(0), 1 => Just(1), 1 => Just(137)],
        oom in prop::bool::weighted(0.1),
        other_image in prop::bool::weighted(0.1),
        sandbox in any::<prop::sample::Index>(),
        liveness in prop::option::of(0..3u8),
        startup in prop::option::of(0..3u8),
        resumable in prop::bool::weighted(0.3),
    ) -> Seen {
        Seen { container, state, code, oom, other_image, sandbox, liveness, startup, resumable }
    }
}

fn result(n: u8) -> ProbeVerdict {
    [ProbeVerdict::Unknown, ProbeVerdict::Success, ProbeVerdict::Failure][usize::from(n)]
}

/// A pod with any past at all: sandboxes, instances, verdicts.
fn any_world() -> impl Strategy<Value = (PodShape, World)> {
    let sandboxes = prop::collection::vec(prop::bool::weighted(0.6), 0..3);
    (pod_shape(), sandboxes, prop::collection::vec(seen(), 0..8)).prop_map(|(shape, sandboxes, history)| {
        let mut w = shape.world();
        sandboxes.iter().for_each(|ready| w.add_sandbox(*ready));
        let names: Vec<String> = names(&w);
        // Containers belong to sandboxes.
        for s in if sandboxes.is_empty() { &[][..] } else { &history[..] } {
            remember(&mut w, &names, s);
        }
        (shape, w)
    })
}

fn names(w: &World) -> Vec<String> {
    let spec = w.pod.spec.as_ref().unwrap();
    spec.init_containers.iter().flatten().chain(&spec.containers).map(|c| c.name.clone()).collect()
}

fn remember(w: &mut World, names: &[String], s: &Seen) {
    let name = s.container.get(names);
    // Nobody creates a container beside a running one of that name.
    if w.observed.instances(name).any(|o| o.state == ContainerState::Running) {
        return;
    }
    let state = match s.state {
        0 => ContainerState::Created,
        1 | 2 => ContainerState::Running,
        3 => ContainerState::Unknown,
        _ => ContainerState::Exited,
    };
    let count = u32::try_from(w.observed.instances(name).count()).unwrap();
    // What runs is of the newest sandbox: a new one is made only after everything was stopped.
    let sandbox = match state {
        ContainerState::Running => w.observed.sandboxes[0].id.clone(),
        _ => s.sandbox.get(&w.observed.sandboxes).id.clone(),
    };
    let id = w.add_instance(name, state, count);
    let o = w.observed.containers.iter_mut().find(|o| o.id == id).unwrap();
    o.sandbox = sandbox;
    if state == ContainerState::Exited {
        o.exit_code = s.code;
        o.reason = if s.oom { "OOMKilled".into() } else { String::new() };
    }
    if s.other_image {
        o.hash = Some(1);
    }
    let started = state != ContainerState::Created;
    if let Some(n) = s.liveness.filter(|_| started) {
        w.probes.liveness.insert(id.clone(), result(n));
    }
    if let Some(n) = s.startup.filter(|_| started) {
        w.probes.startup.insert(id.clone(), result(n));
    }
    if s.resumable {
        w.resumable.insert(id);
    }
}

/// A worker asks for a plan only while the phase is not terminal (pod-lifecycle 9.3): something may still run.
fn terminal(w: &World) -> bool {
    let over = |c: &Container| {
        w.observed
            .container(&c.name)
            .is_some_and(|o| o.state == ContainerState::Exited && !exit_restarts(&w.pod, c, o.exit_code, w.gates))
    };
    let failed = |c: &Container| {
        !pod::is_sidecar(c)
            && w.observed
                .container(&c.name)
                .is_some_and(|o| init_failed(o) && !failed_init_restarts(&w.pod, c, o, w.gates))
    };
    pod::regular_containers(&w.pod).iter().all(over) || pod::init_containers(&w.pod).iter().any(failed)
}

fn due(plan: &PodPlan) -> BTreeSet<String> {
    plan.starts().filter(|s| s.hold.is_none()).map(|s| s.name.clone()).collect()
}

fn live(w: &World) -> impl Iterator<Item = (ContainerId, String)> + '_ {
    w.observed
        .active_containers()
        .filter(|o| o.state == ContainerState::Running)
        .map(|o| (o.id.clone(), o.name.clone()))
}

/// Lets the world go on for a while: init containers finish, probes decide, regular containers do what their shape says.
fn live_on(shape: &PodShape, w: &mut World) {
    w.now = w.now.plus(Duration::from_secs(3600));
    let running: Vec<(ContainerId, String)> = live(w).collect();
    for (id, name) in running {
        let (kind, c) = w.container(&name);
        match kind {
            ContainerKind::Init => w.stop(&id, 0),
            ContainerKind::Regular => {
                if let Some(code) = shape.shape_of(&name).and_then(|s| s.exits) {
                    w.stop(&id, code);
                }
            }
            ContainerKind::Sidecar | ContainerKind::Ephemeral => {}
        }
        if c.startup_probe.is_some() {
            w.probes.startup.insert(id.clone(), ProbeVerdict::Success);
        }
        if c.liveness_probe.is_some() {
            w.probes.liveness.insert(id, ProbeVerdict::Success);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(500) })]

    /// The second pass over an unchanged world undoes nothing of the first, repeats nothing and kills nothing.
    #[test]
    fn a_second_pass_never_fights_the_first((_, mut w) in any_world()) {
        prop_assume!(!terminal(&w));
        let first = w.plan();
        w.apply(&first);
        prop_assume!(!terminal(&w));
        let second = w.plan();
        let alive = second.kill_pod.as_ref().is_some_and(|k| k.anything_alive);
        let done = second.kill_pod.as_ref().is_some_and(|k| k.cause == crate::Cause::AllDone);
        prop_assert!(!alive || done, "{:?}\n{:?}", first.explain(), second.explain());
        prop_assert!(second.create_sandbox.is_none() || first.kill_pod.is_some() && first.create_sandbox.is_none());
        let again: Vec<_> = due(&second).intersection(&due(&first)).cloned().collect();
        prop_assert!(again.is_empty(), "{again:?} twice\n{:?}\n{:?}", first.explain(), second.explain());
        let fresh: BTreeSet<_> = due(&first);
        prop_assert!(second.kill.iter().all(|k| !fresh.contains(&k.name)));
        prop_assert!(second.reset.is_empty() || first.reset.is_empty());
        prop_assert!(second.purge_init.is_empty() || second.create_sandbox.is_some());
    }

    /// Without init and ephemeral containers one pass is all: the next finds nothing to do.
    #[test]
    fn one_pass_is_enough_without_init_containers((_, mut w) in any_world()) {
        w.spec().ephemeral_containers = None;
        w.spec().init_containers = None;
        prop_assume!(!terminal(&w));
        let first = w.plan();
        w.apply(&first);
        if !terminal(&w) {
            let second = w.plan();
            prop_assert!(second.is_quiet(), "{:?}\n{:?}", first.explain(), second.explain());
        }
    }

    /// From any past the pod reaches what was asked for: every regular container runs or is done, sidecars run.
    #[test]
    fn every_pod_converges((shape, mut w) in any_world()) {
        let mut shape = shape;
        for s in &mut shape.regulars {
            // Run for ever, or end well, or fail where nobody restarts: else there is no end to reach.
            let policy = s.own.unwrap_or(shape.policy);
            if policy == "Always" || policy == "OnFailure" && s.exits == Some(1) {
                s.exits = None;
            }
        }
        for _ in 0..40 {
            if terminal(&w) {
                return Ok(());
            }
            let plan = w.plan();
            prop_assert!(plan.starts().all(|s| s.hold.is_none()), "an hour outlasts every back-off");
            let quiet = plan.is_quiet() && plan.waits.is_empty();
            w.apply(&plan);
            if quiet && plan.kill_pod.is_some() {
                // 4.3 B 1: a once pod of which anything was recorded is given up.
                prop_assert_eq!(shape.policy, "Never");
                return Ok(());
            }
            if quiet {
                let running: BTreeSet<String> = live(&w).map(|(_, n)| n).collect();
                for c in pod::regular_containers(&w.pod) {
                    let ended = w.observed.container(&c.name).is_some_and(|o| o.state == ContainerState::Exited);
                    prop_assert!(running.contains(&c.name) || ended, "{} neither runs nor has ended", c.name);
                }
                for s in pod::init_containers(&w.pod).iter().filter(|c| pod::is_sidecar(c)) {
                    prop_assert!(running.contains(&s.name), "sidecar {} does not run", s.name);
                }
                let forever = shape.regulars.iter().all(|s| s.exits.is_none());
                if forever {
                    return Ok(());
                }
            }
            live_on(&shape, &mut w);
        }
        prop_assert!(terminal(&w) || w.plan().is_quiet(), "no end after 40 passes: {:?}", w.plan().explain());
    }

    /// A pod starts from nothing in order: one init container at a time, regular ones only after all of them.
    #[test]
    fn initialisation_goes_step_by_step(shape in pod_shape(), interrupted in prop::collection::vec(any::<bool>(), 30)) {
        let mut w = shape.world();
        let mut reached = 0;
        for interrupt in interrupted {
            if terminal(&w) {
                break;
            }
            let plan = w.plan();
            for s in &plan.init {
                prop_assert!(s.index <= reached + 1, "{} starts too early", s.name);
                reached = reached.max(s.index);
            }
            let inits = pod::init_containers(&w.pod).len();
            if !plan.regular.is_empty() && inits > 0 {
                prop_assert_eq!(reached + 1, inits, "regular containers before initialisation");
            }
            w.apply(&plan);
            if interrupt {
                // The worker died between create and start: the newest running one was only created.
                let newest = w.observed.containers.iter_mut().find(|o| o.state == ContainerState::Running);
                if let Some(o) = newest.filter(|o| plan.starts().any(|s| s.name == o.name)) {
                    o.state = ContainerState::Created;
                    w.resumable.insert(o.id.clone());
                    let again = w.plan();
                    let count = w.observed.containers.len();
                    w.apply(&again);
                    prop_assert!(w.observed.containers.len() >= count);
                }
            }
            live_on(&shape, &mut w);
        }
        for o in &w.observed.containers {
            let crashed = shape.shape_of(&o.name).and_then(|s| s.exits).is_some();
            let instances = w.observed.instances(&o.name).count();
            prop_assert!(instances == 1 || crashed, "{} was created {instances} times", o.name);
        }
    }

    /// The plan does not depend on the order in which the runtime lists things.
    #[test]
    fn order_of_observations_does_not_matter((_, mut w) in any_world(), seed in any::<u64>()) {
        let before = w.plan();
        let mut rng = seed;
        let mut draw = move |n: usize| {
            rng = rng.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(rng >> 33).unwrap() % n
        };
        for i in (1..w.observed.containers.len()).rev() {
            w.observed.containers.swap(i, draw(i + 1));
        }
        for i in (1..w.observed.sandboxes.len()).rev() {
            w.observed.sandboxes.swap(i, draw(i + 1));
        }
        w.observed.normalise();
        prop_assert_eq!(before, w.plan());
    }

    /// Nothing is both kept and touched, and every restart that a kill promises is in the plan.
    #[test]
    fn a_plan_does_not_contradict_itself((_, w) in any_world()) {
        let plan = w.plan();
        let running = w.observed.containers.iter().filter(|o| o.state == ContainerState::Running).count();
        prop_assert!(plan.keep <= running);
        let starts: Vec<&str> = plan.starts().map(|s| s.name.as_str()).collect();
        let once: BTreeSet<&str> = starts.iter().copied().collect();
        prop_assert_eq!(starts.len(), once.len(), "a container is started twice");
        for k in &plan.kill {
            prop_assert_eq!(k.restart, once.contains(k.name.as_str()), "{}", k.name);
        }
        if plan.kill_pod.is_some() && plan.create_sandbox.is_none() {
            prop_assert!(plan.init.is_empty() && plan.regular.is_empty(), "a dead pod starts nothing");
        }
        if plan.create_sandbox.is_some() {
            prop_assert!(plan.ephemeral.is_empty() && plan.kill_pod.is_some());
        }
    }
}
