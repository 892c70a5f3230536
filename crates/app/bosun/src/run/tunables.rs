//! Kernel parameters that a node wants (a kubelet's container manager has the same list).

use std::path::Path;

use anyhow::{Result, bail};
use host_linux::sysctl;

/// Name below `/proc/sys`, and value.
const WANTED: [(&str, i64); 6] = [
    // Memory is handed out without looking, the OOM killer chooses, the machine lives on.
    ("vm/overcommit_memory", 1),
    ("vm/panic_on_oom", 0),
    // A kernel that stumbled boots again, after ten seconds.
    ("kernel/panic", 10),
    ("kernel/panic_on_oops", 1),
    // Each container may take a key of root's.
    ("kernel/keys/root_maxkeys", 1_000_000),
    ("kernel/keys/root_maxbytes", 25_000_000),
];

/// What becomes of one parameter.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Fine,
    Set,
    Wrong(String),
}

/// `protect`: a parameter that differs is an error (`protectKernelDefaults`).
fn verdict((name, wanted): (&str, i64), has: i64, protect: bool) -> Verdict {
    if has == wanted {
        Verdict::Fine
    } else if protect {
        Verdict::Wrong(format!("invalid kernel flag: {name}, expected value: {wanted}, actual value: {has}"))
    } else {
        Verdict::Set
    }
}

/// Sets the parameters below `dir`, or with `protect` looks at them. `forgiving`: what cannot be set in a user namespace stays
/// as it is (gate `KubeletInUserNamespace`).
///
/// # Errors
/// One cannot be read or set, or is not as wanted; all of them are told.
pub(super) fn settle(dir: &Path, protect: bool, forgiving: bool) -> Result<()> {
    let mut wrong = Vec::new();
    for (name, wanted) in WANTED {
        match sysctl::read(dir, name).map(|has| (has, verdict((name, wanted), has, protect))) {
            Err(e) => wrong.push(actor::chain(&e)),
            Ok((_, Verdict::Fine)) => {}
            Ok((_, Verdict::Wrong(why))) => wrong.push(why),
            Ok((has, Verdict::Set)) => match sysctl::write(dir, name, wanted) {
                Ok(()) => tracing::info!(name, before = has, now = wanted, "kernel parameter set"),
                Err(e) if forgiving => {
                    tracing::warn!(error = actor::chain(&e), "kernel parameter stays as it is, in a user namespace");
                }
                Err(e) => wrong.push(actor::chain(&e)),
            },
        }
    }
    if !wrong.is_empty() {
        bail!("kernel parameters: {}", wrong.join("; "));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parameters in a folder, as a fresh kernel has them.
    fn fresh() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("kernel/keys")).unwrap();
        std::fs::create_dir(dir.path().join("vm")).unwrap();
        for (name, value) in WANTED.into_iter().zip([0, 0, 0, 0, 200, 20_000]).map(|((name, _), value)| (name, value)) {
            std::fs::write(dir.path().join(name), format!("{value}\n")).unwrap();
        }
        dir
    }

    fn now(dir: &Path) -> Vec<i64> {
        WANTED.iter().map(|(name, _)| sysctl::read(dir, name).unwrap()).collect()
    }

    #[test]
    fn each_parameter_has_its_verdict() {
        let of = |has, protect| verdict(("vm/panic_on_oom", 0), has, protect);
        assert_eq!([of(0, false), of(0, true), of(1, false)], [Verdict::Fine, Verdict::Fine, Verdict::Set]);
        let why = "invalid kernel flag: vm/panic_on_oom, expected value: 0, actual value: 2";
        assert_eq!(of(2, true), Verdict::Wrong(why.to_owned()));
    }

    #[test]
    fn they_are_set_unless_they_are_protected() {
        let dir = fresh();
        let refused = settle(dir.path(), true, false).unwrap_err().to_string();
        assert_eq!(refused.matches("invalid kernel flag").count(), 5, "{refused}");
        assert_eq!(now(dir.path()), [0, 0, 0, 0, 200, 20_000], "protected means untouched");
        settle(dir.path(), false, false).unwrap();
        assert_eq!(now(dir.path()), [1, 0, 10, 1, 1_000_000, 25_000_000]);
        settle(dir.path(), true, false).unwrap();
    }

    #[test]
    fn what_is_missing_or_cannot_be_set_is_an_error() {
        let dir = fresh();
        std::fs::remove_file(dir.path().join("kernel/panic")).unwrap();
        // Nobody, not even root, writes into a folder.
        let refused = settle(dir.path(), false, true).unwrap_err().to_string();
        assert!(refused.contains("kernel/panic"), "{refused}");
        std::fs::write(dir.path().join("kernel/panic"), "ten").unwrap();
        assert!(settle(dir.path(), false, true).unwrap_err().to_string().contains("parse"));
    }
}
