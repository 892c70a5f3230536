//! Whom the kernel killed in for lack of memory.

use std::fs;
use std::path::{Path, PathBuf};

/// The line `oom_kill N` of either version's file. `None`: it is gone with its cgroup, if somebody else removed that.
pub(super) fn kills(file: &Path) -> Option<u64> {
    let text = fs::read_to_string(file).ok()?;
    text.lines().find_map(|line| line.strip_prefix("oom_kill ")).and_then(|n| n.trim().parse().ok())
}

/// What the kernel killed in all of a pod: by it the end of a container is told from others whose own file is gone (systemd removes a scope with
/// its last process). Of two that end at once it may be told of the wrong one.
#[derive(Debug)]
pub(super) struct PodKills {
    file: PathBuf,
    /// That of the supervisor's own cgroup, which is in the pod's.
    own: Option<PathBuf>,
    /// Those before this supervisor, and in containers that have ended.
    known: u64,
}

impl PodKills {
    pub(super) fn new(file: PathBuf, own: Option<PathBuf>) -> Self {
        let known = kills(&file).unwrap_or_default();
        Self { file, own, known }
    }

    /// How many were in a container that ended, whose file said so many. `others`: in those whose files can be read.
    pub(super) fn of_ended(&mut self, said: Option<u64>, others: u64) -> u64 {
        let all = kills(&self.file).unwrap_or_default();
        // What starts containers is in it, too.
        let of_helpers = self.own.as_deref().and_then(kills).unwrap_or_default();
        let elsewhere = self.known.saturating_add(others).saturating_add(of_helpers);
        let kills = said.unwrap_or_else(|| all.saturating_sub(elsewhere));
        self.known = self.known.saturating_add(kills);
        kills
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_other_container_accounts_for_was_in_the_one_that_ended() {
        let dir = tempfile::tempdir().expect("folder");
        let file = dir.path().join("memory.events");
        let count = |n: u64| fs::write(&file, format!("low 0\nmax 9\noom 1\noom_kill {n}\n")).expect("file");
        count(3);
        let helpers = dir.path().join("scope");
        let mut pod = PodKills::new(file.clone(), Some(helpers.clone()));
        assert_eq!(pod.of_ended(None, 0), 0, "those were before");
        count(4);
        assert_eq!(pod.of_ended(None, 1), 0, "it was in one that runs");
        assert_eq!(pod.of_ended(Some(1), 0), 1, "which ends now, and says so");
        assert_eq!(pod.of_ended(None, 0), 0);
        count(6);
        assert_eq!(pod.of_ended(None, 0), 2);
        assert_eq!(pod.of_ended(None, 0), 0, "told once");
        count(7);
        fs::write(&helpers, "oom_kill 1\n").expect("file");
        assert_eq!(pod.of_ended(None, 0), 0, "it was one that starts containers");
        count(8);
        assert_eq!(pod.of_ended(None, 0), 1);
        fs::remove_file(&file).expect("gone");
        assert_eq!((pod.of_ended(None, 0), pod.of_ended(Some(2), 0)), (0, 2));
    }
}
