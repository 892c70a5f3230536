//! The daemon in its world: start, kill, start again.

use std::time::Duration;

use actor::Kernel;
use bosun::{Node, Places};
use contract::Wiring;
use fakes::FakeApi;
use model::core::Pod;
use ports::host::HostFs;
use tokio::task::{JoinHandle, LocalSet};
use tokio::time::{Instant, sleep};

use crate::leash::{Leash, leashed};
use crate::world::{NODE_NAME, World};

/// Virtual time in which anything ordinary must have happened.
pub const LIMIT: Duration = Duration::from_secs(60);

/// Between two looks of [`SimNode::until`], by the time that has passed: short at first, for what happens at once.
const PAUSES: [(Duration, Duration); 2] =
    [(Duration::from_millis(500), Duration::from_millis(10)), (Duration::from_secs(5), Duration::from_millis(50))];
const LAST_PAUSE: (Duration, Duration) = (Duration::MAX, Duration::from_millis(200));

/// A node: the world and, while it is up, the daemon.
pub struct SimNode {
    /// What outlives the daemon.
    pub world: World,
    /// The kernel of all lives of the daemon: its clock goes on over a kill.
    pub kernel: Kernel,
    life: Option<Life>,
}

struct Life {
    node: Node,
    places: Places,
    actors: JoinHandle<()>,
    leash: Leash,
}

impl std::fmt::Debug for SimNode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SimNode({:?}, up: {})", self.world, self.life.is_some())
    }
}

impl SimNode {
    /// A node with default settings, up.
    #[must_use]
    pub fn start(kernel: &Kernel) -> Self {
        let mut node = Self::down(World::new(kernel), kernel);
        node.boot();
        node
    }

    /// A node of a cluster with default settings, up.
    #[must_use]
    pub fn start_in_cluster(kernel: &Kernel) -> Self {
        let mut node = Self::down(World::in_cluster(kernel), kernel);
        node.boot();
        node
    }

    /// A node whose daemon does not run yet.
    #[must_use]
    pub fn down(world: World, kernel: &Kernel) -> Self {
        Self { world, kernel: kernel.clone(), life: None }
    }

    /// Starts the daemon.
    ///
    /// # Panics
    /// When it runs already.
    pub fn boot(&mut self) {
        assert!(self.life.is_none(), "the daemon runs already");
        let (leash, rope, connector) = leashed(self.world.runtime.connector());
        // A set of its own: all actors of this life are dropped together when it is killed.
        let actors = LocalSet::new();
        let (node, places) = {
            let _inside = actors.enter();
            let ports = self.world.ports(connector, rope);
            let builder = Node::builder(self.world.settings.clone(), self.world.machine.clone(), ports);
            let (builder, places) = builder.places(&self.world.settings.managers, self.kernel.clock());
            (builder.start(&self.kernel), places)
        };
        let actors = tokio::task::spawn_local(actors);
        self.life = Some(Life { node, places, actors, leash });
    }

    /// As `kill -9`: actors, their effects and their connections are gone; runtime, journal and files stay.
    ///
    /// # Panics
    /// When the daemon does not run.
    pub async fn kill(&mut self) {
        let life = self.life.take().expect("the daemon runs");
        life.leash.cut();
        life.actors.abort();
        let _aborted = life.actors.await;
        drop(life.node);
    }

    /// Kills the daemon and starts it again at once.
    pub async fn restart(&mut self) {
        self.kill().await;
        self.boot();
    }

    /// How to reach the managers.
    ///
    /// # Panics
    /// When the daemon does not run.
    #[must_use]
    pub fn wiring(&self) -> &Wiring {
        self.life.as_ref().expect("the daemon runs").node.wiring()
    }

    /// The daemon itself.
    ///
    /// # Panics
    /// When it does not run.
    #[must_use]
    pub fn node(&self) -> &Node {
        &self.life.as_ref().expect("the daemon runs").node
    }

    /// Who serves which manager, and how that is changed.
    ///
    /// # Panics
    /// When it does not run.
    #[must_use]
    pub fn places(&self) -> &Places {
        &self.life.as_ref().expect("the daemon runs").places
    }

