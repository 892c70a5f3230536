//! What archives may hold, and how it must come out.

use std::os::unix::fs::{FileTypeExt, MetadataExt};

use super::*;

/// Version 2 of the attribute: `cap_net_raw` permitted and effective.
const CAPABILITY: &[u8] = &[1, 0, 0, 2, 0, 32, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

#[test]
fn files_of_all_kinds_come_out_as_they_went_in() {
    let mut suid = header(EntryType::Regular, "bin/su", "", 2);
    suid.set_mode(0o4755);
    suid.set_uid(7);
    suid.set_gid(8);
    suid.set_cksum();
    let mut device = header(EntryType::Char, "dev/zero", "", 0);
    device.set_device_major(1).unwrap();
    device.set_device_minor(5).unwrap();
    device.set_mode(0o666);
    device.set_cksum();
    let mut disk = header(EntryType::Block, "dev/disk", "", 0);
    disk.set_device_major(259).unwrap();
    disk.set_device_minor(70_000).unwrap();
    disk.set_cksum();
    let archive = Tar::new()
        .dir("./")
        .dir("bin/")
        .raw(&suid, b"su")
        .file("bin/empty", b"")
        .hard_link("bin/again", "bin/su")
        .symlink("sh", "/bin/su")
        .dir("dev")
        .raw(&device, b"")
        .raw(&disk, b"")
        .entry(EntryType::Fifo, "dev/pipe", "", b"")
        .end();
    let place = Place::new();
    let made = place.unpack(&archive).unwrap();
    let su = place.at("bin/su").metadata().unwrap();
    assert_eq!((su.mode() & 0o7777, su.uid(), su.gid(), su.nlink(), su.mtime()), (0o4755, 7, 8, 2, 1_000_000_000));
    assert_eq!(read(&place.at("bin/again")), "su");
    assert_eq!(std::fs::read_link(place.at("sh")).unwrap(), Path::new("/bin/su"));
    let zero = place.at("dev/zero").metadata().unwrap();
    assert!(zero.file_type().is_char_device() && zero.rdev() == rustix::fs::makedev(1, 5));
    assert_eq!(zero.mode() & 0o777, 0o666, "whatever the umask is");
    assert_eq!(place.at("dev/disk").metadata().unwrap().rdev(), rustix::fs::makedev(259, 70_000));
    assert!(place.at("dev/pipe").metadata().unwrap().file_type().is_fifo());
    for path in ["bin", "dev", "sh", "dev/pipe"] {
        assert_eq!(place.at(path).symlink_metadata().unwrap().mtime(), 1_000_000_000, "{path}");
    }
    assert_eq!((made.inodes, made.archive_bytes, made.implied.len()), (9, archive.len() as u64, 0));
}

#[test]
fn long_names_attributes_and_fine_times_come_from_extended_headers() {
    let (long, longer) = ("d/".to_owned() + &"n".repeat(200), "d/".to_owned() + &"l".repeat(200));
    let archive = Tar::new()
        .entry(EntryType::GNULongName, "././@LongLink", "", format!("{long}\0").as_bytes())
        .file("cut", b"gnu")
        .entry(EntryType::GNULongLink, "././@LongLink", "", format!("{long}\0").as_bytes())
        .hard_link("linked", "cut")
        .pax(&[
            ("path", longer.as_bytes()),
            ("mtime", b"1500000000.25"),
            ("uid", b"3000000"),
            ("SCHILY.xattr.security.capability", CAPABILITY),
            ("SCHILY.xattr.user.note", b"a\nb"),
            ("SCHILY.xattr.security.selinux", b"label"),
        ])
        .file("cut", b"pax")
        .entry(EntryType::XGlobalHeader, "pax_global_header", "", &record("path", b"nowhere"))
        .file("plain", b"x")
        .end();
    let place = Place::new();
    let made = place.unpack(&archive).unwrap();
    assert_eq!(read(&place.at("linked")), "gnu");
    let file = place.at(&longer);
    let meta = file.metadata().unwrap();
    assert_eq!((meta.uid(), meta.mtime(), meta.mtime_nsec()), (3_000_000, 1_500_000_000, 250_000_000));
    assert_eq!(xattr(&file, "security.capability").as_deref(), Some(CAPABILITY));
    assert_eq!(xattr(&file, "user.note").as_deref(), Some(&b"a\nb"[..]));
    assert_eq!((made.skipped_xattrs, made.implied), (1, vec![b"d".to_vec()]));
    assert_eq!(read(&place.at("plain")), "x", "a header for all is left out");
}

#[test]
fn compression_is_known_by_the_first_bytes_and_may_be_in_pieces() {
    let archive = Tar::new().file("a", &vec![b'a'; 300_000]).file("b", b"b").end();
    let (first, second) = archive.split_at(100_000);
    let skipped = [&[0x50, 0x2a, 0x4d, 0x18, 4, 0, 0, 0][..], b"skip"].concat();
    let rows = [
        ("plain", archive.clone()),
        ("gzip", gzip(&archive)),
        ("gzip in members", [gzip(first), gzip(second)].concat()),
        ("zstd", zstd(&archive)),
        ("zstd in frames", [skipped.clone(), zstd(first), skipped.clone(), zstd(second), skipped].concat()),
    ];
    for (form, layer) in rows {
        let place = Place::new();
        let made = place.unpack_with(&layer, &archive, &Limits::default()).unwrap_or_else(|e| panic!("{form}: {e}"));
        assert_eq!(made.archive_bytes, archive.len() as u64, "{form}");
        assert_eq!(read(&place.at("a")).len(), 300_000, "{form}");
    }
}

#[test]
fn an_archive_may_end_without_zeros_and_zeros_may_follow_its_end() {
    for archive in
        [Tar::new().file("a", b"a").0, [Tar::new().file("a", b"a").end(), vec![0; 9000]].concat(), Vec::new()]
    {
        Place::new().unpack(&archive).unwrap();
    }
}

#[test]
fn a_later_entry_takes_the_place_of_an_earlier_one() {
    let archive = Tar::new()
        .dir("was-dir/deep")
        .file("was-dir/deep/x", b"x")
        .file("was-dir", b"now a file")
        .file("was-file", b"")
        .dir("was-file")
        .file("was-file/in", b"in")
        .symlink("was-link", "/outside")
        .file("was-link", b"file")
        .dir("kept")
        .file("kept/a", b"a")
        .dir("kept")
        .hard_link("self", "kept/a")
        .hard_link("self", "self")
        .end();
    let place = Place::new();
    place.unpack(&archive).unwrap();
    assert_eq!(read(&place.at("was-dir")), "now a file");
    assert_eq!(read(&place.at("was-file/in")), "in");
    assert!(place.at("was-link").symlink_metadata().unwrap().is_file());
    assert_eq!((read(&place.at("kept/a")), read(&place.at("self"))), ("a".to_owned(), "a".to_owned()));
}

#[test]
fn links_in_a_path_lead_to_places_in_the_layer() {
    let archive = Tar::new()
        .symlink("var/run", "/run")
        .file("var/run/pid", b"1")
        .symlink("up", "../../../../opt")
        .file("up/x", b"2")
        .dir("usr/lib")
        .symlink("lib", "usr/lib")
        .file("lib/y", b"3")
        .hard_link("z", "lib/y")
        .end();
    let place = Place::new();
    let made = place.unpack(&archive).unwrap();
    let texts = ["run/pid", "opt/x", "usr/lib/y", "z"].map(|p| read(&place.at(p)));
    assert_eq!(texts, ["1", "2", "3", "3"]);
    let implied: Vec<String> = made.implied.iter().map(|p| String::from_utf8(p.clone()).unwrap()).collect();
    assert_eq!(implied, ["opt", "run", "usr", "var"]);
}
