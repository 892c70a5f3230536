//! The actor: reads what there is, asks for what is due, publishes.

use std::path::Path;
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

use crate::keeper::{ClientSource, Config, Current, Keeper, Phase, Role, ServingSource};
use crate::request::{Job, RequestError, obtain};
use crate::store::{self, Held, StoreError};

/// Between two looks at deadlines, files and the end of the client certificate (interfaces 3.10).
const LOOK: Duration = Duration::from_secs(10);

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

/// The actor.
#[derive(Debug)]
pub struct CertificateManager {
    view: ValuePoster<CertificateView>,
    node: ValueReader<NodeView>,
    config: Arc<Config>,
    deps: Deps,
    client: Option<Keeper>,
    serving: Option<Keeper>,
    /// Serving certificate that no request is made for (configured files, self-signed), and why it cannot be read.
    fixed: Option<Arc<KeyPair>>,
    fixed_error: Option<String>,
    reading_fixed: bool,
    addresses: Vec<NodeAddress>,
    server_healthy: bool,
    last_valid_s: i64,
    /// The one request of a bootstrap without rotation came to nothing.
    gave_up: Option<String>,
}

impl Actor for CertificateManager {
    type Context = Ctx<Self>;

    fn started(&mut self, ctx: &mut Ctx<Self>) {
        self.last_valid_s = now_s(ctx);
        self.load(Role::Client, ctx);
        self.load(Role::Serving, ctx);
        self.read_fixed(ctx);
        ctx.watch(self.node.subscribe(), |act, view, ctx| act.note_node(&view, ctx));
        ctx.every(LOOK, |act, ctx| {
            act.consider(Role::Client, ctx);
            act.consider(Role::Serving, ctx);
            act.read_fixed(ctx);
            act.publish(now_s(ctx));
        });
    }
}
supervised!(CertificateManager);

fn now_s(ctx: &Ctx<CertificateManager>) -> i64 {
    ctx.clock().unix_nanos().div_euclid(1_000_000_000)
}

impl CertificateManager {
    /// A fresh instance; it reads the certificate folder when it starts.
    #[must_use]
    pub fn new(crew: &Crew<contract::CertificateManager>, config: Arc<Config>, deps: Deps) -> Self {
        let view = crew.publisher::<CertificateView>();
        let dir = &config.cert_dir;
        let client = (config.client != ClientSource::Off)
            .then(|| Keeper::new(Files::client(dir), config.client == ClientSource::Once));
        let serving =
            matches!(config.serving, ServingSource::Rotate { .. }).then(|| Keeper::new(Files::serving(dir), false));
        // What stands on the board stays in force until the files were read.
        let fixed = view.get().serving.clone();
        Self {
            view,
            node: crew.value(),
            config,
            deps,
            client,
            serving,
            fixed,
            fixed_error: None,
            reading_fixed: false,
            addresses: Vec::new(),
            server_healthy: false,
            last_valid_s: 0,
            gave_up: None,
        }
    }

    fn keeper(&mut self, role: Role) -> Option<&mut Keeper> {
        match role {
            Role::Client => self.client.as_mut(),
            Role::Serving => self.serving.as_mut(),
        }
    }

    /// Reads the pair in force. A pair of the kubeconfig takes its place when there is none.
    fn load(&mut self, role: Role, ctx: &mut Ctx<Self>) {
        let Some(keeper) = self.keeper(role) else { return };
        let files = keeper.files.clone();
        let (configured, imported) = match (role, &self.config.client, &self.config.serving) {
            (Role::Client, ClientSource::Rotate { imported, files }, _) => (files.clone(), imported.clone()),
            (Role::Serving, _, ServingSource::Rotate { files }) => (files.clone(), None),
            _ => (None, None),
        };
        let (fs, effects, now) = (self.deps.fs.clone(), ctx.effects(), now_s(ctx));
        let work = async move {
            effects.hit("load").await;
            let read = move || -> Result<Option<(Held, bool)>, StoreError> {
                let found = store::load(&*fs, &files, configured.as_ref())?;
                if let Some(held) = &found {
                    store::forget_spent(&*fs, &files, held)?;
                }
                let (None, Some(pair)) = (&found, imported) else { return Ok(found.map(|held| (held, false))) };
                let held = store::held(pair.certificate, pair.key, files.dir())?;
                store::save(&*fs, &files, &held.pair, now)?;
                Ok(Some((held, true)))
            };
            effects.attempt(Class::HostFiles, read).await
        };
        ctx.run(work, move |act: &mut Self, found, ctx| {
            let chance = ctx.rng().f64();
            let Some(keeper) = act.keeper(role) else { return };
            keeper.phase = Phase::Idle;
            match found {
                Ok(Ok(found)) => keeper.current = found.map(|(held, imported)| Current::new(held, chance, imported)),
                Ok(Err(error)) => {
                    keeper.error = Some(chain(&error));
                    tracing::error!(error = chain(&error), ?role, "the certificate of this node cannot be read");
                }
                Err(error) => tracing::error!(%error, "reading certificates failed"),
            }
            act.publish(now_s(ctx));
            act.consider(role, ctx);
            act.consider(Role::Serving, ctx);
        });
    }