    pub(crate) fn life_is_up(&self) -> bool {
        self.life.is_some()
    }

    /// Writes a manifest into the folder, and the watch tells.
    ///
    /// # Panics
    /// The file cannot be written.
    pub fn put(&self, file: &str, text: &str) {
        self.world.write(&self.world.manifests().join(file), text);
        self.world.watch.written(file);
    }

    /// Removes a manifest from the folder, and the watch tells.
    ///
    /// # Panics
    /// The file is not there.
    pub fn remove(&self, file: &str) {
        let path = self.world.manifests().join(file);
        assert!(self.world.has(&path), "the manifest is there");
        self.world.files.remove_file(&path).expect("it can be removed");
        self.world.watch.gone(file);
    }

    /// Binds a pod with this spec (JSON) to the node, at the API server. It is called `name-sim`, as a static pod would be.
    ///
    /// # Panics
    /// The node is of no cluster, or the spec is none.
    pub fn bind(&self, name: &str, mut spec: serde_json::Value) {
        // What a server fills in, as far as a node asks for it.
        let defaults = serde_json::json!({
            "nodeName": NODE_NAME, "restartPolicy": "Always", "dnsPolicy": "ClusterFirst", "enableServiceLinks": true,
            "terminationGracePeriodSeconds": 30, "serviceAccountName": "default", "automountServiceAccountToken": false,
        });
        for (key, value) in defaults.as_object().into_iter().flatten() {
            if spec.get(key).is_none() {
                spec[key] = value.clone();
            }
        }
        let meta = serde_json::json!({ "namespace": "default", "name": format!("{name}-{NODE_NAME}") });
        let pod = serde_json::json!({ "metadata": meta, "spec": spec });
        self.api().put(&serde_json::from_value::<Pod>(pod).expect("a spec of a pod"));
    }

    /// Deletes a pod that was bound, as a user does, with a grace period of 5 s.
    ///
    /// # Panics
    /// The node is of no cluster, or the pod is not there.
    pub fn delete(&self, name: &str) {
        let deleted = self.api().user_deletes::<Pod>(Some("default"), &format!("{name}-{NODE_NAME}"), Some(5));
        deleted.expect("the pod that is deleted is there");
    }

    /// The API server's copy of a pod: of one that was bound, or the mirror of a static one.
    ///
    /// # Panics
    /// The node is of no cluster.
    #[must_use]
    pub fn api_copy(&self, name: &str) -> Option<Pod> {
        self.api().read(Some("default"), &format!("{name}-{NODE_NAME}"))
    }

    /// The API server.
    ///
    /// # Panics
    /// The node is of no cluster.
    #[must_use]
    pub fn api(&self) -> &FakeApi {
        self.world.api.as_ref().expect("the node is one of a cluster")
    }

    /// Adds rules of the fault plan, in their text form.
    ///
    /// # Panics
    /// A rule does not parse.
    pub fn fault(&self, rules: &str) {
        self.kernel.faults().add_text(rules).expect("the rule parses");
    }

    /// Lets virtual time pass until `so` holds.
    ///
    /// # Panics
    /// After `limit`, with a picture of the node.
    pub async fn until(&self, what: &str, limit: Duration, so: impl Fn(&Self) -> bool) {
        if !self.holds_within(limit, &so).await {
            panic!("not within {limit:?}: {what}\n{}", self.picture());
        }
    }

    /// As [`SimNode::until`], and says whether it came true.
    pub async fn holds_within(&self, limit: Duration, so: impl Fn(&Self) -> bool) -> bool {
        let begun = Instant::now();
        loop {
            if so(self) {
                return true;
            }
            let passed = begun.elapsed();
            if passed >= limit {
                return false;
            }
            let (_, pause) = PAUSES.iter().find(|(until, _)| passed < *until).unwrap_or(&LAST_PAUSE);
            sleep(*pause).await;
        }
    }
}

/// Shows the node's log on stderr when `RUST_LOG` is set; for looking into a failure.
pub fn log_to_stderr() {
    if std::env::var_os("RUST_LOG").is_some() {
        let filter = tracing_subscriber::EnvFilter::from_default_env();
        let _set_already = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).try_init();
    }
}
