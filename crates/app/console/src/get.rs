//! `bosun get`, `bosun fault`.

use std::path::Path;

use anyhow::Result;
use hyper::Method;
use model::Timestamp;
use model::core::{ContainerStatus, Pod};
use server::local::{Actors, EventLine, Manifests, PodDetail, PodItems};

use crate::args::{Get, PodArg};
use crate::client::{call, get};
use crate::columns::{age, line, now};
use crate::show::{Output, print, structured, table};
use crate::target;

mod node;
mod plugins;
mod pressure;
mod volumes;

pub(crate) async fn run(socket: &Path, what: Get) -> Result<()> {
    match what {
        Get::Pods(o) => pods(socket, o.output).await,
        Get::Pod { pod: asked, output } => pod(socket, &asked, output.output).await,
        Get::Actors(o) => actors(socket, o.output).await,
        Get::Events(o) => events(socket, o.output).await,
        Get::Manifests(o) => manifests(socket, o.output).await,
        Get::Plugins(o) => plugins::show(socket, o.output).await,
        Get::Volumes(o) => volumes::show(socket, o.output).await,
        Get::Pressure(o) => pressure::show(socket, o.output).await,
        Get::Node(o) => node::show(socket, o.output).await,
    }
}

async fn pods(socket: &Path, output: Option<Output>) -> Result<()> {
    let list: PodItems = get(socket, "/v1/pods").await?;
    if structured(output, &list)? {
        return Ok(());
    }
    if list.items.is_empty() {
        print("No pods. `bosun get manifests` shows what was found in the folder.");
        return Ok(());
    }
    let wide = output == Some(Output::Wide);
    let mut header = vec!["NAMESPACE", "NAME", "READY", "STATUS", "RESTARTS", "AGE"];
    if wide {
        header.extend(["IP", "NODE", "UID"]);
    }
    let rows = list.items.iter().map(|pod| {
        let l = line(pod, now());
        let mut row = vec![l.namespace, l.name, l.ready, l.status, l.restarts, l.age];
        if wide {
            row.extend([l.ip, l.node, l.uid]);
        }
        row
    });
    table(&header, rows.collect());
    Ok(())
}

async fn pod(socket: &Path, asked: &PodArg, output: Option<Output>) -> Result<()> {
    let detail: PodDetail = get(socket, &target::path_of(asked)).await?;
    if matches!(output, Some(Output::Json | Output::Yaml)) {
        structured(output, &detail.pod)?;
        return Ok(());
    }
    describe(&detail);
    Ok(())
}

fn describe(detail: &PodDetail) {
    let pod = &detail.pod;
    let l = line(pod, now());
    let mut rows = vec![
        ("Name", l.name),
        ("Namespace", l.namespace),
        ("UID", l.uid),
        ("Node", l.node),
        ("Status", l.status),
        ("IP", l.ip),
        ("Age", l.age),
    ];
    if let Some(w) = &detail.worker {
        rows.push(("Worker", format!("{} ({})", w.phase, w.cause)));
        rows.extend(w.error.clone().map(|e| ("Last error", e)));
    }
    for (key, value) in rows {
        print(&format!("{:<12}{value}", format!("{key}:")));
    }
    let status = pod.status.clone().unwrap_or_default();
    print("\nContainers:");
    let all = [status.init_container_statuses, status.container_statuses, status.ephemeral_container_statuses];
    let rows = all.iter().flatten().flatten().map(container_row).collect();
    table(&["  NAME", "STATE", "READY", "RESTARTS", "LAST STATE", "ID"], rows);
    conditions(pod);
    print("\nEvents:");
    events_table(&detail.events, false);
}

fn container_row(c: &ContainerStatus) -> Vec<String> {
    let id = c.container_id.as_deref().unwrap_or_default();
    let short: String = id.rsplit('/').next().unwrap_or_default().chars().take(13).collect();
    vec![
        format!("  {}", c.name),
        state(c.state.as_ref()),
        if c.ready { "yes" } else { "no" }.to_owned(),
        c.restart_count.to_string(),
        state(c.last_state.as_ref()),
        short,
    ]
}

fn state(state: Option<&model::core::ContainerState>) -> String {
    let Some(s) = state else { return String::new() };
    if s.running.is_some() {
        return "Running".to_owned();
    }
    if let Some(w) = &s.waiting {
        let message = w.message.as_deref().map(|m| format!(": {m}")).unwrap_or_default();
        return format!("Waiting {}{message}", w.reason.as_deref().unwrap_or_default()).trim().to_owned();
    }
    match &s.terminated {
        Some(t) => format!("{} (exit {})", t.reason.as_deref().unwrap_or("Terminated"), t.exit_code),
        None => String::new(),
    }
}

