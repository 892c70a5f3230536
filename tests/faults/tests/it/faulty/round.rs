//! One round: pods come, change, lose a container and go, and the node comes to rest again.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use actor::Kernel;
use fakes::FakeRuntime;
use fakes::runtime::{ExecReply, Features, Program, Pull};
use model::Timestamp;
use model::core::Pod;
use sim::{LIMIT, NODE_NAME, POD_URL, SimNode, World};
use tokio::time::{Instant, sleep};

use super::cases::{Case, Passages, STALL};
use super::{cast, world};
use crate::{secs, simple};

/// A stalled actor goes on after this.
const STALLED: Duration = Duration::from_secs(41);
/// Patience with a rule that has not struck: longer than any period of an actor that a round counts on.
const STRIKE: Duration = Duration::from_secs(70);
/// The same with a point that undisturbed rounds need not pass.
const SELDOM: Duration = Duration::from_secs(20);
/// A struck node must be as it should within this.
const CONVERGE: Duration = Duration::from_secs(400);
/// Restarts of actors are counted per minute; a round's time apart, cases stay below every budget.
const REST: Duration = Duration::from_secs(15);

pub(crate) struct Round {
    pub(crate) node: SimNode,
    /// Running containers of residents that never end by themselves.
    pub(super) steady: BTreeSet<String>,
    /// Number of the guest that starts in this round.
    pub(crate) k: usize,
    /// How long the last case took to get where it should be.
    pub(super) took: Duration,
    /// Its rule struck.
    pub(super) struck: bool,
    /// Points that every undisturbed round passes, and how often at least.
    pub(super) passages: Passages,
    /// Versions of statuses that went back.
    pub(super) versions: Rc<RefCell<Vec<String>>>,
    /// Rounds are not in step with what actors do at each so many seconds.
    out_of_step: bool,
}

impl Round {
    async fn new(kernel: &Kernel, features: Features) -> Self {
        let features = Features { user_namespaces: true, ..features };
        let now = Timestamp(kernel.clock().unix_nanos());
        let mut world = World::with_runtime(FakeRuntime::at(features, now)).joined();
        world::prepare(&mut world);
        world.settings.config.shutdown.grace_period = secs(30);
        let mut node = SimNode::down(world, kernel);
        node.world.web.put(POD_URL, &simple(cast::OF_URL, ""));
        world::change_objects(&node, 1);
        world::leave_behind(&node);
        world::lose_logind(&node);
        node.boot();
        node.world.runtime.add_images(&["app:1", "app:2", "tool:1"]);
        node.world.runtime.program("quick", &[Program::exits(secs(1), 0)]);
        node.world.runtime.program("crash", &[Program::exits(secs(1), 1)]);
        node.world.runtime.on_exec(|_| ExecReply { takes: Duration::from_millis(200), ..ExecReply::default() });
        node.world.runtime.registry("pulled:1", Pull::Succeeds(secs(1)));
        kernel.faults().enable();
        let versions = Rc::default();
        watch_versions(&node, &versions);
        let (took, passages) = (Duration::ZERO, Passages::default());
        let steady = BTreeSet::new();
        let mut round = Round { node, steady, k: 2, took, struck: false, passages, versions, out_of_step: false };
        round.fill().await;
        round.steady = round.residents_running();
        round
    }

