//! The actor: reads what there is, asks for what is due, publishes.

use std::sync::Arc;
use std::time::Duration;

use actor::{Actor, AsyncContext, Class, Ctx, chain, supervised};
use cert_rotation::rotation::{self, ClientState};
use cert_rotation::{Files, Template, template};
use contract::Crew;
use contract::board::{ValuePoster, ValueReader};
use contract::certificates::{CertificateView, KeyPair};
use contract::node::NodeView;
use metrics::certificates;
use model::core::NodeAddress;
use ports::api::ApiServer;
use ports::host::HostFs;

use crate::config::{ClientSource, Config, ServingSource};
use crate::request::{Job, RequestError, obtain};
use crate::rotated::{Current, Phase, Role, Rotated, Unrotated};
use crate::store::{self, StoreError, StoredPair};

/// How often deadlines, files and the end of the client certificate are checked (interfaces 3.10).
const CHECK: Duration = Duration::from_secs(10);

/// What CertificateManager works with.
#[derive(Clone)]
pub struct Deps {
    /// The API server with the credentials of the node.
    pub api: Arc<dyn ApiServer>,
    /// The API server with the bootstrap token, used while there is no valid client certificate.
    pub bootstrap_api: Option<Arc<dyn ApiServer>>,
    /// Files.
    pub fs: Arc<dyn HostFs>,
}

impl std::fmt::Debug for Deps {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("certificate_manager::Deps")
    }
}

/// What speaks for and against going on with the client certificate.
#[derive(Debug, Default)]
struct ClientHealth {
    /// The API server takes requests.
    server_healthy: bool,
    /// When there was a valid certificate last.
    last_valid_s: i64,
    /// The one request of a bootstrap without rotation came to nothing, for this reason.
    gave_up: Option<String>,
}

/// The actor.
#[derive(Debug)]
pub struct CertificateManager {
    view: ValuePoster<CertificateView>,
    node: ValueReader<NodeView>,
    pub(crate) config: Arc<Config>,
    pub(crate) deps: Deps,
    client: Option<Rotated>,
    serving: Option<Rotated>,
    pub(crate) unrotated: Unrotated,
    /// Of the node, for requests of serving certificates.
    addresses: Vec<NodeAddress>,
    client_health: ClientHealth,
}

impl Actor for CertificateManager {
    type Context = Ctx<Self>;

    fn started(&mut self, ctx: &mut Ctx<Self>) {
        self.client_health.last_valid_s = now_s(ctx);
        self.load(Role::Client, ctx);
        self.load(Role::Serving, ctx);
        self.read_unrotated(ctx);
        ctx.watch(self.node.subscribe(), |act, view, ctx| act.note_node(&view, ctx));
        ctx.every(CHECK, |act, ctx| {
            act.request_if_due(Role::Client, ctx);
            act.request_if_due(Role::Serving, ctx);
            act.read_unrotated(ctx);
            act.publish(now_s(ctx));
        });
    }
}
supervised!(CertificateManager);

pub(crate) fn now_s(ctx: &Ctx<CertificateManager>) -> i64 {
    ctx.clock().unix_nanos().div_euclid(1_000_000_000)
}

impl CertificateManager {
    /// A fresh instance; it reads the certificate folder when it starts.
    #[must_use]
    pub fn new(crew: &Crew<contract::CertificateManager>, config: Arc<Config>, deps: Deps) -> Self {
        let view = crew.publisher::<CertificateView>();
        let dir = &config.cert_dir;
        let client = (config.client != ClientSource::Off)
            .then(|| Rotated::new(Files::client(dir), config.client == ClientSource::Once));
        let serving =
            matches!(config.serving, ServingSource::Rotate { .. }).then(|| Rotated::new(Files::serving(dir), false));
        // What stands on the board stays in force until the files were read.
        let unrotated = Unrotated { pair: view.get().serving.clone(), ..Unrotated::default() };
        Self {
            view,
            node: crew.value(),
            config,
            deps,
            client,
            serving,
            unrotated,
            addresses: Vec::new(),
            client_health: ClientHealth::default(),
        }
    }

    fn rotated(&mut self, role: Role) -> Option<&mut Rotated> {
        match role {
            Role::Client => self.client.as_mut(),
            Role::Serving => self.serving.as_mut(),
        }
    }

