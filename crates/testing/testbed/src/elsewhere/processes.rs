//! The processes, their sockets, and the words in which they are given a place.

use std::collections::BTreeMap;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Child;
use std::time::Duration;

use super::{MANAGERS, Place};
use crate::wait_until;

const SOON: Duration = Duration::from_secs(30);

/// The processes, and the folder of their sockets. Both go with this.
pub struct Processes {
    folder: PathBuf,
    running: BTreeMap<&'static str, Child>,
}

impl Default for Processes {
    fn default() -> Self {
        // Tests of one process have a folder each.
        let name = format!("bosun-elsewhere-{}-{:?}", std::process::id(), std::thread::current().id());
        Processes { folder: std::env::temp_dir().join(name), running: BTreeMap::new() }
    }
}

impl Processes {
    fn socket(&self, manager: &str) -> PathBuf {
        self.folder.join(format!("{manager}.sock"))
    }

    /// Where a manager is served.
    #[must_use]
    pub fn address(&self, manager: &str) -> String {
        format!("unix://{}", self.socket(manager).display())
    }

    /// The flags of a daemon that has all managers there, and goes on with its own where they are away.
    #[must_use]
    pub fn flags(&self) -> Vec<String> {
        let flag = |manager| format!("--manager={manager}={},whenAway=builtin,probation=0s", self.address(manager));
        MANAGERS.map(flag).to_vec()
    }

    /// Starts all of them, and waits until somebody listens at each socket: that is there a moment before.
    ///
    /// # Panics
    /// When one does not listen in time; its log is told.
    pub fn start_all(&mut self, place: &mut impl Place) {
        for manager in MANAGERS {
            let (bosun, bed) = place.parts();
            let child = bosun.serve(bed, manager, &self.address(manager)).unwrap_or_else(|e| panic!("{e}"));
            self.running.insert(manager, child);
        }
        for manager in MANAGERS {
            wait_until(&format!("{manager} to listen"), SOON, || {
                let log = || std::fs::read_to_string(place.bosun().serve_log(manager)).unwrap_or_default();
                UnixStream::connect(self.socket(manager)).map(drop).map_err(|e| format!("{e}\n{}", log()))
            })
            .unwrap_or_else(|e| panic!("{e}"));
        }
    }

    /// Kills one, at once.
    ///
    /// # Panics
    /// When the kernel refuses.
    pub fn kill(&mut self, manager: &str) {
        if let Some(mut child) = self.running.remove(manager) {
            child.kill().unwrap_or_else(|e| panic!("{manager}: {e}"));
            child.wait().unwrap_or_else(|e| panic!("{manager}: {e}"));
        }
    }

    /// Memory that each holds, in KiB.
    #[must_use]
    pub fn resident_kib(&self) -> BTreeMap<&'static str, u64> {
        let of = |child: &Child| crate::usage(child.id()).map(|usage| usage.rss_kib);
        self.running.iter().filter_map(|(name, child)| Some((*name, of(child)?))).collect()
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        MANAGERS.into_iter().for_each(|manager| self.kill(manager));
        if let Err(e) = std::fs::remove_dir_all(&self.folder) {
            eprintln!("{} stays: {e}", self.folder.display());
        }
    }
}

/// Gives the place of `manager` to somebody; answers what is said of it.
pub(super) fn swap(place: &impl Place, manager: &str, to: &str) -> String {
    let said = place.bosun().cli(&["manager", "swap", manager, "--to", to, "--probation", "1s"]);
    said.unwrap_or_else(|e| panic!("{manager} to {to}: {e}\n{}", place.bosun().log()))
}

/// The milliseconds that a swap to a process says it took until that one served.
pub(super) fn took(said: &str) -> u64 {
    let after = said.split_whitespace().skip_while(|word| *word != "after").nth(1);
    after.and_then(|ms| ms.parse().ok()).unwrap_or_else(|| panic!("{said}"))
}

/// Nothing of it was refused, and no other one had to take its place.
pub(super) fn was_good(place: &impl Place, manager: &str) {
    let line = place.bosun().get(&format!("managers/{manager}")).unwrap_or_else(|e| panic!("{e}"));
    for (what, count) in line["refused"].as_object().into_iter().flatten() {
        assert_eq!(count, 0, "{what}: {line}");
    }
    let history = line["history"].as_array().into_iter().flatten();
    let failed = history.filter(|h| h["text"].as_str().is_some_and(|t| t.contains("rolled back")));
    assert_eq!(failed.count(), 0, "{line}");
}

/// Waits until `manager` is served by one that is there and has begun.
///
/// # Panics
/// When it is not in time.
pub fn wait_served(place: &impl Place, manager: &str, by: &str) {
    wait_until(&format!("{manager} to be served by {by}"), SOON, || {
        let line = place.bosun().get(&format!("managers/{manager}")).map_err(|e| e.to_string())?;
        let is = line["servedBy"] == by && (by == "builtin" || line["program"].is_string());
        if is { Ok(()) } else { Err(format!("{line}\n{}", place.bosun().log())) }
    })
    .unwrap_or_else(|e| panic!("{e}"));
}
