//! Layers that mean harm. None writes outside, each is refused with a reason.

use super::*;

fn with_size(kind: EntryType, name: &str, size: u64) -> Header {
    header(kind, name, "", size)
}

/// Reasons beside archives that nobody may take.
fn refused() -> Vec<(&'static str, Vec<u8>)> {
    let pax = |key, value: &[u8]| Tar::new().pax(&[(key, value)]).file("f", b"x").end();
    let mut no_number = header(EntryType::Regular, "f", "", 0);
    no_number.as_old_mut().uid = *b"zzzzzzzz";
    no_number.set_cksum();
    let mut no_size = header(EntryType::Regular, "f", "", 0);
    no_size.as_old_mut().size = *b"zzzzzzzzzzzz";
    no_size.set_cksum();
    let mut wrong_sum = header(EntryType::Regular, "f", "", 0);
    wrong_sum.as_old_mut().name[0] = b'g';
    let mut huge = header(EntryType::Regular, "f", "", 0);
    huge.set_size(u64::MAX - 100);
    huge.set_cksum();
    vec![
        ("leads upwards", Tar::new().file("../victim", b"x").end()),
        ("leads upwards", Tar::new().file("a/../../victim", b"x").end()),
        ("leads upwards", Tar::new().file("./../victim", b"x").end()),
        ("leads upwards", Tar::new().dir("..").end()),
        ("leads upwards", Tar::new().dir("a/..").end()),
        ("leads upwards", Tar::new().symlink("../victim", "x").end()),
        ("leads upwards", Tar::new().entry(EntryType::Fifo, "../victim", "", b"").end()),
        ("leads upwards", Tar::new().entry(EntryType::Block, "../../sda", "", b"").end()),
        ("leads upwards", pax("path", b"../victim")),
        ("leads upwards", Tar::new().entry(EntryType::GNULongName, "L", "", b"../victim\0").file("f", b"").end()),
        ("leads upwards", Tar::new().hard_link("a", "../victim").end()),
        ("leads upwards", Tar::new().hard_link("../outside/new", "a").end()),
        ("leads upwards", Tar::new().pax(&[("linkpath", b"x/../../victim")]).hard_link("a", "f").end()),
        ("leads upwards", Tar::new().file("../.wh.victim", b"").end()),
        ("leads upwards", Tar::new().file(".wh..", b"").end()),
        ("leads upwards", Tar::new().file("a/.wh...", b"").end()),
        ("leads upwards", Tar::new().file("../outside/.wh..wh..opq", b"").end()),
        ("whiteout of nothing", Tar::new().file("a/.wh.", b"").end()),
        ("does not have", Tar::new().hard_link("a", "victim").end()),
        ("does not have", Tar::new().symlink("l", "..").hard_link("a", "l/victim").end()),
        ("does not have", Tar::new().symlink("l", "/proc/self/root").hard_link("a", "l/etc/passwd").end()),
        ("cannot have one", Tar::new().dir("d").hard_link("a", "d").end()),
        ("link to the root", Tar::new().hard_link("a", "/").end()),
        ("round in a circle", Tar::new().symlink("l", "l").file("l/x", b"").end()),
        ("round in a circle", Tar::new().symlink("l", "m").symlink("m", "l").file("l/x", b"").end()),
        ("no directory", Tar::new().file("f", b"").file("f/x", b"").end()),
        ("no directory", Tar::new().file("f", b"").file("f/.wh.x", b"").end()),
        ("no directory", Tar::new().symlink("l", "/f").file("f", b"").file("l/x", b"").end()),
        ("too long", Tar::new().pax(&[("path", &[b'n'; 300])]).file("f", b"").end()),
        ("longer than 4096", Tar::new().pax(&[("path", &b"a/".repeat(3000))]).file("f", b"").end()),
        ("has a NUL", pax("path", b"a\0b")),
        ("deep", Tar::new().pax(&[("path", &b"a/".repeat(300))]).dir("f").end()),
        ("sparse", Tar::new().entry(EntryType::GNUSparse, "f", "", b"").end()),
        ("sparse", pax("GNU.sparse.major", b"1")),
        ("of a kind", Tar::new().entry(EntryType::new(b'V'), "label", "", b"").end()),
        ("of a kind", Tar::new().entry(EntryType::new(b'M'), "f", "", b"").end()),
        ("no user of Linux", pax("uid", b"4294967295")),
        ("no user of Linux", pax("gid", b"99999999999999")),
        ("no number", pax("uid", b"-1")),
        ("no number", pax("size", b"0x10")),
        ("no time", pax("mtime", b"soon")),
        ("no number", Tar::new().raw(&no_number, b"").end()),
        ("no number", Tar::new().raw(&no_size, b"").end()),
        ("checksum", Tar::new().raw(&wrong_sum, b"").end()),
        ("checksum", vec![0xff; 2048]),
        ("malformed record", Tar::new().entry(EntryType::XHeader, "p", "", b"9999 path=x\n").file("f", b"").end()),
        ("behind an extended header", Tar::new().pax(&[("path", b"x")]).end()),
        ("too many extended", (0..20).fold(Tar::new(), |t, _| t.pax(&[("path", b"x")])).file("f", b"").end()),
        ("behind its end", [Tar::new().file("a", b"a").end(), Tar::new().file("b", b"b").end()].concat()),
        ("behind its end", [Tar::new().file("a", b"a").end(), b"garbage".to_vec()].concat()),
        ("cut off", Tar::new().file("a", &[1; 5000]).end()[..3000].to_vec()),
        ("cut off", Tar::new().file("a", &[1; 5000]).end()[..700].to_vec()),
        ("cut off", Tar::new().file("a", &[1; 10]).end()[..530].to_vec()),
        ("cut off", Tar::new().file("a", &[1; 10]).end()[..100].to_vec()),
        ("cut off", pax("path", b"x")[..600].to_vec()),
        ("cut off", Tar::new().raw(&with_size(EntryType::Regular, "f", 1 << 40), b"x").0),
        ("cut off", Tar::new().raw(&huge, b"x").0),
        ("layer is too large", Tar::new().raw(&with_size(EntryType::XHeader, "f", 1 << 40), b"x").0),
        ("layer is too large", Tar::new().raw(&with_size(EntryType::GNULongLink, "f", 1 << 40), b"x").0),
    ]
}