    /// Reads the pair in force. A pair of the kubeconfig takes its place when there is none.
    fn load(&mut self, role: Role, ctx: &mut Ctx<Self>) {
        let Some(rotated) = self.rotated(role) else { return };
        let files = rotated.files.clone();
        let (configured, imported) = match (role, &self.config.client, &self.config.serving) {
            (Role::Client, ClientSource::Rotate { imported, files }, _) => (files.clone(), imported.clone()),
            (Role::Serving, _, ServingSource::Rotate { files }) => (files.clone(), None),
            _ => (None, None),
        };
        let (fs, effects, now) = (self.deps.fs.clone(), ctx.effects(), now_s(ctx));
        let work = async move {
            effects.hit("load").await;
            let read = move || -> Result<Option<(StoredPair, bool)>, StoreError> {
                let found = store::load(&*fs, &files, configured.as_ref())?;
                if let Some(stored) = &found {
                    store::forget_spent(&*fs, &files, stored)?;
                }
                let (None, Some(pair)) = (&found, imported) else { return Ok(found.map(|stored| (stored, false))) };
                let stored = store::stored_pair(pair.certificate, pair.key, files.dir())?;
                store::save(&*fs, &files, &stored.pair, now)?;
                Ok(Some((stored, true)))
            };
            effects.attempt(Class::HostFiles, read).await
        };
        ctx.run(work, move |act: &mut Self, found, ctx| {
            let chance = ctx.rng().f64();
            let Some(rotated) = act.rotated(role) else { return };
            rotated.phase = Phase::Idle;
            match found {
                Ok(Ok(found)) => {
                    rotated.current = found.map(|(stored, imported)| Current::new(stored, chance, imported))
                }
                Ok(Err(error)) => {
                    rotated.error = Some(chain(&error));
                    tracing::error!(error = chain(&error), ?role, "the certificate of this node cannot be read");
                }
                Err(error) => tracing::error!(%error, "reading certificates failed"),
            }
            act.publish(now_s(ctx));
            act.request_if_due(role, ctx);
            act.request_if_due(Role::Serving, ctx);
        });
    }

    fn note_node(&mut self, view: &NodeView, ctx: &mut Ctx<Self>) {
        let status = view.node.as_ref().and_then(|n| n.status.as_ref());
        let addresses = status.and_then(|s| s.addresses.clone()).unwrap_or_default();
        if addresses != self.addresses {
            self.addresses = addresses;
            self.request_if_due(Role::Serving, ctx);
        }
    }

    fn template(&self, role: Role) -> Option<Template> {
        match role {
            Role::Client => Some(template::client(&self.config.node_name)),
            Role::Serving => template::serving(&self.config.node_name, &self.addresses),
        }
    }

    /// Whether there are credentials to ask with.
    fn may_ask(&self, role: Role, now: i64) -> bool {
        role == Role::Client || self.client.as_ref().is_none_or(|c| c.is_valid(now))
    }

    /// Asks for a certificate when one is due.
    fn request_if_due(&mut self, role: Role, ctx: &mut Ctx<Self>) {
        let now = now_s(ctx);
        let Some(template) = self.template(role) else { return };
        if !self.may_ask(role, now) || self.client_health.gave_up.is_some() {
            return;
        }
        let Some(rotated) = self.rotated(role) else { return };
        match &rotated.phase {
            Phase::Loading | Phase::Pausing => return,
            Phase::Requesting { template: asked, .. } if *asked == template => return,
            Phase::Requesting { effect, .. } => {
                tracing::info!("the addresses of the node changed: the open certificate request is given up");
                ctx.cancel_future(*effect);
                rotated.phase = Phase::Idle;
                rotated.failures = 0;
            }
            Phase::Idle => {}
        }
        if let Some(why) = rotated.due(now, &template) {
            tracing::info!(signer = template.signer, why, "asking for a new certificate");
            self.request(role, template, ctx);
        }
    }

    fn request(&mut self, role: Role, template: Template, ctx: &mut Ctx<Self>) {
        let now = now_s(ctx);
        let (api, bootstrap) = (self.deps.api.clone(), self.deps.bootstrap_api.clone());
        let fs = self.deps.fs.clone();
        let (clock, effects) = (ctx.clock().clone(), ctx.effects());
        let Some(rotated) = self.rotated(role) else { return };
        let with_bootstrap = role == Role::Client && !rotated.is_valid(now);
        let job = Job {
            api: bootstrap.filter(|_| with_bootstrap).unwrap_or(api),
            fs,
            files: rotated.files.clone(),
            template: template.clone(),
            limit: if rotated.once { rotation::BOOTSTRAP_WAIT_LIMIT } else { rotation::WAIT_LIMIT },
            once: rotated.once,
            clock,
            effects,
        };
        let effect = ctx.run(obtain(job), move |act: &mut Self, answer, ctx| act.on_answer(role, answer, ctx));
        rotated.phase = Phase::Requesting { effect, template };
    }

