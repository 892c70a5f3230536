use proptest::prelude::*;

use super::printer::printed;
use crate::{Fed, Format, LogOptions, Stamp, Streams, TailScan, Wanted, decode};

prop_compose! {
    fn stamps()(s in -60_000_000_000_i64..60_000_000_000, n in 0_u32..1_000_000_000, offset in -1439_i64..1440) -> String {
        let offset = jiff::tz::Offset::from_seconds(i32::try_from(offset * 60).unwrap()).unwrap();
        let t = jiff::Timestamp::new(s, i32::try_from(n).unwrap()).unwrap().to_zoned(offset.to_time_zone());
        if offset.seconds() == 0 { t.strftime("%Y-%m-%dT%H:%M:%S.%9fZ").to_string() }
        else { t.strftime("%Y-%m-%dT%H:%M:%S.%9f%:z").to_string() }
    }
}

fn wanted() -> impl Strategy<Value = Wanted> {
    let streams = prop_oneof![Just(Streams::All), Just(Streams::Stdout), Just(Streams::Stderr)];
    (any::<bool>(), streams, proptest::option::of(0_u64..200), proptest::option::of(0_u64..5)).prop_map(
        |(timestamps, streams, limit_bytes, max_lines)| Wanted {
            timestamps,
            since: None,
            streams,
            limit_bytes,
            max_lines,
        },
    )
}

proptest! {
    #[test]
    fn a_time_that_was_rendered_is_read_as_the_same(text in stamps()) {
        let stamp = Stamp::parse(text.as_bytes()).unwrap();
        let mut out = Vec::new();
        stamp.render(&mut out);
        prop_assert_eq!(std::str::from_utf8(&out).unwrap(), &text);
        prop_assert_eq!(Stamp::parse(&out), Some(stamp));
    }

    #[test]
    fn what_a_runtime_writes_is_printed_as_the_container_wrote_it(
        lines in proptest::collection::vec("[^\n]{0,40}", 0..10), chunk in 1_usize..20, step in 1_usize..200,
    ) {
        let mut log = Vec::new();
        let mut written = Vec::new();
        for line in &lines {
            written.extend_from_slice(line.as_bytes());
            written.push(b'\n');
            let mut chunks = line.as_bytes().chunks(chunk).peekable();
            if chunks.peek().is_none() {
                log.extend_from_slice(b"2026-01-01T00:00:00.1Z stdout F \n");
            }
            while let Some(piece) = chunks.next() {
                let tag = if chunks.peek().is_some() { "P" } else { "F" };
                log.extend_from_slice(format!("2026-01-01T00:00:00.1Z stdout {tag} ").as_bytes());
                log.extend_from_slice(piece);
                log.push(b'\n');
            }
        }
        prop_assert_eq!(printed(Wanted::default(), &log, step), (written, Fed::Done));
    }

    #[test]
    fn no_bytes_make_it_panic_and_pieces_never_show(
        noise in proptest::collection::vec(any::<u8>(), 0..400), cri in any::<bool>(), wanted in wanted(), step in 1_usize..64,
    ) {
        let mut log = if cri { b"2026-01-01T00:00:00Z stdout F first\n".to_vec() } else { Vec::new() };
        log.extend(noise);
        let _no_panic = (Format::of(&log), Format::Json.parse(&log), Stamp::parse(&log), crate::quote(&log));
        prop_assert_eq!(printed(wanted, &log, step), printed(wanted, &log, usize::MAX / 2));
    }

    #[test]
    fn no_query_makes_it_panic(query in ".{0,60}", gate in any::<bool>()) {
        if let Err(refusal) = decode(&query, gate) {
            prop_assert!(refusal.code == 400 || refusal.code == 422);
        }
    }

    #[test]
    fn a_number_survives_the_query(n in 1_i64..) {
        let expected = LogOptions { limit_bytes: Some(n.unsigned_abs()), ..LogOptions::default() };
        prop_assert_eq!(decode(&format!("limitBytes={n}"), false), Ok(expected));
    }

    #[test]
    fn so_many_line_feeds_follow_the_tail(
        text in proptest::collection::vec(prop_oneof![Just(b'\n'), Just(b'x')], 0..200), lines in 0_u64..30, block in 1_u64..50,
    ) {
        let mut scan = TailScan::new(text.len() as u64, lines);
        while let Some(range) = scan.next_block(block) {
            let (from, to) = (usize::try_from(range.start).unwrap(), usize::try_from(range.end).unwrap());
            scan.scanned(range.start, &text[from..to]);
        }
        let start = usize::try_from(scan.start().unwrap()).unwrap();
        let feeds = |part: &[u8]| part.iter().filter(|b| **b == b'\n').count() as u64;
        prop_assert_eq!(feeds(&text[start..]), lines.min(feeds(&text)));
        prop_assert!(start == 0 || text[start - 1] == b'\n');
    }
}