    fn note_node(&mut self, view: &NodeView, ctx: &mut Ctx<Self>) {
        let status = view.node.as_ref().and_then(|n| n.status.as_ref());
        let addresses = status.and_then(|s| s.addresses.clone()).unwrap_or_default();
        if addresses != self.addresses {
            self.addresses = addresses;
            self.consider(Role::Serving, ctx);
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
    fn consider(&mut self, role: Role, ctx: &mut Ctx<Self>) {
        let now = now_s(ctx);
        let Some(template) = self.template(role) else { return };
        if !self.may_ask(role, now) || self.gave_up.is_some() {
            return;
        }
        let Some(keeper) = self.keeper(role) else { return };
        match &keeper.phase {
            Phase::Loading | Phase::Pausing => return,
            Phase::Requesting { template: asked, .. } if *asked == template => return,
            Phase::Requesting { effect, .. } => {
                tracing::info!("the addresses of the node changed: the open certificate request is given up");
                ctx.cancel_future(*effect);
                keeper.phase = Phase::Idle;
                keeper.failures = 0;
            }
            Phase::Idle => {}
        }
        if let Some(why) = keeper.due(now, &template) {
            tracing::info!(signer = template.signer, why, "asking for a new certificate");
            self.request(role, template, ctx);
        }
    }

    fn request(&mut self, role: Role, template: Template, ctx: &mut Ctx<Self>) {
        let now = now_s(ctx);
        let (api, bootstrap) = (self.deps.api.clone(), self.deps.bootstrap_api.clone());
        let fs = self.deps.fs.clone();
        let (clock, effects) = (ctx.clock().clone(), ctx.effects());
        let Some(keeper) = self.keeper(role) else { return };
        let with_bootstrap = role == Role::Client && !keeper.is_valid(now);
        let job = Job {
            api: bootstrap.filter(|_| with_bootstrap).unwrap_or(api),
            fs,
            files: keeper.files.clone(),
            template: template.clone(),
            limit: if keeper.once { rotation::BOOTSTRAP_WAIT_LIMIT } else { rotation::WAIT_LIMIT },
            once: keeper.once,
            clock,
            effects,
        };
        let effect = ctx.run(obtain(job), move |act: &mut Self, answer, ctx| act.take(role, answer, ctx));
        keeper.phase = Phase::Requesting { effect, template };
    }

    fn take(&mut self, role: Role, answer: Result<Held, RequestError>, ctx: &mut Ctx<Self>) {
        let (now, chance) = (now_s(ctx), ctx.rng().f64());
        let template = self.template(role);
        match &answer {
            Ok(_) => self.server_healthy = true,
            Err(RequestError::Store(_) | RequestError::CutOff) => {}
            Err(error) => self.server_healthy = rotation::is_healthy_after(error.code()),
        }
        let Some(keeper) = self.keeper(role) else { return };
        keeper.phase = Phase::Idle;
        match answer {
            Ok(held) => {
                if let Some(old) = keeper.current.as_ref().filter(|_| role == Role::Serving) {
                    let used =
                        Duration::from_secs(u64::try_from(now - old.pair.not_before.0 / 1_000_000_000).unwrap_or(0));
                    certificates::SERVER_ROTATION.observe(used.as_secs_f64());
                }
                tracing::info!(?role, until = held.pair.not_after.rfc3339_nano(), "new certificate");
                keeper.error = None;
                keeper.current = Some(Current::new(held, chance, false));
                // One that is due again at once is not asked for in a circle.
                if template.is_some_and(|t| keeper.due(now, &t).is_some()) {
                    self.pause(role, ctx);
                } else {
                    keeper.failures = 0;
                }
            }
            Err(error) => {
                let (text, late) = (chain(&error), matches!(error, RequestError::NotInTime { .. }));
                tracing::warn!(?role, error = text, "no certificate");
                match role {
                    Role::Client => certificates::CLIENT_RENEW_ERRORS.inc(),
                    Role::Serving => certificates::SERVER_RENEW_ERRORS.inc(),
                }
                if keeper.once && late {
                    self.gave_up = Some(format!("bootstrap failed: {text}"));
                } else {
                    keeper.error = Some(text);
                    self.pause(role, ctx);
                }
            }
        }
        self.publish(now);
        self.consider(Role::Serving, ctx);
    }

    fn pause(&mut self, role: Role, ctx: &mut Ctx<Self>) {
        let chance = ctx.rng().f64();
        let Some(keeper) = self.keeper(role) else { return };
        keeper.failures = keeper.failures.saturating_add(1);
        keeper.phase = Phase::Pausing;
        ctx.after(rotation::pause(keeper.failures, chance), move |act, ctx| {
            if let Some(keeper) = act.keeper(role)
                && matches!(keeper.phase, Phase::Pausing)
            {
                keeper.phase = Phase::Idle;
                act.consider(role, ctx);
            }
        });
    }

    /// Reads the configured files, or makes the self-signed pair.
    fn read_fixed(&mut self, ctx: &mut Ctx<Self>) {
        let (source, dir) = (self.config.serving.clone(), self.config.cert_dir.clone());
        let is_fixed = matches!(source, ServingSource::Files { .. } | ServingSource::SelfSigned { .. });
        // The self-signed pair is read once in a life.
        let done = matches!(source, ServingSource::SelfSigned { .. }) && self.fixed.is_some();
        if !is_fixed || done || self.reading_fixed {
            return;
        }
        self.reading_fixed = true;
        let (fs, effects, now) = (self.deps.fs.clone(), ctx.effects(), now_s(ctx));
        let work = async move {
            effects.hit("read serving files").await;
            effects.attempt(Class::HostFiles, move || fixed(&*fs, &source, &dir, now)).await
        };
        ctx.run(work, |act: &mut Self, found, ctx| {
            act.reading_fixed = false;
            let error = match found {
                Ok(Ok(held)) => {
                    act.fixed = Some(Arc::new(held.pair));
                    None
                }
                Ok(Err(error)) => Some(error),
                Err(error) => Some(error.to_string()),
            };
            if let Some(error) = error.as_ref().filter(|e| act.fixed_error.as_ref() != Some(*e)) {
                let kept = if act.fixed.is_some() { "; the former one stays in force" } else { "" };
                tracing::error!(error, "the serving certificate cannot be read{kept}");
            }
            act.fixed_error = error;
            act.publish(now_s(ctx));
        });
    }

    fn must_exit(&mut self, now: i64) -> Option<String> {
        let keeper = self.client.as_ref().filter(|k| !k.once && !matches!(k.phase, Phase::Loading));
        let Some(keeper) = keeper else { return self.gave_up.clone() };
        if keeper.is_valid(now) {
            self.last_valid_s = now;
        }
        rotation::must_exit(ClientState {
            now_s: now,
            not_after_s: keeper.current.as_ref().map(|c| c.facts.not_after_s),
            last_valid_s: self.last_valid_s,
            server_healthy: self.server_healthy,
        })
    }

    fn publish(&mut self, now: i64) {
        let old = self.view.get();
        let error_of = |k: &Option<Keeper>| k.as_ref().and_then(|k| k.error.clone());
        let errors = [error_of(&self.client), error_of(&self.serving), self.fixed_error.clone()];
        let errors: Vec<_> = errors.into_iter().flatten().collect();
        let pair_of = |keeper: &Option<Keeper>, old: &Option<Arc<KeyPair>>| match keeper {
            Some(Keeper { phase: Phase::Loading, .. }) => old.clone(),
            Some(keeper) => keeper.pair(),
            None => None,
        };
        let serving = if self.serving.is_some() { pair_of(&self.serving, &old.serving) } else { self.fixed.clone() };
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

/// The serving pair of files that no request is made for.
fn fixed(fs: &dyn HostFs, source: &ServingSource, dir: &Path, now_s: i64) -> Result<Held, String> {
    match source {
        ServingSource::Files { certificate, key } => store::load_two(fs, certificate, key)
            .map_err(|e| chain(&e))?
            .ok_or_else(|| format!("{} or {} is not there", certificate.display(), key.display())),
        ServingSource::SelfSigned { hostname } => store::self_signed(fs, dir, hostname, now_s).map_err(|e| chain(&e)),
        ServingSource::Off | ServingSource::Rotate { .. } => Err("no files are configured".to_owned()),
    }
}