    /// All that is there before the first round.
    async fn fill(&self) {
        let node = &self.node;
        for (name, text) in cast::residents() {
            node.put(&format!("{name}.yaml"), &text);
        }
        node.bind(cast::BOUND, cast::bound());
        world::change_plugins(node, 1);
        node.bind(cast::OBJECTS, cast::with_volumes(cast::KEPT));
        for k in 0..2 {
            node.put(&format!("guest{k}.yaml"), &cast::guest(&format!("guest{k}")));
            world::change_claims(node, k);
            node.bind(&format!("visitor{k}"), cast::visitor(&world::claim_of(k), k));
            let critical = format!("critical{k}");
            node.bind(&critical, cast::critical(k));
            node.until("the critical one is there", LIMIT, |n| n.is_ready(&critical)).await;
        }
        node.bind(&self.refused(1), cast::refused());
        let guests = ["guest0", "guest1", "visitor0", "visitor1"];
        let all = |n: &SimNode| super::wanted::residents_are_fine(n).is_ok() && guests.iter().all(|g| n.is_ready(g));
        node.until("residents and guests are there", LIMIT, all).await;
        sleep(secs(30)).await;
    }

    /// A node after two rounds without faults.
    pub(crate) async fn undisturbed(kernel: &Kernel) -> Self {
        Self::undisturbed_on(kernel, Features::containerd_1_6()).await
    }

    /// As [`Round::undisturbed`], on a runtime of another kind.
    pub(crate) async fn undisturbed_on(kernel: &Kernel, features: Features) -> Self {
        Self::two_rounds(Round::new(kernel, features).await).await
    }

    /// As [`Round::undisturbed_on`], for cases: one that always comes at the same second as some period of an actor may miss
    /// its point.
    pub(super) async fn out_of_step(kernel: &Kernel, features: Features) -> Self {
        Self::two_rounds(Round { out_of_step: true, ..Round::new(kernel, features).await }).await
    }

    async fn two_rounds(mut round: Round) -> Self {
        for _ in 0..2 {
            round.case(None).await.unwrap_or_else(|e| panic!("without any fault: {e}"));
        }
        round
    }

    pub(super) fn guest(&self, back: usize) -> String {
        format!("guest{}", self.k - back)
    }

    pub(super) fn visitor(&self, back: usize) -> String {
        format!("visitor{}", self.k - back)
    }

    pub(super) fn refused(&self, back: usize) -> String {
        format!("refused{}", self.k - back)
    }

    pub(super) fn critical(&self, back: usize) -> String {
        format!("critical{}", self.k - back)
    }

    /// A guest comes, one loses a container, one goes; a visitor comes, one is changed, one goes; a pod is refused; a critical
    /// pod takes the place of the one before; and what [`world`] has.
    pub(crate) fn stir(&self) {
        let node = &self.node;
        world::change_objects(node, self.k);
        node.world.runtime.remove_image("pulled:1");
        node.put(&format!("{}.yaml", self.guest(0)), &cast::guest(&self.guest(0)));
        if let Some(id) = node.running_id(&self.guest(1), "other") {
            node.world.runtime.exit(&id, 1);
        }
        node.remove(&format!("{}.yaml", self.guest(2)));
        world::change_claims(node, self.k);
        node.bind(&self.visitor(0), cast::visitor(&world::claim_of(self.k), self.k));
        world::delay_status(node, &self.visitor(0));
        self.change_visitor();
        self.resize_resident();
        node.delete(&self.visitor(2));
        node.bind(&self.refused(0), cast::refused());
        node.delete(&self.refused(1));
        node.bind(&self.critical(0), cast::critical(self.k));
        node.delete(&self.critical(2));
        world::leave_behind(node);
        world::add_stranger(node, self.k);
        world::grow_log(node);
        world::run_out_of_memory(node, self.k);
        world::lose_logind(node);
        world::add_image(node, self.k);
        world::change_networks(node, self.k);
        world::change_plugins(node, self.k);
        world::ask_beside(node);
    }

    /// The visitor of the last round gets another image and another container.
    fn change_visitor(&self) {
        let name = format!("{}-{NODE_NAME}", self.visitor(1));
        self.node.api().change::<Pod>(Some("default"), &name, |pod| {
            let spec = pod.spec.as_mut().expect("a pod of the API server has a spec");
            spec.containers[0].image = Some("app:2".to_owned());
            spec.ephemeral_containers = serde_json::from_value(cast::ephemeral()).expect("containers");
        });
    }

