//! Makes a scenario shorter that shows a fault: whatever can be left out without losing the fault is.

use std::time::{Duration, Instant};

use crate::shape::{Part, Shape};
use crate::step::{Scenario, Step};

/// Of a scenario for which `is_bad` holds, the shortest that can be found in the time. `is_bad` is asked of each candidate.
#[must_use]
pub fn shrink(scenario: &Scenario, within: Duration, mut is_bad: impl FnMut(&Scenario) -> bool) -> Scenario {
    let until = Instant::now() + within;
    let mut best = scenario.clone();
    loop {
        let before = best.clone();
        drop_steps(&mut best, until, &mut is_bad);
        simplify(&mut best, until, &mut is_bad);
        if best == before || Instant::now() >= until {
            return best;
        }
    }
}

/// Chunks of half of the steps, then of a quarter, down to single ones.
fn drop_steps(best: &mut Scenario, until: Instant, is_bad: &mut impl FnMut(&Scenario) -> bool) {
    let mut chunk = best.steps.len().div_ceil(2);
    while chunk > 0 {
        // From the end: what comes later is seldom what it began with.
        let mut at = best.steps.len();
        while at > 0 && Instant::now() < until {
            at = at.saturating_sub(chunk);
            let mut shorter = best.clone();
            shorter.steps.drain(at..(at + chunk).min(best.steps.len()));
            if is_bad(&shorter) {
                *best = shorter;
                at = at.min(best.steps.len());
            }
        }
        chunk /= 2;
    }
}

fn simplify(best: &mut Scenario, until: Instant, is_bad: &mut impl FnMut(&Scenario) -> bool) {
    let last = best.steps.last().map_or(0, |step| step.at_ms);
    let mut candidates = vec![Scenario { calm_ms: last + 1_000, ..best.clone() }];
    for calmer in candidates.drain(..) {
        if calmer.calm_ms < best.calm_ms && is_bad(&calmer) {
            *best = calmer;
        }
    }
    for n in 0..best.steps.len() {
        // Each time from the first again: one change makes another possible.
        while let Some(simpler) = simpler(&best.steps[n].step).into_iter().find_map(|step| {
            let mut candidate = best.clone();
            candidate.steps[n].step = step;
            (Instant::now() < until && is_bad(&candidate)).then_some(candidate)
        }) {
            *best = simpler;
        }
    }
}

/// Steps that are a little simpler.
fn simpler(step: &Step) -> Vec<Step> {
    match step {
        Step::Bind(shape) => simpler_shapes(shape).into_iter().map(Step::Bind).collect(),
        Step::Static(shape) => simpler_shapes(shape).into_iter().map(Step::Static).collect(),
        Step::Reboot { power: true } => vec![Step::Reboot { power: false }],
        Step::KillDaemon { down_ms, turns } => {
            let (now, all) = ((*down_ms, *turns), [(0, *turns), (*down_ms, 0), (*down_ms, turns / 2)]);
            let simpler = all.into_iter().filter(|new| *new != now);
            simpler.map(|(down_ms, turns)| Step::KillDaemon { down_ms, turns }).collect()
        }
        _ => Vec::new(),
    }
}

fn simpler_shapes(shape: &Shape) -> Vec<Shape> {
    let mut all = Vec::new();
    let mut add = |change: &dyn Fn(&mut Shape)| {
        let mut simpler = shape.clone();
        change(&mut simpler);
        if simpler != *shape {
            all.push(simpler);
        }
    };
    for n in 0..shape.init.len() {
        add(&|s| drop(s.init.remove(n)));
    }
    if shape.containers.len() > 1 {
        for n in 0..shape.containers.len() {
            add(&|s| drop(s.containers.remove(n)));
        }
    }
    add(&|s| s.volumes.clear());
    add(&|s| s.host_network = false);
    add(&|s| s.priority = None);
    let parts: [&dyn Fn(&mut Part); 6] = [
        &|p| p.probes.clear(),
        &|p| (p.post_start, p.pre_stop) = (false, false),
        &|p| (p.cpu_m, p.memory_mi) = (0, 0),
        &|p| p.does.clear(),
        &|p| p.stop = crate::shape::Stop::Prompt,
        &|p| p.image = "app:1".to_owned(),
    ];
    for change in parts {
        add(&|s| s.init.iter_mut().chain(&mut s.containers).for_each(change));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::{Mix, generate};

    #[test]
    fn what_the_fault_needs_is_left_and_nothing_else() {
        let scenario = generate(3, Mix { steps: 60, ..Mix::default() });
        let kills = |s: &Scenario| s.steps.iter().filter(|t| matches!(t.step, Step::KillDaemon { .. })).count();
        let binds = |s: &Scenario| s.steps.iter().filter(|t| matches!(t.step, Step::Bind(_))).count();
        assert!(kills(&scenario) > 0 && binds(&scenario) > 1, "the seed has both");
        let short = shrink(&scenario, Duration::from_secs(60), |s| kills(s) > 0 && binds(s) > 1);
        assert_eq!((short.steps.len(), kills(&short), binds(&short)), (3, 1, 2));
        for step in &short.steps {
            if let Step::Bind(shape) = &step.step {
                assert!(simpler_shapes(shape).is_empty(), "{shape:?}");
            }
        }
        assert!(short.calm_ms < scenario.calm_ms);
    }
}
