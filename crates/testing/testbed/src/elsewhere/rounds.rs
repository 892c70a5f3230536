//! Managers go and come while pods run, start and end.

use std::collections::BTreeMap;
use std::time::Duration;

use super::pods::{Lasting, Passing, registry};
use super::processes::{Processes, swap, took, wait_served, was_good};
use super::{MANAGERS, Place, wanted};
use crate::let_pass;

/// Moments are by chance: `SEED` has the same ones again.
fn seed() {
    let seed = wanted("SEED", fastrand::usize(..1_000_000));
    eprintln!("SEED={seed}");
    fastrand::seed(seed as u64);
}

/// Seconds, as probes write them down.
fn uptime() -> String {
    let text = std::fs::read_to_string("/proc/uptime").unwrap_or_default();
    text.split(' ').next().unwrap_or_default().to_owned()
}

/// So many swaps, of each manager in its turn, between the one that is built in and one in a process of its own.
///
/// # Panics
/// When one is refused or given back, or a pod that comes meanwhile is not told of as it is.
pub fn swaps(place: &mut impl Place, lasting: &Lasting, swaps: usize) {
    assert!(swaps >= 2 * MANAGERS.len(), "each manager goes and comes back");
    seed();
    let _registry = registry(place.parts().1);
    // What a pull takes here is known before a candidate is judged by it.
    let first = Passing(swaps);
    first.comes(place);
    first.is_told_of(place);
    place.remove(&first.name());
    place.wait_gone(&first.name());
    let mut processes = Processes::default();
    processes.start_all(place);
    for manager in MANAGERS {
        let to = processes.address(manager);
        let dry = place.bosun().cli(&["manager", "swap", manager, "--to", &to, "--dry-run"]);
        let dry = dry.unwrap_or_else(|e| panic!("{e}"));
        assert!(dry.contains("its contract is the one here") && dry.contains("nothing was changed"), "{dry}");
    }
    let mut pauses: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for round in 0..swaps / 2 {
        let manager = MANAGERS[round % MANAGERS.len()];
        let passing = Passing(round);
        passing.comes(place);
        // Somewhere in its start.
        let_pass(Duration::from_millis(fastrand::u64(..1000)));
        let before = uptime();
        let said = swap(place, manager, &processes.address(manager));
        eprintln!("{manager} is swapped from {before} to {}", uptime());
        pauses.entry(manager).or_default().push(took(&said));
        passing.is_told_of(place);
        lasting.probed_again(&*place, round, 1);
        was_good(place, manager);
        place.remove(&passing.name());
        let before = uptime();
        swap(place, manager, "builtin");
        eprintln!("{manager} is swapped back from {before} to {}", uptime());
        lasting.probed_again(&*place, round, 1);
        was_good(place, manager);
    }
    (0..swaps / 2).for_each(|round| place.wait_gone(&Passing(round).name()));
    eprintln!("{swaps} swaps; the processes hold {:?} KiB; until the process served:", processes.resident_kib());
    for (manager, mut all) in pauses {
        all.sort_unstable();
        let of = |percent: usize| all.get(all.len() * percent / 100).or(all.last()).copied().unwrap_or_default();
        eprintln!("{manager}: p50 {} ms, p99 {} ms of {}", of(50), of(99), all.len());
    }
}

/// So many times all managers are killed, each at a moment of its own, and the daemon's own go on.
///
/// # Panics
/// When they do not, or a pod that comes meanwhile is not told of as it is.
pub fn kills(place: &mut impl Place, processes: &mut Processes, lasting: &Lasting, kills: usize) {
    seed();
    let _registry = registry(place.parts().1);
    for kill in 0..kills {
        processes.start_all(place);
        MANAGERS.into_iter().for_each(|manager| wait_served(place, manager, &processes.address(manager)));
        let (begun, later) = (Passing(2 * kill), Passing(2 * kill + 1));
        begun.comes(place);
        let mut moments = MANAGERS.map(|manager| (fastrand::u64(..1500), manager));
        moments.sort_unstable();
        let mut now = 0;
        for (moment, manager) in moments {
            let_pass(Duration::from_millis(moment - now));
            now = moment;
            processes.kill(manager);
        }
        MANAGERS.into_iter().for_each(|manager| wait_served(place, manager, "builtin"));
        later.comes(place);
        for passing in [&begun, &later] {
            passing.is_told_of(place);
        }
        lasting.probed_again(&*place, kill, 1);
        for passing in [&begun, &later] {
            place.remove(&passing.name());
        }
        for passing in [&begun, &later] {
            place.wait_gone(&passing.name());
        }
    }
}
