//! Pure: figures to lines, lines to a screen.

use terminal::Size;

use super::sample::Section;
use super::view::{ActorRow, PodRow, View};
use crate::show::lines;

/// At most so many lines. Pods and actors share the room; whoever needs less leaves it to the other.
pub(super) fn lines_of(view: &View, what: Section, rows: usize) -> Vec<String> {
    let mut out = vec![headline(view)];
    out.extend(view.notes.iter().cloned());
    out.truncate(rows);
    let pods = if what.pods() { pods(&view.pods) } else { Vec::new() };
    let actors = if what.actors() { actors(&view.actors) } else { Vec::new() };
    let room = rows - out.len();
    let for_actors = room.saturating_sub(pods.len()).max(room / 2).min(actors.len());
    out.extend(cut_below(pods, room - for_actors));
    out.extend(cut_below(actors, for_actors));
    out
}

/// The lines in place of what the terminal shows, the cursor below them. No line is longer than the window is wide.
pub(super) fn screen(view: &View, what: Section, size: Size) -> String {
    let lines = lines_of(view, what, usize::from(size.rows).saturating_sub(1));
    // What a container or a runtime wrote must not move the cursor.
    let fit = |line: &String| line.chars().filter(|c| !c.is_control()).take(size.columns.into()).collect::<String>();
    let lines: String = lines.iter().map(|line| format!("{}\x1b[K\n", fit(line))).collect();
    format!("\x1b[H{lines}\x1b[J")
}

/// As many lines as there is room for; the last one tells how many are missing.
fn cut_below(mut lines: Vec<String>, room: usize) -> Vec<String> {
    if lines.len() > room && room > 0 {
        let more = lines.len() - (room - 1);
        lines[room - 1] = format!("... {more} more");
    }
    lines.truncate(room);
    lines
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
    below_a_blank(lines(&header, pods.iter().map(row).collect()))
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
    below_a_blank(lines(&header, actors.iter().map(row).collect()))
}

fn below_a_blank(mut lines: Vec<String>) -> Vec<String> {
    lines.insert(0, String::new());
    lines
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
