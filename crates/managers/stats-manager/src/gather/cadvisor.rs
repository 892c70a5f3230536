//! Rows of `/metrics/cadvisor`.

use std::sync::Arc;

use actor::Class;
use contract::cgroup::PodCgroupRow;
use contract::runtime::Observed;
use contract::stats::StatsError;
use model::Timestamp;
use model::reading::Depth;
use model::resources::QosClass;
use model::runtime::PodObservation;
use node_stats::cadvisor::{Input, Row, render};
use node_stats::choose;

use super::pods;
use super::sources::Sources;

/// The text. What could not be read is missing in it, and `container_scrape_error` says so.
pub(crate) async fn cadvisor(sources: Sources) -> Result<Arc<str>, StatsError> {
    let effects = sources.effects.clone();
    Ok(effects.blocking(Class::HostFiles, move || render(&input(&sources)).into()).await)
}

fn input(sources: &Sources) -> Input {
    let source = &*sources.deps.source;
    let mut input = Input::default();
    match source.cgroup("/", Depth::Full) {
        Some(reading) => {
            input.at = reading.at;
            let (id, network) = ("/".to_owned(), source.network(None).unwrap_or_default());
            input.rows.push(Row { id, network, reading, ..Row::default() });
        }
        None => input.failed = true,
    }
    match sources.cache.machine(source, input.at) {
        Ok(machine) => input.machine = machine,
        Err(e) => {
            tracing::warn!(error = %e, "no numbers of the machine for /metrics/cadvisor");
            input.failed = true;
        }
    }
    input.disks = source.disks();
    let machine = input.machine.clone();
    if let Some(root) = input.rows.first_mut() {
        root.started = machine.booted;
    }
    input.rows.extend(slices(sources));
    for row in sources.crew.board::<Observed>().snapshot().values() {
        input.rows.extend(of_pod(sources, &row.pod));
    }
    input
}

/// Cgroups of the system, `kubepods` and its tiers, each once.
fn slices(sources: &Sources) -> Vec<Row> {
    let source = &*sources.deps.source;
    let mut paths: Vec<String> = pods::systems(sources, Depth::Usage).into_iter().map(|s| s.path).collect();
    if let Some(tree) = &sources.config.tree {
        paths.extend([tree.tier(QosClass::Burstable), tree.tier(QosClass::BestEffort)]);
    }
    paths.sort();
    paths.dedup();
    let row = |id: String| Some(Row { reading: source.cgroup(&id, Depth::Full)?, id, ..Row::default() });
    paths.into_iter().filter(|p| p != "/").filter_map(row).collect()
}

fn of_pod(sources: &Sources, of: &PodObservation) -> Vec<Row> {
    let source = &*sources.deps.source;
    // Without containers that run, the sandbox alone still has its network.
    let chosen = choose(of);
    let Some(sandbox) = chosen.as_ref().map(|c| c.sandbox).or_else(|| of.sandbox().filter(|s| s.ready)) else {
        return Vec::new();
    };
    let Some(path) = sources.crew.board::<PodCgroupRow>().get(&of.uid).map(|row| row.path.clone()) else {
        return Vec::new();
    };
    let named = |id: String, started: Timestamp| Row {
        id,
        started,
        namespace: of.namespace.clone(),
        pod: of.name.clone(),
        ..Row::default()
    };
    let mut rows = Vec::new();
    let containers: Vec<_> = chosen
        .iter()
        .flat_map(|c| &c.containers)
        .filter_map(|c| Some((c, pods::container(source, &path, c.id.as_str(), Depth::Full)?)))
        .collect();
    if let Some(reading) = source.cgroup(&path, Depth::Full) {
        rows.push(Row { reading, ..named(path.clone(), sandbox.created_at) });
    }
    if let Some((id, reading)) = pods::container(source, &path, sandbox.id.as_str(), Depth::Full) {
        // What holds the sandbox may be on the node's network, with the pod's held by its containers alone.
        let processes =
            std::iter::once(&reading).chain(containers.iter().map(|(_, (_, r))| r)).filter_map(|r| r.tasks.one);
        let mut processes = processes.filter(|_| !pods::in_host_network(sources, of, sandbox));
        let network = processes.find_map(|pid| source.network(Some(pid))).unwrap_or_default();
        let name = sandbox.id.to_string();
        rows.push(Row { reading, name, network, ..named(id, sandbox.created_at) });
    }
    for (c, (id, reading)) in containers {
        rows.push(Row {
            container: c.name.clone(),
            image: if c.image.is_empty() { c.image_ref.clone() } else { c.image.clone() },
            name: c.id.to_string(),
            reading,
            ..named(id, c.started_at)
        });
    }
    rows
}
