//! Where on the axis a moment is, and how long it is from one to another in words.

use pod_history::Timeline;

/// A stretch that is longer than all others together by this much would leave them no room.
const LONG: f64 = 8.0;

/// The axis, from 0 to 1.
#[derive(Debug)]
pub(super) struct Scale {
    /// Moments, nanoseconds since the epoch, with their places, both ascending.
    points: Vec<(i64, f64)>,
    /// Long stretches are drawn shorter.
    pub(super) is_bent: bool,
}

impl Scale {
    pub(super) fn of(life: &Timeline) -> Self {
        let ends = life.bars.iter().map(|b| b.end_ns.unwrap_or(life.now_ns));
        let mut moments: Vec<i64> = life.bars.iter().map(|b| b.start_ns).chain(ends).collect();
        moments.sort_unstable();
        moments.dedup();
        let stretches: Vec<f64> = moments.windows(2).map(|w| seconds(w[1].saturating_sub(w[0]))).collect();
        let (total, longest) = (stretches.iter().sum::<f64>(), stretches.iter().copied().fold(0.0, f64::max));
        let is_bent = longest > LONG * (total - longest) && stretches.len() > 1;
        let weight = |s: &f64| if is_bent { (1.0 + s * 100.0).ln() } else { *s };
        let whole: f64 = stretches.iter().map(weight).sum();
        let mut place = 0.0;
        let mut points: Vec<(i64, f64)> = moments.first().map(|m| (*m, 0.0)).into_iter().collect();
        for (moment, stretch) in moments.iter().skip(1).zip(&stretches) {
            place += if whole > 0.0 { weight(stretch) / whole } else { 0.0 };
            points.push((*moment, place.min(1.0)));
        }
        Scale { points, is_bent }
    }

    /// From 0 to 1. Every begin and end of a bar has a place of its own; between them it is linear.
    pub(super) fn place(&self, moment: i64) -> f64 {
        let after = self.points.partition_point(|(at, _)| *at < moment);
        let Some(&(at, place)) = self.points.get(after) else { return 1.0 };
        let Some(&(from, before)) = after.checked_sub(1).and_then(|i| self.points.get(i)) else { return 0.0 };
        let share = seconds(moment.saturating_sub(from)) / seconds(at.saturating_sub(from)).max(1e-9);
        before + (place - before) * share
    }

    /// First and last moment.
    pub(super) fn ends(&self) -> (i64, i64) {
        (self.points.first().map_or(0, |p| p.0), self.points.last().map_or(0, |p| p.0))
    }
}

#[allow(clippy::cast_precision_loss, reason = "a place on a line")]
fn seconds(ns: i64) -> f64 {
    ns as f64 / 1e9
}

/// A duration as people say it: the two largest units.
pub(super) fn took(ns: i64) -> String {
    let ms = ns.max(0) / 1_000_000;
    let (s, m, h, d) = (ms / 1000, ms / 60_000, ms / 3_600_000, ms / 86_400_000);
    match ms {
        0..1000 => format!("{ms}ms"),
        1000..60_000 => format!("{s}.{}s", ms % 1000 / 100),
        60_000..3_600_000 => format!("{m}m{}s", s % 60),
        3_600_000..86_400_000 => format!("{h}h{}m", m % 60),
        _ => format!("{d}d{}h", h % 24),
    }
}
