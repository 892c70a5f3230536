//! The lease: a heartbeat of its own, whatever happens to the status (interfaces 8.9).

use std::sync::Arc;
use std::time::Duration;

use actor::{Actor, AsyncContext, Clock, Ctx, SpawnHandle, supervised};
use contract::board::{ValuePoster, ValueReader};
use contract::node::{LeaseState, NodeView};
use contract::{Crew, NodeLease as Role};
use model::Timestamp;
use model::core::Node;
use model::k8s_openapi::api::coordination::v1::Lease;
use node_status::lease::{self, NAMESPACE};
use ports::api::{ApiError, ApiExt, ApiResult, ApiServer, Method, Request, Throttle};

/// Tries of one renewal.
const TRIES: usize = 5;
/// Between tries to get hold of a lease.
const RETRY_FIRST: Duration = Duration::from_millis(100);
const RETRY_MOST: Duration = Duration::from_secs(7);
/// A renewal comes up to this share of the interval late.
const JITTER: f64 = 0.04;

/// Settings.
#[derive(Clone, Debug)]
pub struct LeaseConfig {
    /// Name of the Node.
    pub node: String,
    /// `nodeLeaseDurationSeconds`; renewed four times as often.
    pub duration: Duration,
}

impl LeaseConfig {
    fn seconds(&self) -> i32 {
        i32::try_from(self.duration.as_secs()).unwrap_or(i32::MAX)
    }

    fn interval(&self) -> Duration {
        self.duration / 4
    }
}

/// What the lease actor works with.
#[derive(Clone)]
pub struct LeaseDeps {
    /// The API server.
    pub api: Arc<dyn ApiServer>,
}

impl std::fmt::Debug for LeaseDeps {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("node_manager::LeaseDeps")
    }
}

/// The actor.
#[derive(Debug)]
pub struct NodeLease {
    /// NodeManager's view, for the UID of the Node.
    node: ValueReader<NodeView>,
    /// How it goes.
    state: ValuePoster<LeaseState>,
    config: Arc<LeaseConfig>,
    deps: Arc<LeaseDeps>,
    /// As the API server answered last: renewals need not read it.
    last: Option<Lease>,
    retry: Duration,
    busy: bool,
    /// The timer of the next beat.
    next: Option<SpawnHandle>,
}

supervised!(NodeLease);

impl Actor for NodeLease {
    type Context = Ctx<Self>;

    fn started(&mut self, ctx: &mut Ctx<Self>) {
        self.beat(ctx);
        // Without its Node there is no lease: as soon as there is one, it is made.
        ctx.watch(self.node.subscribe(), |act, view, ctx| {
            if act.last.is_none() && view.api_uid().is_some() {
                act.retry = RETRY_FIRST;
                act.beat(ctx);
            }
        });
    }
}

impl NodeLease {
    /// A new generation; the lease is read when it starts.
    #[must_use]
    pub fn new(crew: &Crew<Role>, config: Arc<LeaseConfig>, deps: Arc<LeaseDeps>) -> Self {
        let (node, state) = (crew.value(), crew.publisher());
        Self { node, state, config, deps, last: None, retry: RETRY_FIRST, busy: false, next: None }
    }

    fn beat(&mut self, ctx: &mut Ctx<Self>) {
        if self.busy {
            return;
        }
        self.busy = true;
        if let Some(timer) = self.next.take() {
            ctx.cancel_future(timer);
        }
        let (config, deps, node) = (self.config.clone(), self.deps.clone(), self.node.clone());
        let renewal = Renewal { config, deps, node, clock: ctx.clock().clone() };
        let (last, faults) = (self.last.take(), ctx.faults());
        let work = async move {
            faults.hit("before-renew").await;
            let out = renewal.run(last).await;
            faults.hit("after-renew").await;
            out
        };
        ctx.run(work, Self::beaten);
    }

    fn beaten(&mut self, out: ApiResult<Lease>, ctx: &mut Ctx<Self>) {
        self.busy = false;
        let before = self.state.get();
        let wait = match out {
            Ok(lease) => {
                self.last = Some(lease);
                self.retry = RETRY_FIRST;
                let renewed_at = Some(Timestamp(ctx.clock().unix_nanos()));
                self.state.publish(LeaseState { renewed_at, error: None });
                self.config.interval().mul_f64(1.0 + JITTER * ctx.rng().f64())
            }
            Err(e) => {
                if before.error.is_none() {
                    tracing::warn!(error = %e, "the node lease is not renewed");
                }
                let error = Some(e.to_string());
                self.state.publish(LeaseState { renewed_at: before.renewed_at, error });
                let wait = self.retry;
                self.retry = (self.retry * 2).min(RETRY_MOST);
                wait
            }
        };
        self.next = Some(ctx.after(wait, |act, ctx| {
            act.next = None;
            act.beat(ctx);
        }));
    }
}

struct Renewal {
    config: Arc<LeaseConfig>,
    deps: Arc<LeaseDeps>,
    node: ValueReader<NodeView>,
    clock: Clock,
}

impl Renewal {
    /// Renews the last known lease; without one, or when it is gone or not ours to guess, the one that the API server has;
    /// and makes one when there is none.
    async fn run(&self, last: Option<Lease>) -> ApiResult<Lease> {
        let mut failure = None;
        let mut known = last;
        for _ in 0..TRIES {
            let base = match known.take() {
                Some(base) => base,
                None => match self.call(Method::Get, Some(&self.config.node), None).await {
                    Ok(found) => found,
                    Err(e) if e.is_not_found() => return self.create().await,
                    Err(e) => return Err(e),
                },
            };
            let node = self.node.get();
            let lease = lease::renewed(&base, &self.config.node, node.api_uid(), self.config.seconds(), self.now());
            match self.call(Method::Put, Some(&self.config.node), Some(&lease)).await {
                Ok(lease) => return Ok(lease),
                Err(e) if e.is_conflict() || e.is_not_found() => failure = Some(e),
                Err(e) => {
                    known = Some(base);
                    failure = Some(e);
                }
            }
        }
        Err(failure.unwrap_or(ApiError::NotReady { message: "no try was made".to_owned() }))
    }

    /// A lease belongs to its Node, so that it goes with it: without the Node's UID none is made.
    async fn create(&self) -> ApiResult<Lease> {
        let view = self.node.get();
        let uid = match view.api_uid() {
            Some(uid) => uid.to_owned(),
            None => {
                let request = Request::to::<Node>(Method::Get, None, Some(&self.config.node));
                let node: Node = self.deps.api.fetch(self.beat(request)).await?;
                node.metadata.uid.unwrap_or_default()
            }
        };
        let lease = lease::new(&self.config.node, &uid, self.config.seconds(), self.now());
        self.call(Method::Post, None, Some(&lease)).await
    }

    async fn call(&self, method: Method, name: Option<&str>, body: Option<&Lease>) -> ApiResult<Lease> {
        let mut request = self.beat(Request::to::<Lease>(method, Some(NAMESPACE), name));
        if let Some(body) = body {
            request = request.json(body)?;
        }
        self.deps.api.fetch(request).await
    }

    fn beat(&self, request: Request) -> Request {
        request.throttle(Throttle::Unlimited).deadline(self.config.interval().max(Duration::from_secs(1)))
    }

    fn now(&self) -> Timestamp {
        Timestamp(self.clock.unix_nanos())
    }
}