#[test]
fn what_means_harm_is_refused_with_its_reason_and_touches_nothing_outside() {
    for (reason, archive) in refused() {
        for layer in [archive.clone(), gzip(&archive), zstd(&archive)] {
            let place = Place::new();
            let before = place.surroundings();
            let error = place.unpack_with(&layer, &archive, &Limits::default()).unwrap_err().to_string();
            assert!(error.contains(reason), "{error:?}, not {reason:?}");
            assert_eq!(place.surroundings(), before, "{reason}");
        }
    }
}

/// Links that lead out: taken, as they are a container's own, and never followed by us out of the layer.
#[test]
fn links_that_lead_out_are_kept_and_not_followed_out() {
    let place = Place::new();
    let (outside, victim) = (place.folder.path().join("outside"), place.folder.path().join("victim"));
    let [outside, victim] = [outside, victim].map(|p| p.to_str().unwrap().to_owned());
    let archives = [
        Tar::new().symlink("l", &outside).file("l/secret", b"x"),
        Tar::new().symlink("l", "../outside").file("l/secret", b"x"),
        Tar::new().symlink("l", "../outside").dir("l/secret/"),
        Tar::new().symlink("l", "../outside").file("l/.wh.secret", b"x"),
        Tar::new().symlink("l", "../outside").file("l/.wh..wh..opq", b"x"),
        Tar::new().symlink("l", "../outside").symlink("l/secret", "x"),
        Tar::new().symlink("l", "../outside").entry(EntryType::Fifo, "l/secret", "", b""),
        Tar::new().symlink("l", &victim).file("l", b"x"),
        Tar::new().symlink("l", &victim).hard_link("m", "l").file("m", b"x"),
        Tar::new().symlink("l", "../outside").dir("l"),
        Tar::new().symlink("l", "../outside").dir("l").file("l/secret", b"x"),
        Tar::new().symlink("a", "b").symlink("b", "/../..").file("a/victim", b"x"),
        Tar::new().symlink("p", "/proc/self/cwd").file("p/x", b"x"),
        Tar::new().dir("d").symlink("d/up", "../..").file("d/up/victim", b"x"),
        Tar::new().file("/victim", b"x"),
        Tar::new().file(&format!("/{outside}/secret"), b"x"),
        Tar::new().dir("keep").symlink("keep/l", &outside).file("keep", b"now a file"),
    ];
    for (n, archive) in archives.into_iter().enumerate() {
        let place = Place::new();
        // The same names beside this layer, too.
        let before = place.surroundings();
        place.unpack(&archive.end()).unwrap_or_else(|e| panic!("archive {n}: {e}"));
        assert_eq!(place.surroundings(), before, "archive {n}");
    }
    assert_eq!(read(Path::new(&victim)), "untouched");
    assert_eq!(read(&Path::new(&outside).join("secret")), "untouched");
}

