//! Families that are computed at a scrape, by topic.

use metrics::Declared;
use metrics::prometheus::proto::MetricFamily;

use crate::deps::Deps;
use crate::families::{Families, Row, declared};

pub(crate) mod actors;
mod blocking;
pub(crate) mod itself;
mod plugins;
pub(crate) mod pods;
pub(crate) mod process;
pub(crate) mod usage;
pub(crate) mod volumes;

/// Tables of `/metrics`.
const TABLES: &[&[Row]] = &[
    actors::TABLE,
    blocking::TABLE,
    itself::TABLE,
    plugins::TABLE,
    pods::TABLE,
    process::TABLE,
    usage::TABLE,
    volumes::TABLE,
];

/// Every family that `/metrics` may show, by name.
#[must_use]
pub fn catalogue() -> Vec<Declared> {
    metrics::declare();
    let mut all = metrics::MAIN.declared();
    all.extend(TABLES.iter().flat_map(|t| t.iter()).map(declared));
    all.sort_by_key(|d| d.name);
    all
}

/// All families of `/metrics`, by name.
pub(crate) async fn main(deps: &Deps) -> Vec<MetricFamily> {
    let (usage, volumes, ()) = futures::join!(usage::read(deps), volumes::read(deps), elsewhere(deps));
    let mut families = Families::default();
    for table in TABLES {
        families.open(table);
    }
    actors::fill(&mut families, &deps.kernel);
    blocking::fill(&mut families, &deps.kernel);
    pods::fill(&mut families, deps);
    plugins::fill(&mut families, deps);
    if let Some(rows) = &volumes {
        volumes::fill(&mut families, rows);
    }
    usage::fill(&mut families, &usage);
    let readings = process::Readings::now();
    startup(&readings);
    process::fill(&mut families, &readings);
    let catalogue = catalogue();
    itself::fill(&mut families, deps, &catalogue);
    let mut all = metrics::elsewhere::gathered(&metrics::MAIN);
    all.extend(families.close());
    // A name of the node's is the node's.
    all.extend(metrics::elsewhere::own().into_iter().filter(|own| !catalogue.iter().any(|d| d.name == own.name())));
    all.sort_by(|a, b| a.name().cmp(b.name()));
    all
}

async fn elsewhere(deps: &Deps) {
    if let Some(look) = &deps.elsewhere {
        look().await;
    }
}

/// Parts of the node's start that this process alone cannot tell, and their sum once the node was ready.
fn startup(readings: &process::Readings) {
    use metrics::node::{POST_REGISTRATION, PRE_KUBELET, PRE_REGISTRATION, REGISTRATION, STARTUP};
    let Some(before) = readings.since_boot() else { return };
    PRE_KUBELET.set(before);
    if POST_REGISTRATION.get() > 0.0 {
        STARTUP.set(before + PRE_REGISTRATION.get() + REGISTRATION.get() + POST_REGISTRATION.get());
    }
}

/// All families of `/metrics/probes`, by name.
pub(crate) async fn probes(deps: &Deps) -> Vec<MetricFamily> {
    elsewhere(deps).await;
    let mut families = Families::default();
    families.open(&[process::START_TIME]);
    process::fill_start(&mut families, &process::Readings::now());
    let mut all = metrics::elsewhere::gathered(&metrics::PROBES);
    all.extend(families.close());
    all.sort_by(|a, b| a.name().cmp(b.name()));
    all
}

/// All families of `/metrics/slis`; runs the checks.
pub(crate) fn slis(deps: &Deps) -> Vec<MetricFamily> {
    for (name, good) in (deps.health_checks)() {
        metrics::slis::checked(&name, good);
    }
    metrics::SLIS.gather()
}