fn conditions(pod: &Pod) {
    let Some(list) = pod.status.as_ref().and_then(|s| s.conditions.as_ref()) else { return };
    print("\nConditions:");
    let row = |c: &model::core::PodCondition| {
        let why = [c.reason.as_deref(), c.message.as_deref()].into_iter().flatten().collect::<Vec<_>>().join(": ");
        vec![format!("  {}", c.type_), c.status.clone(), why]
    };
    table(&["  TYPE", "STATUS", "REASON"], list.iter().map(row).collect());
}

fn events_table(events: &[EventLine], with_object: bool) {
    if events.is_empty() {
        print("  none");
        return;
    }
    let mut header = vec!["  LAST SEEN", "TYPE", "REASON", "COUNT"];
    if with_object {
        header.push("OBJECT");
    }
    header.push("MESSAGE");
    let rows = events.iter().map(|e| {
        let seen = age(now().nanos_since(Timestamp(e.last_ns)));
        let mut row = vec![format!("  {seen}"), e.kind.clone(), e.reason.clone(), e.count.to_string()];
        if with_object {
            row.push(e.object.clone());
        }
        row.push(e.message.clone());
        row
    });
    table(&header, rows.collect());
}

async fn events(socket: &Path, output: Option<Output>) -> Result<()> {
    let list: Vec<EventLine> = get(socket, "/v1/events").await?;
    if !structured(output, &list)? {
        events_table(&list, true);
    }
    Ok(())
}

async fn actors(socket: &Path, output: Option<Output>) -> Result<()> {
    let list: Actors = get(socket, "/v1/actors").await?;
    if structured(output, &list)? {
        return Ok(());
    }
    let wide = output == Some(Output::Wide);
    let mut header = vec!["NAME", "STATE", "RESTARTS", "MAILBOX", "LAST CAUSE"];
    if wide {
        header.extend(["GROUP", "TURNS", "BUSY MS", "LONGEST MS", "EXPIRED", "REJECTED"]);
    }
    let text = |v: &serde_json::Value| v.as_str().map_or_else(|| v.to_string(), str::to_owned);
    // Who waits for a file system that hangs is seen at once.
    let state = |a: &serde_json::Value| match a["overdue_calls"].as_array().map(Vec::as_slice) {
        None | Some([]) => text(&a["state"]),
        Some(calls) => {
            format!("{}, waits: {}", text(&a["state"]), calls.iter().map(text).collect::<Vec<_>>().join(", "))
        }
    };
    let ms = |v: &serde_json::Value| format!("{:.1}", v.as_f64().unwrap_or(0.0) / 1e6);
    let rows = list.iter().map(|a| {
        let cause = a["last_cause"].as_str().map_or_else(|| "-".to_owned(), str::to_owned);
        let mailbox = format!("{}/{}", a["mailbox_depth"], a["mailbox_capacity"]);
        let mut row = vec![text(&a["name"]), state(a), text(&a["restarts"]), mailbox, cause];
        if wide {
            row.extend([text(&a["group"]), text(&a["turns"]), ms(&a["turn_sum_ns"]), ms(&a["turn_max_ns"])]);
            row.extend([text(&a["expired_asks"]), text(&a["rejected_tells"])]);
        }
        row
    });
    table(&header, rows.collect());
    let aside = list.iter().flat_map(|a| a["aside"].as_array().into_iter().flatten());
    let cells = ["actor", "what", "subject", "crashes", "seconds", "cause"];
    let aside: Vec<Vec<String>> = aside.map(|d| cells.iter().map(|c| text(&d[*c])).collect()).collect();
    if !aside.is_empty() {
        print("");
        table(&["SET ASIDE BY", "WHAT", "FOR", "CRASHES", "SECONDS", "CAUSE"], aside);
    }
    Ok(())
}

async fn manifests(socket: &Path, output: Option<Output>) -> Result<()> {
    let m: Manifests = get(socket, "/v1/manifests").await?;
    if structured(output, &m)? {
        return Ok(());
    }
    if let Some(e) = &m.error {
        print(&format!("manifest folder: {e}"));
    }
    let mut rows: Vec<Vec<String>> =
        m.accepted.iter().map(|(path, pod)| vec![path.clone(), "accepted".to_owned(), pod.clone()]).collect();
    for (path, refused) in &m.refused {
        let state = if refused.keeps_old { "refused, old one runs" } else { "refused" };
        for e in &refused.errors {
            rows.push(vec![path.clone(), state.to_owned(), e.clone()]);
        }
    }
    table(&["FILE", "STATE", "POD OR REASON"], rows);
    Ok(())
}

pub(crate) async fn fault(socket: &Path, rules: &[String], clear: bool, output: Option<Output>) -> Result<()> {
    if clear {
        call(socket, Method::DELETE, "/v1/faults", String::new()).await?;
    }
    for rule in rules {
        call(socket, Method::POST, "/v1/faults", rule.clone()).await?;
    }
    if rules.is_empty() && !clear {
        let value: serde_json::Value = get(socket, "/v1/faults").await?;
        structured(output.or(Some(Output::Yaml)), &value)?;
    }
    Ok(())
}