#[test]
fn attributes_of_overlayfs_are_not_taken() {
    let bad = [
        "trusted.overlay.redirect",
        "trusted.overlay.opaque",
        "trusted.overlay.metacopy",
        "user.overlay.redirect",
        "trusted.x",
        "security.ima",
        "security.selinux",
        "system.data",
    ];
    for key in bad {
        let key_in_pax = format!("SCHILY.xattr.{key}");
        let archive = Tar::new().pax(&[(&key_in_pax, b"/../../etc")]).dir("d").end();
        let place = Place::new();
        assert_eq!(place.unpack(&archive).unwrap().skipped_xattrs, 1, "{key}");
        assert_eq!(xattr(&place.at("d"), key), None, "{key}");
    }
}

#[test]
fn another_archive_than_was_promised_is_refused() {
    let (archive, other) = (Tar::new().file("a", b"a").end(), Tar::new().file("a", b"b").end());
    let error = Place::new().unpack_with(&archive, &other, &Limits::default()).unwrap_err();
    assert!(matches!(error, UnpackError::DiffId { .. }), "{error}");
    let zeros = [archive.clone(), vec![0; 512]].concat();
    let error = Place::new().unpack_with(&zeros, &archive, &Limits::default()).unwrap_err();
    assert!(matches!(error, UnpackError::DiffId { .. }), "zeros behind the end count, too: {error}");
}

#[test]
fn damaged_compression_is_refused() {
    let archive = Tar::new().file("a", &(0..60_000u32).flat_map(u32::to_le_bytes).collect::<Vec<_>>()).end();
    let (gz, zs) = (gzip(&archive), zstd(&archive));
    let flipped = |layer: &[u8], at: usize| {
        let mut layer = layer.to_vec();
        layer[at] ^= 0x55;
        layer
    };
    let rows = [
        gz[..gz.len() / 2].to_vec(),
        gz[..gz.len() - 3].to_vec(),
        zs[..zs.len() / 2].to_vec(),
        [&gz[..], b"garbage"].concat(),
        [&zs[..], b"garbage"].concat(),
        flipped(&gz, gz.len() / 2),
        flipped(&gz, gz.len() - 6),
        gz[..12].to_vec(),
        zs[..5].to_vec(),
        b"\x50\x2a\x4d\x18\xff\xff\xff\xffshort".to_vec(),
        b"BZh9".to_vec(),
        b"\xfd7zXZ\0".to_vec(),
        b"\x04\x22\x4d\x18\0\0".to_vec(),
        b"PK\x03\x04zip".to_vec(),
    ];
    for (n, layer) in rows.into_iter().enumerate() {
        let error = Place::new().unpack_with(&layer, &archive, &Limits::default()).unwrap_err();
        assert!(matches!(error, UnpackError::Compression(_)), "row {n}: {error}");
    }
}

