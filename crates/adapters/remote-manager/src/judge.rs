//! What is decided about another process, as pure functions.

use std::time::Duration;

use seam::v1::Description;

/// Whose a socket is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owners {
    /// Owner of the folder that it is in.
    pub folder: u32,
    /// Permissions of that folder.
    pub mode: u32,
    /// User of the process that answers on it.
    pub peer: u32,
}

/// Why nobody talks to a process.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// Others may put a socket there.
    #[error("its folder belongs to user {0}, not to user {1} as whom this node runs")]
    FolderOwner(u32, u32),
    /// Others may reach it.
    #[error("its folder has mode {0:04o}; nobody but its owner may enter it (allowed: 0700)")]
    FolderMode(u32),
    /// Another user's process.
    #[error("a process of user {0} answers there, not one of user {1} as whom this node runs")]
    Peer(u32, u32),
    /// It serves another role.
    #[error("it is a {0:?}, wanted is a {1}")]
    Role(String, &'static str),
    /// It was built with another contract.
    #[error(
        "it was built with another contract (its version {version}, hash {theirs:?}; here {ours}); build it anew with this version"
    )]
    Contract {
        /// Its version.
        version: String,
        /// Its hash.
        theirs: String,
        /// The hash here.
        ours: String,
    },
}

/// A socket and a peer that are ours: proof that they were looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Admitted(());

/// Whether the process behind a socket may be talked to by a node that runs as user `me`.
///
/// # Errors
/// See [`Unfit`].
pub fn admit(owners: Owners, me: u32) -> Result<Admitted, Unfit> {
    let Owners { folder, mode, peer } = owners;
    if folder != me {
        return Err(Unfit::FolderOwner(folder, me));
    }
    if mode & 0o077 != 0 {
        return Err(Unfit::FolderMode(mode & 0o7777));
    }
    if peer != me { Err(Unfit::Peer(peer, me)) } else { Ok(Admitted(())) }
}

/// Whether what it says of itself is what is wanted. The words are a stranger's: only so much of them is repeated.
pub(crate) fn is_wanted(said: &Description, role: &'static str, hash: &str) -> Result<(), Unfit> {
    let short = |text: &str| text.chars().take(64).collect::<String>();
    if said.role != role {
        return Err(Unfit::Role(short(&said.role), role));
    }
    if said.hash != hash {
        let (version, theirs) = (short(&said.version), short(&said.hash));
        return Err(Unfit::Contract { version, theirs, ours: hash.to_owned() });
    }
    Ok(())
}

/// How long after `attempts` in vain the next one is made.
pub(crate) fn back_off(attempts: u32) -> Duration {
    let wait = 100.0 * 1.6_f64.powi(i32::try_from(attempts.min(20)).unwrap_or(20));
    Duration::from_millis(3000).min(Duration::from_secs_f64(wait / 1000.0))
}

/// Longest key and value that another process may write to the journal.
const KEY: usize = 512;
const VALUE: usize = 64 << 10;

/// Whether a role may touch a key of the journal, or look for keys that begin so.
pub(crate) fn may_keep(tables: &[&str], key: &str) -> bool {
    key.len() <= KEY && tables.iter().any(|table| key.starts_with(table))
}

/// Whether a value is of a size that is kept.
pub(crate) fn fits(value: &[u8]) -> bool {
    value.len() <= VALUE
}

/// How fast frames are read: many at once, and then so many per second.
#[derive(Debug)]
pub(crate) struct Rate {
    left: f64,
    at: Duration,
}

impl Rate {
    const BURST: f64 = 8192.0;
    const PER_SECOND: f64 = 4096.0;

    pub(crate) fn new(now: Duration) -> Self {
        Rate { left: Self::BURST, at: now }
    }

    /// One more was read; how long to rest before the next one.
    pub(crate) fn spend(&mut self, now: Duration) -> Duration {
        let came = now.saturating_sub(self.at).as_secs_f64() * Self::PER_SECOND;
        self.left = (self.left + came).min(Self::BURST) - 1.0;
        self.at = now;
        Duration::from_secs_f64((-self.left).max(0.0) / Self::PER_SECOND)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_process_of_ours_in_a_folder_of_ours_is_talked_to() {
        let fine = Owners { folder: 0, mode: 0o40700, peer: 0 };
        for (owners, me, said) in [
            (fine, 0, Ok(Admitted(()))),
            (Owners { folder: 7, peer: 7, ..fine }, 7, Ok(Admitted(()))),
            (fine, 7, Err(Unfit::FolderOwner(0, 7))),
            (Owners { folder: 7, ..fine }, 0, Err(Unfit::FolderOwner(7, 0))),
            (Owners { mode: 0o40755, ..fine }, 0, Err(Unfit::FolderMode(0o755))),
            (Owners { mode: 0o41777, ..fine }, 0, Err(Unfit::FolderMode(0o1777))),
            (Owners { mode: 0o40710, ..fine }, 0, Err(Unfit::FolderMode(0o710))),
            (Owners { peer: 1000, ..fine }, 0, Err(Unfit::Peer(1000, 0))),
        ] {
            assert_eq!(admit(owners, me), said, "{owners:?} as {me}");
        }
    }

    #[test]
    fn a_manager_of_another_role_or_contract_is_not_wanted() {
        let fine = Description { role: "R".into(), hash: "h".into(), version: "1".into(), program: "p".into() };
        assert_eq!(is_wanted(&fine, "R", "h"), Ok(()));
        let other = Description { role: "X".repeat(1000), ..fine.clone() };
        assert_eq!(is_wanted(&other, "R", "h"), Err(Unfit::Role("X".repeat(64), "R")));
        let older = Description { hash: String::new(), ..fine };
        let unfit = is_wanted(&older, "R", "h").unwrap_err();
        assert!(matches!(&unfit, Unfit::Contract { theirs, ours, .. } if theirs.is_empty() && ours == "h"), "{unfit}");
    }

    #[test]
    fn attempts_come_later_and_later_up_to_three_seconds() {
        let waits: Vec<u128> = (0..9).map(|n| back_off(n).as_millis()).collect();
        assert_eq!(waits, [100, 160, 256, 409, 655, 1048, 1677, 2684, 3000]);
        assert_eq!(back_off(u32::MAX), Duration::from_secs(3));
    }

    #[test]
    fn a_role_sees_its_own_tables_of_the_journal() {
        for (key, may) in [
            ("probe/c1", true),
            ("probe/", true),
            ("probe", false),
            ("probes/c1", false),
            ("object/secret", false),
            ("", false),
        ] {
            assert_eq!(may_keep(&["probe/"], key), may, "{key}");
        }
        assert!(!may_keep(&[], "probe/c1") && !may_keep(&["probe/"], &format!("probe/{}", "x".repeat(KEY))));
        assert!(fits(&vec![0; VALUE]) && !fits(&vec![0; VALUE + 1]));
    }

    #[test]
    fn who_says_too_much_is_read_slowly() {
        let mut rate = Rate::new(Duration::ZERO);
        assert!((0..8192).all(|_| rate.spend(Duration::ZERO).is_zero()));
        let rests: Duration = (0..4096).map(|_| rate.spend(Duration::ZERO)).last().unwrap();
        assert_eq!(rests.as_millis(), 1000);
        assert_eq!(rate.spend(Duration::from_secs(3)), Duration::ZERO, "it has its rate again");
    }
}
