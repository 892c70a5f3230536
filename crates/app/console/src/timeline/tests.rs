//! What is drawn.

use pod_history::{Bar, Timeline};

use super::scale::{Scale, took};
use super::{html, text};

const S: i64 = 1_000_000_000;

fn bar(of: &str, label: &str, from: i64, to: Option<i64>, outcome: &str, note: &str) -> Bar {
    Bar {
        of: of.to_owned(),
        label: label.to_owned(),
        start_ns: from * S,
        end_ns: to.map(|t| t * S),
        count: 1,
        outcome: outcome.to_owned(),
        note: note.to_owned(),
    }
}

/// A start, and three hours of running.
pub(crate) fn life() -> Timeline {
    Timeline {
        pod: "shop/web".to_owned(),
        uid: "u1".to_owned(),
        phase: "Running".to_owned(),
        restarts: 2,
        dropped: 0,
        now_ns: 10_800 * S,
        bars: vec![
            bar("", "volumes", 0, Some(2), "done", ""),
            Bar { count: 5, ..bar("", "sandbox", 2, Some(4), "failed", "<script>alert(1)</script> \"a\u{1b}[2J") },
            bar("", "ready", 9, Some(9), "point", "ready"),
            bar("app", "pull", 4, Some(8), "done", ""),
            bar("app", "running", 8, None, "open", ""),
        ],
    }
}

#[test]
fn durations_are_readable() {
    let table =
        [(0, "0ms"), (12, "12ms"), (1_540, "1.5s"), (61_000, "1m1s"), (3_700_000, "1h1m"), (200_000_000, "2d7h")];
    for (ms, expected) in table {
        assert_eq!(took(ms * 1_000_000), expected);
    }
}

#[test]
fn bars_are_as_wide_as_the_terminal_and_each_can_be_seen() {
    for columns in [60, 80, 200] {
        let lines = text::lines(&life(), columns);
        assert!(lines.iter().take(7).all(|l| l.chars().count() <= columns), "{lines:#?}");
        let volumes = lines.iter().find(|l| l.starts_with("volumes")).unwrap();
        assert!(volumes.matches('=').count() * 20 > columns, "a start is seen beside three hours: {volumes}");
        assert!(volumes.ends_with("2.0s"), "{volumes}");
    }
    let lines = text::lines(&life(), 80).join("\n");
    assert!(lines.contains("2 restarts") && lines.contains("2.0s x5") && lines.contains("2h59m so far"), "{lines}");
    assert!(lines.contains("long stretches") && !lines.contains('\u{1b}'), "{lines}");
    assert!(text::lines(&life(), 1).len() > 5, "a terminal without room");
}

#[test]
fn the_axis_is_straight_unless_that_leaves_no_room() {
    let mut short = life();
    short.now_ns = 16 * S;
    let scale = Scale::of(&short);
    assert!(!scale.is_bent && (scale.place(8 * S) - 0.5).abs() < 1e-6, "{scale:?}");
    let scale = Scale::of(&life());
    let places = [0, 1, 2, 4, 8, 9, 100, 10_800].map(|s| scale.place(s * S));
    assert!(scale.is_bent && places.is_sorted() && places[0] == 0.0 && (places[7] - 1.0).abs() < 1e-6, "{places:?}");
    let empty = Timeline { bars: Vec::new(), ..life() };
    assert!((Scale::of(&empty).place(5) - 1.0).abs() < 1e-6);
}

#[test]
fn the_page_takes_nothing_from_outside_and_no_word_of_a_pod_for_its_own() {
    let mut life = life();
    life.pod = "shop/<img src=x onerror=alert(1)>".to_owned();
    life.bars[0].label = "</table><h1>".to_owned();
    life.bars[3].of = "'\"><b>".to_owned();
    life.bars[4].outcome = "\" onmouseover=\"x".to_owned();
    let page = html::page(&life);
    for refused in [
        "<script",
        "<img",
        "</table><h1>",
        "<b>",
        "onmouseover",
        "http:",
        "https:",
        "url(",
        "@import",
        "src=\"",
        "\u{1b}",
    ] {
        assert!(!page.contains(refused), "{refused}: {page}");
    }
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;") && page.contains("default-src 'none'"), "{page}");
    assert_eq!(page.matches("<tr").count(), page.matches("</tr>").count());
    assert!(html::page(&Timeline::default()).contains("Nothing is known"));
}