    fn on_answer(&mut self, role: Role, answer: Result<StoredPair, RequestError>, ctx: &mut Ctx<Self>) {
        let (now, chance) = (now_s(ctx), ctx.rng().f64());
        let template = self.template(role);
        match &answer {
            Ok(_) => self.client_health.server_healthy = true,
            Err(RequestError::Store(_) | RequestError::CutOff) => {}
            Err(error) => self.client_health.server_healthy = rotation::is_healthy_after(error.code()),
        }
        let Some(rotated) = self.rotated(role) else { return };
        rotated.phase = Phase::Idle;
        match answer {
            Ok(stored) => {
                if let Some(old) = rotated.current.as_ref().filter(|_| role == Role::Serving) {
                    let used =
                        Duration::from_secs(u64::try_from(now - old.pair.not_before.0 / 1_000_000_000).unwrap_or(0));
                    certificates::SERVER_ROTATION.observe(used.as_secs_f64());
                }
                tracing::info!(?role, until = stored.pair.not_after.rfc3339_nano(), "new certificate");
                rotated.error = None;
                rotated.current = Some(Current::new(stored, chance, false));
                // One that is due again at once is not asked for without a pause.
                if template.is_some_and(|t| rotated.due(now, &t).is_some()) {
                    self.pause(role, ctx);
                } else {
                    rotated.failures = 0;
                }
            }
            Err(error) => {
                let (text, late) = (chain(&error), matches!(error, RequestError::NotInTime { .. }));
                tracing::warn!(?role, error = text, "no certificate");
                match role {
                    Role::Client => certificates::CLIENT_RENEW_ERRORS.inc(),
                    Role::Serving => certificates::SERVER_RENEW_ERRORS.inc(),
                }
                if rotated.once && late {
                    self.client_health.gave_up = Some(format!("bootstrap failed: {text}"));
                } else {
                    rotated.error = Some(text);
                    self.pause(role, ctx);
                }
            }
        }
        self.publish(now);
        self.request_if_due(Role::Serving, ctx);
    }

    fn pause(&mut self, role: Role, ctx: &mut Ctx<Self>) {
        let chance = ctx.rng().f64();
        let Some(rotated) = self.rotated(role) else { return };
        rotated.failures = rotated.failures.saturating_add(1);
        rotated.phase = Phase::Pausing;
        ctx.after(rotation::pause(rotated.failures, chance), move |act, ctx| {
            if let Some(rotated) = act.rotated(role)
                && matches!(rotated.phase, Phase::Pausing)
            {
                rotated.phase = Phase::Idle;
                act.request_if_due(role, ctx);
            }
        });
    }

    fn must_exit(&mut self, now: i64) -> Option<String> {
        let rotated = self.client.as_ref().filter(|k| !k.once && !matches!(k.phase, Phase::Loading));
        let health = &mut self.client_health;
        let Some(rotated) = rotated else { return health.gave_up.clone() };
        if rotated.is_valid(now) {
            health.last_valid_s = now;
        }
        rotation::must_exit(ClientState {
            now_s: now,
            not_after_s: rotated.current.as_ref().map(|c| c.facts.not_after_s),
            last_valid_s: health.last_valid_s,
            server_healthy: health.server_healthy,
        })
    }

    pub(crate) fn publish(&mut self, now: i64) {
        let old = self.view.get();
        let error_of = |k: &Option<Rotated>| k.as_ref().and_then(|k| k.error.clone());
        let errors = [error_of(&self.client), error_of(&self.serving), self.unrotated.error.clone()];
        let errors: Vec<_> = errors.into_iter().flatten().collect();
        let pair_of = |rotated: &Option<Rotated>, old: &Option<Arc<KeyPair>>| match rotated {
            Some(Rotated { phase: Phase::Loading, .. }) => old.clone(),
            Some(rotated) => rotated.pair(),
            None => None,
        };
        let serving =
            if self.serving.is_some() { pair_of(&self.serving, &old.serving) } else { self.unrotated.pair.clone() };
        let view = CertificateView {
            client: pair_of(&self.client, &old.client),
            serving,
            error: (!errors.is_empty()).then(|| errors.join("; ")),
            must_exit: self.must_exit(now),
        };
        if view != *old {
            self.view.publish(view);
        }
    }
}
