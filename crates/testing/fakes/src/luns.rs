//! Disks that the host reaches over a network: what `iscsiadm`, `blockdev` and the kernel do about them, for [`MemFs::play_programs`].

#![allow(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    reason = "a host of a test that cannot be is the test's fault"
)]

use std::path::{Path, PathBuf};

use ports::host::{FileKind, HostFs, ProgramEnd};

use crate::MemFs;

/// The name of the target that [`target`] plays, and its first portal.
pub const IQN: &str = "iqn.2001-04.com.example:disks";
pub const TARGET: &str = "10.0.0.1";

/// How a program ends.
pub fn end(code: i32, words: &str) -> ProgramEnd {
    ProgramEnd { code: Some(code), words: words.to_owned() }
}

/// What follows a word in a call.
pub fn after<'a>(line: &'a str, word: &str) -> Option<&'a str> {
    let mut words = line.split(' ');
    words.find(|w| *w == word)?;
    words.next()
}

/// A folder of the host.
pub fn dir(fs: &MemFs, path: &str) {
    fs.create_dir(Path::new(path), 0o755).unwrap();
}

/// A file of the host.
pub fn file(fs: &MemFs, path: &str, text: &str) {
    dir(fs, Path::new(path).parent().unwrap().to_str().unwrap());
    fs.write_file(Path::new(path), text.as_bytes(), 0o644).unwrap();
}

/// A disk appears.
pub fn disk(fs: &MemFs, name: &str, link: &str) {
    dir(fs, Path::new(link).parent().unwrap().to_str().unwrap());
    file(fs, &format!("/sys/block/{name}/device/delete"), "");
    let device = format!("/dev/{name}");
    if fs.stat_link(Path::new(&device)).unwrap().is_none() {
        fs.special(Path::new(&device), FileKind::BlockDevice);
        fs.symlink(Path::new(&device), Path::new(link)).unwrap();
    }
}

/// Where the kernel tells of the session by this adapter.
pub fn session_dir(adapter: &str) -> String {
    format!("/sys/class/iscsi_host/host{adapter}/device/session{adapter}")
}

/// What `iscsiadm` and the kernel do with a target whose portals are 10.0.0.1, 10.0.0.2, ...; sessions by these are on host1, host2.
pub fn target(fs: &MemFs, line: &str) -> ProgramEnd {
    if line.ends_with("iface -I default -o show") {
        return end(0, "iface.iscsi_ifacename = default\niface.transport_name = tcp\n");
    }
    let adapter = |portal: &str| portal.trim_end_matches(":3260").rsplit('.').next().unwrap().to_owned();
    if line.contains("--login") {
        let n = adapter(after(line, "-p").unwrap());
        let session = session_dir(&n);
        file(fs, &format!("{session}/iscsi_session/session{n}/targetname"), &format!("{IQN}\n"));
        let connection = format!("{session}/connection{n}:0/iscsi_connection/connection{n}:0");
        for (name, text) in [("address", format!("10.0.0.{n}\n")), ("port", "3260\n".to_owned())] {
            file(fs, &format!("{connection}/{name}"), &text);
            file(fs, &format!("{connection}/persistent_{name}"), &text);
        }
        file(fs, &format!("/sys/class/scsi_host/host{n}/scan"), "");
    }
    if line.contains("--logout") {
        let session = PathBuf::from(session_dir(&adapter(after(line, "-p").unwrap())));
        let was_there = fs.stat_link(&session).unwrap().is_some();
        fs.remove_tree(&session).unwrap();
        return end(if was_there { 0 } else { 21 }, "");
    }
    if let Some(rest) = line.strip_prefix("write /sys/class/scsi_host/host") {
        let (n, lun) = (rest.split('/').next().unwrap(), rest.rsplit(' ').next().unwrap());
        let name = format!("sd{n}{lun}");
        disk(fs, &name, &format!("/dev/disk/by-path/ip-10.0.0.{n}:3260-iscsi-{IQN}-lun-{lun}"));
        dir(fs, &format!("{}/target{n}:0:0/{n}:0:0:{lun}/block/{name}", session_dir(n)));
    }
    deleted(fs, line);
    end(0, "")
}

/// The kernel lets a disk go.
fn deleted(fs: &MemFs, line: &str) {
    let Some(name) = line.strip_prefix("write /sys/block/").and_then(|rest| rest.strip_suffix("/device/delete 1"))
    else {
        return;
    };
    for links in ["/dev/disk/by-path", "/dev/disk/by-id"] {
        for link in fs.list_dir(Path::new(links)).unwrap_or_default() {
            let link = Path::new(links).join(link.name);
            if fs.read_link(&link).unwrap() == Path::new("/dev").join(name) {
                fs.remove_file(&link).unwrap();
            }
        }
    }
    fs.remove_file(&Path::new("/dev").join(name)).unwrap();
    fs.remove_tree(&Path::new("/sys/block").join(name)).unwrap();
    let number = name.trim_start_matches("sd");
    if let Some((n, lun)) = number.split_at_checked(1).filter(|(n, _)| n.chars().all(char::is_numeric)) {
        fs.remove_tree(Path::new(&format!("{}/target{n}:0:0/{n}:0:0:{lun}", session_dir(n)))).unwrap();
    }
}

pub fn fc(fs: &MemFs, line: &str) -> ProgramEnd {
    if line.starts_with("write /sys/class/scsi_host/host9/scan - - -") {
        for (name, port) in [("sdb", "5006"), ("sdc", "5007")] {
            disk(fs, name, &format!("/dev/disk/by-path/pci-0000:41:00.0-fc-0x{port}-lun-0"));
        }
    }
    deleted(fs, line);
    end(0, "")
}
