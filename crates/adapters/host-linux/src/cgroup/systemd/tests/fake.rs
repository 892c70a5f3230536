//! A private message bus with a service manager on it that keeps units in memory. Never a real systemd.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use zbus::{Connection, DBusError, ObjectServer, OwnedObjectPath, OwnedVariant, Variant, interface};

use super::Property;
use testbed::BusDaemon;

type Properties = Vec<(String, OwnedVariant)>;

#[derive(Default)]
pub(super) struct State {
    pub(super) calls: Vec<String>,
    units: BTreeSet<String>,
}

#[derive(Debug, DBusError)]
#[zbus(prefix = "org.freedesktop.systemd1")]
enum Refusal {
    #[zbus(error)]
    ZBus(zbus::Error),
    UnitExists(String),
    NoSuchUnit(String),
    AccessDenied(String),
}

#[derive(Clone, Default)]
struct Manager(Arc<Mutex<State>>);

struct Unit;

#[interface(name = "org.freedesktop.systemd1.Unit")]
impl Unit {
    #[zbus(property)]
    fn active_state(&self) -> String {
        "active".to_owned()
    }
}

fn all(properties: &Properties) -> String {
    properties.iter().map(|(name, value)| format!("{name}={}", text(value))).collect::<Vec<_>>().join(" ")
}

/// A property as [`PrivateBus::calls`] tells it.
pub(super) fn shown((name, value): &Property) -> String {
    format!("{name}={}", text(value))
}

/// With the type: systemd refuses a number of another width.
fn text(value: &Variant<'_>) -> String {
    match value {
        Variant::U64(n) => format!("t:{n}"),
        Variant::U32(n) => format!("u:{n}"),
        Variant::Bool(b) => format!("b:{b}"),
        Variant::Str(s) => format!("s:{s}"),
        Variant::Array(all) => format!("{}:{}", all.signature(), all.iter().map(text).collect::<Vec<_>>().join(",")),
        other => format!("{other:?}"),
    }
}

fn object(unit: &str) -> OwnedObjectPath {
    let name: String = unit.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    OwnedObjectPath::try_from(format!("/org/freedesktop/systemd1/unit/{name}")).unwrap()
}

#[interface(name = "org.freedesktop.systemd1.Manager")]
impl Manager {
    async fn start_transient_unit(
        &self,
        name: String,
        mode: String,
        properties: Properties,
        auxiliary: Vec<(String, Properties)>,
        #[zbus(connection)] bus: &Connection,
    ) -> Result<OwnedObjectPath, Refusal> {
        {
            let mut state = self.0.lock().unwrap();
            state.calls.push(format!("start {name} {mode} {} {}", all(&properties), auxiliary.len()));
            if name.starts_with("broken") {
                return Err(Refusal::AccessDenied("Access denied".to_owned()));
            }
            if !state.units.insert(name.clone()) {
                return Err(Refusal::UnitExists(format!("Unit {name} was already loaded or has a fragment file.")));
            }
        }
        let result = if name.starts_with("failing") { "failed" } else { "done" };
        bus.object_server().at(object(&name), Unit).await?;
        // Here before the answer, as it may be there.
        for (job, result) in [("another", "canceled"), ("job", result)] {
            let end = (1_u32, object(job), name.as_str(), result);
            let of = ("/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager");
            bus.emit_signal(None::<&str>, of.0, of.1, "JobRemoved", &end).await?;
        }
        Ok(object("job"))
    }

    fn set_unit_properties(&self, name: String, runtime: bool, properties: Properties) -> Result<(), Refusal> {
        let mut state = self.0.lock().unwrap();
        state.calls.push(format!("set {name} {runtime} {}", all(&properties)));
        if state.units.contains(&name) { Ok(()) } else { Err(Refusal::NoSuchUnit(format!("Unit {name} not loaded."))) }
    }

    async fn stop_unit(
        &self,
        name: String,
        mode: String,
        #[zbus(object_server)] server: &ObjectServer,
    ) -> Result<OwnedObjectPath, Refusal> {
        let was = {
            let mut state = self.0.lock().unwrap();
            state.calls.push(format!("stop {name} {mode}"));
            state.units.remove(&name)
        };
        if !was {
            return Err(Refusal::NoSuchUnit(format!("Unit {name} not loaded.")));
        }
        server.remove::<Unit, _>(object(&name)).await?;
        Ok(object("job"))
    }

    fn attach_processes_to_unit(&self, name: String, below: String, pids: Vec<u32>) -> Result<(), Refusal> {
        let mut state = self.0.lock().unwrap();
        state.calls.push(format!("attach {name} {below:?} {pids:?}"));
        if state.units.contains(&name) { Ok(()) } else { Err(Refusal::NoSuchUnit(format!("Unit {name} not loaded."))) }
    }

    fn get_unit(&self, name: String) -> Result<OwnedObjectPath, Refusal> {
        if self.0.lock().unwrap().units.contains(&name) {
            Ok(object(&name))
        } else {
            Err(Refusal::NoSuchUnit(format!("Unit {name} not loaded.")))
        }
    }
}

/// A private bus with the service manager on it.
pub(super) struct PrivateBus {
    pub(super) runtime: tokio::runtime::Runtime,
    pub(super) address: String,
    daemon: BusDaemon,
    state: Arc<Mutex<State>>,
    service: Option<Connection>,
}

impl PrivateBus {
    pub(super) fn start() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let daemon = BusDaemon::start();
        let mut bus = Self { runtime, address: daemon.address(), daemon, state: Arc::default(), service: None };
        bus.serve();
        bus
    }

    fn serve(&mut self) {
        let manager = Manager(self.state.clone());
        let serving = async {
            let builder = zbus::connection::Builder::address(self.address.as_str());
            builder.name("org.freedesktop.systemd1").serve_at("/org/freedesktop/systemd1", manager).build().await
        };
        self.service = Some(self.runtime.block_on(serving).unwrap());
    }

    /// Ends the bus and starts another one at the same address; the manager forgets its units.
    pub(super) fn restart(&mut self) {
        self.service = None;
        self.daemon.restart(|| self.state.lock().unwrap().units.clear());
        self.serve();
    }

    pub(super) fn calls(&self) -> Vec<String> {
        std::mem::take(&mut self.state.lock().unwrap().calls)
    }
}