    /// A resident gets another size in place.
    fn resize_resident(&self) {
        let name = format!("{}-{NODE_NAME}", cast::BOUND);
        let size = cast::size(self.k);
        self.node.api().change::<Pod>(Some("default"), &name, |pod| {
            let spec = pod.spec.as_mut().expect("a pod of the API server has a spec");
            let resources = serde_json::json!({ "limits": { "memory": size } });
            spec.containers[0].resources = serde_json::from_value(resources).expect("resources");
        });
    }

    /// Waits until everything is as it would be without a fault; whether it is, is asked for afterwards.
    pub(crate) async fn converge(&self) {
        let last = Cell::new(0);
        self.node.holds_within(CONVERGE, |_| self.is_settled(&last)).await;
    }

    /// One case: a rule, or none.
    pub(crate) async fn case(&mut self, rule: Option<&Case>) -> Result<(), String> {
        let faults = self.node.kernel.faults().clone();
        faults.clear();
        self.node.world.runtime.forget_calls();
        self.node.api().forget_requests();
        let (before, passed) = (faults.log().len(), Passages::of(&self.node.kernel));
        if let Some(case) = rule {
            self.node.fault(&case.rule());
        }
        let begun = Instant::now();
        self.stir();
        if let Some(case) = rule.filter(|case| case.nth == 1) {
            self.strike_first(case, before).await?;
        }
        if rule.is_some_and(|case| case.action == STALL) {
            // What was asked while the actor stood still may come out wrong when it goes on.
            sleep(STALLED).await;
        }
        self.converge().await;
        self.took = begun.elapsed();
        if rule.is_some() && !self.node.holds_within(STRIKE, |_| faults.log().len() > before).await {
            return Err("undisturbed rounds pass the point so often, this one did not".to_owned());
        }
        self.converge().await;
        self.struck = faults.log().len() > before;
        faults.clear();
        if rule.is_none() {
            self.passages.join(&Passages::of(&self.node.kernel).since(&passed));
        }
        let answers = world::answers(&self.node).await;
        sleep(REST + secs(if self.out_of_step { self.k as u64 % 5 } else { 0 })).await;
        let verdict = self.verdict().and(answers);
        self.k += 1;
        verdict.map_err(|e| format!("{e}\n{}", self.node.picture()))
    }

    /// Sees to it that a point is passed.
    async fn strike_first(&mut self, case: &Case, before: usize) -> Result<(), String> {
        let faults = self.node.kernel.faults().clone();
        let struck = |_: &SimNode| faults.log().len() > before;
        let in_each_round = self.passages.count(&case.actor, &case.point) > 0;
        if !self.node.holds_within(if in_each_round { STRIKE } else { SELDOM }, struck).await {
            // A point that only a new generation passes.
            self.node.kernel.directory().kill(&case.actor);
        }
        if !self.node.holds_within(STRIKE, struck).await {
            // Or only a new daemon, as what is done once in its life.
            self.node.restart().await;
            watch_versions(&self.node, &self.versions);
        }
        if self.node.holds_within(STRIKE, struck).await { Ok(()) } else { Err("the point was not passed".to_owned()) }
    }
}

/// Notes every status whose version is lower than one seen before in this life of the daemon.
fn watch_versions(node: &SimNode, found: &Rc<RefCell<Vec<String>>>) {
    let (notes, board) = (found.clone(), node.wiring().board::<contract::status::StatusEntry>());
    let mut changes = board.changes();
    tokio::task::spawn_local(async move {
        let mut newest = BTreeMap::new();
        while changes.changed().await.is_ok() {
            for (uid, row) in board.snapshot() {
                let last = newest.insert(uid.clone(), row.version).unwrap_or_default();
                if row.version < last {
                    notes.borrow_mut().push(format!("{uid}: {last} then {}", row.version));
                }
            }
        }
    });
}
