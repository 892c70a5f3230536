//! What must survive a loss of power is on the disk in this order: content, name.

use std::cell::RefCell;

use super::*;

#[test]
fn content_comes_to_the_disk_before_its_name_and_the_name_before_the_answer() {
    let (_t, p) = tmp();
    let file = p.join("kubelet.pem");
    fs::write(&file, "old").unwrap();
    let seen = RefCell::new(Vec::new());
    let sync = |synced: &fs::File| {
        let what = synced.metadata()?;
        let mut content = String::new();
        if what.is_file() {
            let mut copy = fs::File::open(crate::files::open::by_descriptor(synced))?;
            copy.read_to_string(&mut content)?;
        } else {
            assert_eq!(what.ino(), p.metadata()?.ino(), "the folder that the name is in");
        }
        seen.borrow_mut().push((what.is_file(), content, fs::read_to_string(&file)?));
        Ok(())
    };
    replace_synced(&file, b"new", 0o600, &sync).unwrap();
    let text = str::to_owned;
    assert_eq!(seen.take(), [(true, text("new"), text("old")), (false, text(""), text("new"))]);
    assert_eq!(mode(&file), 0o600);
}

#[test]
fn content_that_did_not_reach_the_disk_replaces_nothing() {
    let (_t, p) = tmp();
    let file = p.join("kubelet.pem");
    fs::write(&file, "old").unwrap();
    let full = |_: &fs::File| Err(io::ErrorKind::StorageFull.into());
    assert_eq!(replace_synced(&file, b"new", 0o600, &full).unwrap_err().kind(), io::ErrorKind::StorageFull);
    assert_eq!(fs::read_to_string(&file).unwrap(), "old");
    assert_eq!(LinuxFs.list_dir(&p).unwrap().len(), 1, "nothing is left beside it");
}

#[test]
fn real_files_and_folders_are_synced() {
    let (_t, p) = tmp();
    LinuxFs.write_file_synced(&p.join("key"), b"secret", 0o600).unwrap();
    assert_eq!(LinuxFs.read_file(&p.join("key"), 10).unwrap(), b"secret");
    LinuxFs.sync_file(&p.join("key")).unwrap();
    assert!(LinuxFs.sync_file(&p.join("none")).unwrap_err().is_not_found());
    LinuxFs.sync_dir(&p).unwrap();
    assert!(LinuxFs.sync_dir(&p.join("none")).unwrap_err().is_not_found());
}
