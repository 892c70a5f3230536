//! Files as other lives, other versions and operators leave them.

use cert_rotation::Files;
use fakes::LinuxFs;
use tempfile::TempDir;

use super::rig::START_S;
use crate::signing;
use crate::store::{
    Pending, StoreError, StoredPair, forget_spent, load, load_pending, save, save_pending, stored_pair,
};

fn pair(name: &str) -> StoredPair {
    let (chain, key) = signing::self_signed(name, START_S).unwrap();
    stored_pair(chain, key, "x".as_ref()).unwrap()
}

fn folder() -> (TempDir, Files) {
    let dir = tempfile::tempdir().unwrap();
    let files = Files::client(dir.path());
    (dir, files)
}

#[test]
fn what_is_kept_is_found() {
    let (_dir, files) = folder();
    assert!(load(&LinuxFs, &files, None).unwrap().is_none());
    for (name, at) in [("a", START_S), ("b", START_S + 1)] {
        let kept = pair(name);
        save(&LinuxFs, &files, &kept.pair, at).unwrap();
        let found = load(&LinuxFs, &files, None).unwrap().unwrap();
        assert_eq!(found.facts, kept.facts);
        assert_eq!(std::fs::read_link(files.current()).unwrap(), files.dated(at));
    }
    assert!(files.dated(START_S).exists(), "old pairs stay, as a kubelet leaves them");
}

#[test]
fn a_daemon_that_died_before_the_rename_is_carried_on() {
    let (_dir, files) = folder();
    let kept = pair("a");
    save(&LinuxFs, &files, &kept.pair, START_S).unwrap();
    std::fs::rename(files.current(), files.updated()).unwrap();
    assert_eq!(load(&LinuxFs, &files, None).unwrap().unwrap().facts, kept.facts);
    assert!(files.current().is_symlink() && !files.updated().is_symlink());
}

#[test]
fn a_leftover_beside_a_current_pair_is_no_obstacle() {
    let (_dir, files) = folder();
    save(&LinuxFs, &files, &pair("a").pair, START_S).unwrap();
    std::os::unix::fs::symlink(files.dated(START_S), files.updated()).unwrap();
    let second = pair("b");
    save(&LinuxFs, &files, &second.pair, START_S + 1).unwrap();
    assert_eq!(load(&LinuxFs, &files, None).unwrap().unwrap().facts, second.facts);
}

#[test]
fn a_regular_file_in_the_place_of_a_link_is_an_error() {
    let (_dir, files) = folder();
    let kept = pair("a");
    std::fs::write(files.current(), format!("{}{}", kept.pair.certificate_pem, kept.pair.key_pem)).unwrap();
    assert!(matches!(load(&LinuxFs, &files, None), Err(StoreError::NotALink(path)) if path == files.current()));
    assert!(matches!(save(&LinuxFs, &files, &kept.pair, START_S), Err(StoreError::NotALink(_))));
    std::fs::remove_file(files.current()).unwrap();
    std::fs::write(files.updated(), "").unwrap();
    assert!(matches!(load(&LinuxFs, &files, None), Err(StoreError::NotALink(path)) if path == files.updated()));
}

#[test]
fn a_request_whose_certificate_is_in_force_is_forgotten() {
    let (_dir, files) = folder();
    let (mine, other) = (pair("a"), pair("b"));
    let pending =
        |stored: &StoredPair| Pending { key_pem: stored.pair.key_pem.clone(), template: "t".to_owned(), request: None };
    for (of, kept) in [(&mine, false), (&other, true)] {
        save_pending(&LinuxFs, &files, &pending(of)).unwrap();
        forget_spent(&LinuxFs, &files, &mine).unwrap();
        assert_eq!(load_pending(&LinuxFs, &files, "t").is_some(), kept);
    }
    assert!(load_pending(&LinuxFs, &files, "another template").is_none());
}

#[test]
fn pairs_are_looked_for_in_the_order_of_the_book() {
    let (dir, files) = folder();
    let put = |stored: &StoredPair, cert: &std::path::Path, key: &std::path::Path| {
        std::fs::write(cert, &stored.pair.certificate_pem).unwrap();
        std::fs::write(key, &stored.pair.key_pem).unwrap();
    };
    let (old, configured, current) = (pair("old"), pair("configured"), pair("current"));
    let two = (dir.path().join("x.crt"), dir.path().join("x.key"));
    let found = || load(&LinuxFs, &files, Some(&two)).unwrap().map(|h| h.facts);
    put(&old, &files.old_certificate(), &files.old_key());
    assert_eq!(found(), Some(old.facts));
    put(&configured, &two.0, &two.1);
    assert_eq!(found(), Some(configured.facts));
    save(&LinuxFs, &files, &current.pair, START_S).unwrap();
    assert_eq!(found(), Some(current.facts));
}

#[test]
fn damaged_pairs_are_named() {
    let (_dir, files) = folder();
    let (a, b) = (pair("a"), pair("b"));
    let rows = [
        (String::new(), "NoCertificate"),
        (a.pair.certificate_pem.clone(), "NoKey"),
        (format!("{}{}", a.pair.certificate_pem, b.pair.key_pem), "KeyMismatch"),
        (a.pair.certificate_pem.replace("MII", "AAA") + &a.pair.key_pem, "Damaged"),
    ];
    for (text, wanted) in rows {
        std::fs::write(files.dated(START_S), text).unwrap();
        let _ = std::fs::remove_file(files.current());
        std::os::unix::fs::symlink(files.dated(START_S), files.current()).unwrap();
        let error = load(&LinuxFs, &files, None).unwrap_err();
        assert!(format!("{error:?}").contains(wanted), "{wanted}: {error:?}");
    }
}