/// An archive with a bit of everything.
fn usual() -> Vec<u8> {
    Tar::new()
        .dir("etc")
        .file("etc/passwd", b"root:x:0:0::/root:/bin/sh\n")
        .symlink("etc/link", "../outside/secret")
        .hard_link("etc/hard", "etc/passwd")
        .pax(&[("path", b"etc/long"), ("SCHILY.xattr.user.a", b"b"), ("mtime", b"1.5")])
        .file("x", &[7; 3000])
        .file("var/.wh.gone", b"")
        .file("var/cache/.wh..wh..opq", b"")
        .entry(EntryType::Fifo, "pipe", "", b"")
        .end()
}

/// Mutants of a good layer by chance: bytes changed, pieces cut, doubled and swapped, headers with good checksums over bad fields.
#[test]
fn a_thousand_mutants_write_nothing_outside() {
    let mut rng = fastrand::Rng::with_seed(13);
    let good = usual();
    let (mut refused, mut reasons) = (0, std::collections::HashSet::new());
    for _ in 0..1000 {
        let mutant = mutate(&good, &mut rng);
        let layer = match rng.u8(0..3) {
            0 => mutant.clone(),
            1 => gzip(&mutant),
            _ => zstd(&mutant),
        };
        let place = Place::new();
        let before = place.surroundings();
        // Half of them lie about what they are, half are what their image says.
        let promised = if rng.bool() { &mutant } else { &good };
        if let Err(e) = place.unpack_with(&layer, promised, &Limits::default()) {
            refused += 1;
            reasons.insert(std::mem::discriminant(&e));
            assert!(!e.to_string().is_empty());
        }
        assert_eq!(place.surroundings(), before);
    }
    assert!(refused >= 500 && reasons.len() >= 4, "{refused} refused, {} reasons", reasons.len());
}

fn mutate(good: &[u8], rng: &mut fastrand::Rng) -> Vec<u8> {
    let mut bytes = good.to_vec();
    let blocks = bytes.len() / 512;
    for _ in 0..rng.usize(1..4) {
        let at = rng.usize(0..blocks) * 512;
        match rng.u8(0..7) {
            0 => bytes[rng.usize(0..good.len().min(2048))] ^= 1 << rng.u8(0..8),
            1 => bytes.truncate(rng.usize(1..good.len())),
            2 => bytes.extend_from_slice(&good[at..]),
            3 => bytes.truncate(bytes.len().saturating_sub(512).max(512)),
            _ => field(&mut bytes, at, rng),
        }
        bytes.resize(bytes.len().max(good.len() / 4), 0);
    }
    bytes
}

/// Puts something bad into a field of a header, and makes the checksum fit.
fn field(bytes: &mut [u8], at: usize, rng: &mut fastrand::Rng) {
    let Some(block) = bytes.get_mut(at..at + 512) else { return };
    if &block[257..262] != b"ustar" {
        return;
    }
    let names: [&[u8]; 8] = [
        b"../victim\0",
        b"/etc/passwd\0",
        b"etc/../../victim\0",
        b".wh...\0",
        b"etc/link/x\0",
        b".wh..wh..opq\0",
        b"\0",
        b"etc\0",
    ];
    let name = names[rng.usize(0..names.len())];
    match rng.u8(0..5) {
        0 => block[..name.len()].copy_from_slice(name),
        1 => block[157..157 + name.len()].copy_from_slice(name),
        2 => block[156] = b"01234567xgLKSVM"[rng.usize(0..15)],
        3 => block[124..135].copy_from_slice(format!("{:011o}", rng.u64(0..1 << 33)).as_bytes()),
        _ => block[100 + rng.usize(0..48)] = rng.u8(..),
    }
    let mut header = Header::new_old();
    header.as_mut_bytes().copy_from_slice(block);
    header.set_cksum();
    block.copy_from_slice(header.as_bytes());
}
