//! The page: one file, nothing from outside, no script. Whatever comes from a pod is escaped.

use std::fmt::Write;

use pod_history::{Bar, Timeline};

use super::scale::{Scale, took};
use crate::columns::moment;

const STYLE: &str = "
:root{color-scheme:light dark;--paper:#fbfaf7;--ink:#22252a;--faint:#6b7078;--line:#dcdad3;--done:#2f7d6d;--open:#c07a12;
--failed:#b3362b;--lost:#86808f;--run:#8fb9d6}
@media(prefers-color-scheme:dark){:root{--paper:#16181b;--ink:#e6e4df;--faint:#989ca3;--line:#33373d;--done:#4fb39e;
--open:#e0a33e;--failed:#e0695d;--lost:#8d8798;--run:#3f6d8c}}
*{box-sizing:border-box}
body{margin:0;padding:2.5rem clamp(1rem,4vw,4rem);background:var(--paper);color:var(--ink);
font:15px/1.5 system-ui,sans-serif}
h1{margin:0;font-size:1.5rem;font-weight:600;overflow-wrap:anywhere}
header p{margin:.25rem 0 0;color:var(--faint)}
table{width:100%;margin-top:1.75rem;border-collapse:collapse;table-layout:fixed}
th,td{padding:.3rem .6rem .3rem 0;text-align:left;font-weight:400;vertical-align:middle;border-top:1px solid var(--line)}
tr.first th,tr.first td{border-top:2px solid var(--faint)}
.name{width:20%;overflow-wrap:anywhere}.took{width:13%;white-space:nowrap;font-variant-numeric:tabular-nums}
.of{color:var(--faint)}
.track{position:relative;height:1.1rem}
.bar{position:absolute;top:.1rem;height:.9rem;min-width:3px;border-radius:2px;background:var(--done)}
.open{background:repeating-linear-gradient(45deg,var(--open) 0 6px,transparent 6px 9px),var(--line)}
.failed{background:var(--failed)}.lost{background:var(--lost)}.running.done,.running.open{background:var(--run)}
.point{width:3px;background:var(--ink)}
.note{color:var(--faint);font-size:.85rem;overflow-wrap:anywhere}
.key{display:flex;flex-wrap:wrap;gap:.35rem 1.4rem;margin:1.25rem 0 0;padding:0;list-style:none;color:var(--faint)}
.key i{display:inline-block;position:static;width:1.4rem;height:.7rem;margin-right:.45rem}
@media(max-width:40rem){.name{width:34%}.took{width:24%}}
";

/// The page of a life.
pub(super) fn page(life: &Timeline) -> String {
    let scale = Scale::of(life);
    let (first, last) = scale.ends();
    let mut rows = String::new();
    let mut of = None;
    for bar in &life.bars {
        let is_first = of.replace(&bar.of).is_some_and(|before| *before != bar.of);
        rows.push_str(&row(bar, life.now_ns, &scale, is_first));
    }
    if life.bars.is_empty() {
        rows.push_str("<tr><td>Nothing is known of its life yet.</td></tr>");
    }
    let bent = if scale.is_bent { " Long stretches are drawn shorter." } else { "" };
    let dropped =
        if life.dropped > 0 { format!(" {} older entries are not kept.", life.dropped) } else { String::new() };
    let plural = if life.restarts == 1 { "" } else { "s" };
    let pod = escape(&life.pod);
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
        <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
        <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
        <title>{pod}</title>\n<style>{STYLE}</style></head>\n<body><header><h1>{pod}</h1>\n\
        <p>{phase}, {restarts} restart{plural}. {whole} from {from}.{bent}{dropped}</p>\n<p>UID {uid}, as of {now}</p></header>\n\
        <ul class=\"key\">{KEY}</ul>\n<table>\n{rows}</table>\n</body></html>\n",
        phase = escape(if life.phase.is_empty() { "No phase yet" } else { &life.phase }),
        restarts = life.restarts,
        whole = took(last - first),
        from = moment(first),
        uid = escape(&life.uid),
        now = moment(life.now_ns),
    )
}

const KEY: &str = "<li><i class=\"bar\"></i>done</li><li><i class=\"bar running done\"></i>running</li>\
    <li><i class=\"bar open\"></i>under way</li><li><i class=\"bar failed\"></i>failed</li>\
    <li><i class=\"bar lost\"></i>nobody knows how it ended</li>";

fn row(bar: &Bar, now_ns: i64, scale: &Scale, is_first: bool) -> String {
    let end = bar.end_ns.unwrap_or(now_ns);
    let (from, to) = (scale.place(bar.start_ns) * 100.0, scale.place(end) * 100.0);
    let running = if bar.label == "running" { "running " } else { "" };
    let outcome = match &*bar.outcome {
        known @ ("done" | "failed" | "open" | "lost" | "point") => known,
        _ => "lost",
    };
    let times = if bar.count > 1 { format!(" \u{d7}{}", bar.count) } else { String::new() };
    let so_far = if outcome == "open" { " so far" } else { "" };
    let took = if outcome == "point" { String::new() } else { took(end - bar.start_ns) };
    let of = if bar.of.is_empty() { String::new() } else { format!("<span class=\"of\">{}</span> ", escape(&bar.of)) };
    let class = if is_first { " class=\"first\"" } else { "" };
    let width = if outcome == "point" { String::new() } else { format!(";width:{:.3}%", (to - from).max(0.0)) };
    // A point at the very end is still inside.
    let from = if outcome == "point" { from.min(99.6) } else { from };
    let mut out = format!(
        "<tr{class}><th class=\"name\">{of}{label}</th><td><div class=\"track\"><span class=\"bar {running}{outcome}\" \
        style=\"left:{from:.3}%{width}\" title=\"{begin}\"></span></div>",
        label = escape(&bar.label),
        begin = moment(bar.start_ns),
    );
    if matches!(outcome, "failed" | "lost" | "point") && !bar.note.is_empty() && bar.note != bar.label {
        let _never_fails = write!(out, "<div class=\"note\">{}</div>", escape(&bar.note));
    }
    out + &format!("</td><td class=\"took\">{took}{so_far}{times}</td></tr>\n")
}

/// Text as text, in content and in quoted attributes. What has no place in a document is left out.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c if c.is_control() || ('\u{202a}'..='\u{202e}').contains(&c) || ('\u{2066}'..='\u{2069}').contains(&c) => {
                out.push(' ')
            }
            c => out.push(c),
        }
    }
    out
}
