//! What a layer may cost.

use std::io::{Read, repeat};

use super::*;

fn limited(change: impl FnOnce(&mut Limits)) -> Limits {
    let mut limits = Limits::default();
    change(&mut limits);
    limits
}

#[test]
fn each_limit_ends_it_with_a_reason() {
    let zeros = Tar::new().file("zeros", &vec![0; 4 << 20]).end();
    let many = (0..50).fold(Tar::new(), |tar, n| tar.file(&format!("f{n}"), b"")).end();
    let deep = Tar::new().file(&"d/".repeat(40), b"").end();
    let long = Tar::new().pax(&[("path", &[b'p'; 5000])]).file("x", b"").end();
    let rows = [
        (gzip(&zeros), &zeros, limited(|l| l.bytes = 1 << 20), "more than 1048576 bytes"),
        (zstd(&zeros), &zeros, limited(|l| l.bytes = 1 << 20), "more than 1048576 bytes"),
        (gzip(&zeros), &zeros, limited(|l| (l.ratio, l.ratio_from) = (100, 1 << 20)), "a decompression bomb"),
        (zstd(&zeros), &zeros, limited(|l| (l.ratio, l.ratio_from) = (100, 1 << 20)), "a decompression bomb"),
        (many.clone(), &many, limited(|l| l.entries = 20), "more than 20 entries"),
        (deep.clone(), &deep, limited(|l| l.depth = 20), "more than 20 directories deep"),
        (long.clone(), &long, limited(|l| l.extended_header = 1000), "an extended header of 5011 bytes"),
        (zstd(&zeros), &zeros, limited(|l| l.window = 1 << 10), "compressed data cannot be read"),
    ];
    for (layer, archive, limits, reason) in rows {
        let error = Place::new().unpack_with(&layer, archive, &limits).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}, not {reason}");
    }
    let later = limited(|l| (l.ratio, l.ratio_from) = (1, 8 << 20));
    Place::new().unpack_with(&gzip(&zeros), &zeros, &later).unwrap();
    Place::new().unpack_with(&gzip(&zeros), &zeros, &Limits::default()).unwrap();
}

#[test]
fn a_bomb_of_gigabytes_ends_early_and_costs_no_memory() {
    // A name of 8 GiB in a plain archive that never ends, and a file of as much.
    let limits = limited(|l| l.bytes = 64 << 20);
    for kind in [EntryType::GNULongName, EntryType::XHeader, EntryType::Regular] {
        let bomb = header(kind, "bomb", "", 8 << 30);
        let endless = bomb.as_bytes().chain(repeat(0));
        let place = Place::new();
        let result = unpack(endless, &place.layer(), &[0; 32], &limits, &AtomicBool::new(false));
        assert!(matches!(result, Err(UnpackError::Limit(_))), "{result:?}");
    }
}

#[test]
fn who_stops_it_is_heard() {
    let endless = header(EntryType::Regular, "bomb", "", 8 << 30);
    let endless = endless.as_bytes().chain(repeat(0));
    let place = Place::new();
    let result = unpack(endless, &place.layer(), &[0; 32], &Limits::default(), &AtomicBool::new(true));
    assert!(matches!(result, Err(UnpackError::Stopped)));
}

#[test]
fn a_file_that_cannot_be_read_is_no_fault_of_its_contents() {
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            Err(std::io::Error::from_raw_os_error(5))
        }
    }
    let layer = gzip(&Tar::new().file("a", &[1; 9000]).end());
    for cut in [0, 20] {
        let place = Place::new();
        let source = layer[..cut].chain(Broken);
        let result = unpack(source, &place.layer(), &[0; 32], &Limits::default(), &AtomicBool::new(false));
        assert!(matches!(result, Err(UnpackError::Source(_))), "{result:?}");
    }
}
