//! Forms that the kernel's files have in common.

use model::stats::{PsiData, PsiStats};

/// `key value` lines.
pub(super) fn pairs(text: &str) -> impl Iterator<Item = (&str, u64)> {
    text.lines().filter_map(|line| {
        let (key, value) = line.split_once(' ')?;
        Some((key, value.trim().parse().ok()?))
    })
}

/// A pressure file: `some avg10=0.00 avg60=0.00 avg300=0.00 total=0`, and the same with `full` where the kernel has it.
pub(super) fn psi(text: &str) -> Option<PsiStats> {
    let mut psi = PsiStats::default();
    let mut seen = false;
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let to = match words.next() {
            Some("some") => &mut psi.some,
            Some("full") => &mut psi.full,
            _ => continue,
        };
        *to = psi_line(words);
        seen = true;
    }
    seen.then_some(psi)
}

fn psi_line<'a>(words: impl Iterator<Item = &'a str>) -> PsiData {
    let mut data = PsiData::default();
    for (key, value) in words.filter_map(|w| w.split_once('=')) {
        let share = || value.parse().ok().filter(|v: &f64| v.is_finite()).unwrap_or(0.0);
        match key {
            "avg10" => data.avg10 = share(),
            "avg60" => data.avg60 = share(),
            "avg300" => data.avg300 = share(),
            "total" => data.total = value.parse().unwrap_or(0),
            _ => {}
        }
    }
    data
}

/// `253:0`.
pub(super) fn device(text: &str) -> Option<(u32, u32)> {
    let (major, minor) = text.split_once(':')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
