//! Pure: figures to lines, and lines to a window of some size.

use terminal::Size;

use super::What;
use super::view::{ActorRow, PodRow, Sort, View};
use crate::show::lines;

/// Everything, for a page that may be of any length.
pub(super) fn page(view: &View, what: What) -> Vec<String> {
    let mut out = vec![headline(view)];
    out.extend(view.notes.iter().cloned());
    if what.pods() {
        out.push(String::new());
        out.extend(pods(&view.pods));
    }
    if what.actors() {
        out.push(String::new());
        out.extend(actors(&view.actors));
    }
    out
}

/// What the operator has chosen.
#[derive(Clone, Copy, Debug)]
pub(super) struct Choice {
    pub(super) what: What,
    pub(super) sort: Sort,
    /// Rows that are scrolled over.
    pub(super) skip: usize,
}

/// As much as fits into the window: never more lines than rows, never longer than columns. Pods and actors share the
/// room; whoever needs less leaves it to the other.
pub(super) fn window(view: &View, choice: Choice, size: Size) -> Vec<String> {
    let mut out = vec![headline(view)];
    out.extend(view.notes.iter().cloned());
    let rows = usize::from(size.rows);
    let keys = format!("q end  Tab {}  sorted by {} (c m r n)  j k scroll", word(choice.what), sort_word(choice.sort));
    let room = rows.saturating_sub(out.len() + 1);
    let pods = if choice.what.pods() { pods(&view.pods) } else { Vec::new() };
    let actors = if choice.what.actors() { actors(&view.actors) } else { Vec::new() };
    let (for_pods, for_actors) = share(room, pods.len(), actors.len());
    out.extend(part(pods, choice.skip, for_pods));
    out.extend(part(actors, choice.skip, for_actors));
    out.truncate(rows.saturating_sub(1));
    out.resize(rows.saturating_sub(1), String::new());
    out.push(keys);
    out.truncate(rows);
    out.into_iter().map(|line| cut(&line, usize::from(size.columns))).collect()
}

/// Furthest that scrolling makes sense.
pub(super) fn last_row(view: &View, what: What) -> usize {
    let pods = if what.pods() { view.pods.len() } else { 0 };
    let actors = if what.actors() { view.actors.len() } else { 0 };
    pods.max(actors).saturating_sub(1)
}

fn share(room: usize, pods: usize, actors: usize) -> (usize, usize) {
    // A blank line stands before each part.
    let (pods, actors) = (if pods > 0 { pods + 1 } else { 0 }, if actors > 0 { actors + 1 } else { 0 });
    if pods + actors <= room {
        return (pods, actors);
    }
    let half = room / 2;
    if actors <= half {
        (room - actors, actors)
    } else if pods <= room - half {
        (pods, room - pods)
    } else {
        (room - half, half)
    }
}

/// A blank line, the header, and rows from `skip` on; the last screenful stays when one scrolls beyond it.
fn part(mut lines: Vec<String>, skip: usize, room: usize) -> Vec<String> {
    if lines.is_empty() || room == 0 {
        return Vec::new();
    }
    let visible = room.saturating_sub(2);
    let skip = skip.min((lines.len() - 1).saturating_sub(visible));
    lines.drain(1..=skip);
    lines.insert(0, String::new());
    lines.truncate(room);
    lines
}

fn cut(line: &str, columns: usize) -> String {
    // What a container or a runtime wrote must not move the cursor.
    line.chars().filter(|c| !c.is_control()).take(columns).collect()
}

fn word(what: What) -> &'static str {
    match what {
        What::All => "pods and actors",
        What::Pods => "pods",
        What::Actors => "actors",
    }
}

fn sort_word(sort: Sort) -> &'static str {
    match sort {
        Sort::Cpu => "cpu",
        Sort::Memory => "memory",
        Sort::Restarts => "restarts",
        Sort::Name => "name",
    }
}

fn headline(view: &View) -> String {
    let node = &view.node;
    let mut parts = vec![view.time.clone()];
    parts.insert(0, if node.name.is_empty() { "bosun".to_owned() } else { node.name.clone() });
    let running = view.pods.iter().filter(|p| p.status == "Running").count();
    if !view.pods.is_empty() {
        parts.push(format!("{} pods, {running} running", view.pods.len()));
    }
    parts.extend(node.cpu_nano_cores.map(|n| format!("cpu {}", millicores(Some(n)))));
    let used = node.memory_working_set_bytes.map(|n| format!("memory {}", bytes(Some(n))));
    let free = node.memory_available_bytes.map(|n| format!(" used, {} free", bytes(Some(n)))).unwrap_or_default();
    parts.extend(used.map(|used| used + &free));
    let troubled = view.actors.iter().filter(|a| a.state != "running").count();
    if troubled > 0 {
        parts.push(format!("{troubled} actors not running"));
    }
    parts.join("  ")
}

fn pods(pods: &[PodRow]) -> Vec<String> {
    let row = |p: &PodRow| {
        vec![
            p.namespace.clone(),
            p.name.clone(),
            p.ready.clone(),
            p.status.clone(),
            p.restarts.to_string(),
            millicores(p.cpu_nano_cores),
            bytes(p.memory_working_set_bytes),
        ]
    };
    let header = ["NAMESPACE", "NAME", "READY", "STATUS", "RESTARTS", "CPU", "MEMORY"];
    lines(&header, pods.iter().map(row).collect())
}

fn actors(actors: &[ActorRow]) -> Vec<String> {
    let row = |a: &ActorRow| {
        let name = match &a.pod {
            Some(pod) => format!("{} {pod}", a.name.split('/').next().unwrap_or_default()),
            None => a.name.clone(),
        };
        vec![
            name,
            a.state.clone(),
            a.restarts.to_string(),
            format!("{}/{}", a.mailbox_depth, a.mailbox_capacity),
            a.turns_per_second.map_or_else(|| "-".to_owned(), |t| format!("{t:.1}")),
            a.busy.map_or_else(|| "-".to_owned(), |b| format!("{:.1}%", b * 100.0)),
            a.last_cause.as_deref().and_then(|c| c.lines().next()).unwrap_or("-").to_owned(),
        ]
    };
    let header = ["ACTOR", "STATE", "RESTARTS", "MAILBOX", "TURNS/S", "BUSY", "LAST CAUSE"];
    lines(&header, actors.iter().map(row).collect())
}

/// As kubectl top: thousandths of a core.
fn millicores(nano: Option<u64>) -> String {
    nano.map_or_else(|| "-".to_owned(), |n| format!("{}m", n.div_ceil(1_000_000)))
}

/// As kubectl top: whole mebibytes.
fn bytes(n: Option<u64>) -> String {
    n.map_or_else(|| "-".to_owned(), |n| format!("{}Mi", n >> 20))
}

#[cfg(test)]
mod tests;
