//! Bars in a terminal.

use pod_history::{Bar, Timeline};

use super::scale::{Scale, took};
use crate::columns::moment;
use crate::show::plain;

/// Least columns of the bars.
const LEAST: usize = 10;
/// Most columns of a label.
const LABEL: usize = 30;

/// The lines for a terminal of so many columns.
pub(super) fn lines(life: &Timeline, columns: usize) -> Vec<String> {
    let plural = if life.restarts == 1 { "" } else { "s" };
    let mut out = vec![plain(&format!("{}  {}  {} restart{plural}", life.pod, life.phase, life.restarts))];
    if life.dropped > 0 {
        out.push(format!("(older: {} entries that are not kept)", life.dropped));
    }
    if life.bars.is_empty() {
        out.push("Nothing is known of its life yet.".to_owned());
        return out;
    }
    let scale = Scale::of(life);
    let (first, last) = scale.ends();
    let bent = if scale.is_bent { "; long stretches are drawn shorter" } else { "" };
    out.push(format!("{} from {}{bent}", took(last - first), moment(first)));
    let labels: Vec<String> = life.bars.iter().map(label).collect();
    let durations: Vec<String> = life.bars.iter().map(|b| duration(b, life.now_ns)).collect();
    let width = |all: &[String]| all.iter().map(|t| t.chars().count()).max().unwrap_or(0);
    let (left, right) = (width(&labels), width(&durations));
    let room = columns.saturating_sub(left + right + 4).max(LEAST);
    for ((bar, label), duration) in life.bars.iter().zip(&labels).zip(&durations) {
        let drawn = draw(bar, life.now_ns, &scale, room);
        out.push(format!("{label:<left$} |{drawn}| {duration}").trim_end().to_owned());
    }
    for bar in life.bars.iter().filter(|b| matches!(&*b.outcome, "failed" | "lost")) {
        out.push(plain(&format!("{}: {}", label(bar).trim(), bar.note)));
    }
    out
}

fn label(bar: &Bar) -> String {
    let text = if bar.of.is_empty() { bar.label.clone() } else { format!("{} {}", bar.of, bar.label) };
    plain(&text).chars().take(LABEL).collect()
}

fn duration(bar: &Bar, now_ns: i64) -> String {
    let times = if bar.count > 1 { format!(" x{}", bar.count) } else { String::new() };
    match &*bar.outcome {
        "point" => times.trim_start().to_owned(),
        "open" => format!("{} so far{times}", took(now_ns - bar.start_ns)),
        _ => format!("{}{times}", took(bar.end_ns.unwrap_or(now_ns) - bar.start_ns)),
    }
}

#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "columns")]
fn draw(bar: &Bar, now_ns: i64, scale: &Scale, room: usize) -> String {
    let column = |moment| ((scale.place(moment) * room as f64) as usize).min(room - 1);
    let from = column(bar.start_ns);
    let to = column(bar.end_ns.unwrap_or(now_ns)).max(from);
    let sign = match &*bar.outcome {
        "point" => '|',
        "failed" => 'x',
        "open" => '~',
        "lost" => '?',
        _ => '=',
    };
    let drawn: String = std::iter::repeat_n(' ', from).chain(std::iter::repeat_n(sign, to - from + 1)).collect();
    format!("{drawn:<room$}")
}
