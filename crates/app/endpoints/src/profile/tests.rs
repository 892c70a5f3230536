use super::counters::{Bytes, mappings, ticks};
use super::proto::{Builder, Profile};
use super::*;
use prost::Message;
use std::io::Read;

#[test]
fn a_profile_is_in_the_format_of_pprof() {
    let mut builder = Builder::new(&[("cpu", "nanoseconds"), ("turns", "nanoseconds")]);
    builder.sample(&["main", "threads"], &[5, 0]);
    builder.sample(&["worker", "threads"], &[7, 0]);
    let mut raw = Vec::new();
    flate2::read::GzDecoder::new(builder.gzipped().as_slice()).read_to_end(&mut raw).unwrap();
    let profile = Profile::decode(raw.as_slice()).unwrap();
    assert_eq!(profile.string_table[0], "");
    let text = |i: i64| profile.string_table[usize::try_from(i).unwrap()].as_str();
    assert_eq!(text(profile.sample_type[1].kind), "turns");
    assert_eq!(text(profile.default_sample_type), "cpu");
    let name = |id: u64| {
        let location = profile.location.iter().find(|l| l.id == id).unwrap();
        text(profile.function.iter().find(|f| f.id == location.line[0].function_id).unwrap().name)
    };
    let stacks: Vec<Vec<&str>> =
        profile.sample.iter().map(|s| s.location_id.iter().map(|id| name(*id)).collect()).collect();
    assert_eq!(stacks, [["main", "threads"], ["worker", "threads"]]);
    assert_eq!(profile.sample[1].value, [7, 0]);
    assert_eq!(profile.location.len(), 3);
}

#[test]
fn memory_is_summed_by_what_is_mapped() {
    let smaps = "55d0-55d1 r-xp 00000000 08:01 42                         /usr/bin/bo sun\n\
                 Size:                  4 kB\nRss:                   4 kB\nPrivate_Dirty:         0 kB\n\
                 VmFlags: rd ex mr\n\
                 55d1-55d2 rw-p 00000000 08:01 42                         /usr/bin/bo sun\n\
                 Rss:                   8 kB\nPrivate_Dirty:         8 kB\n\
                 7f00-7f01 rw-p 00000000 00:00 0 \nRss:                  16 kB\nPrivate_Dirty:        12 kB\n";
    let found = mappings(smaps);
    assert_eq!(found["anonymous"], Bytes { resident: 16384, private_dirty: 12288 });
    assert_eq!(found["/usr/bin/bo sun"], Bytes { resident: 12288, private_dirty: 8192 });
    assert_eq!(found.values().map(|b| b.resident).sum::<u64>(), 28 * 1024);
}

#[test]
fn a_thread_may_be_called_anything() {
    assert_eq!(ticks("12 (a) b) S 1 2 3 4 5 6 7 8 9 10 3 4 0 0"), Some(70_000_000));
    assert_eq!(ticks("12 (a"), None);
}

#[test]
fn a_command_line_is_shown_without_credentials() {
    let shown = |args: &[&str]| cmdline(args.iter().map(|a| (*a).to_owned()));
    assert_eq!(
        shown(&["bosun", "--manifest-url-header=a:b", "-v=2"]),
        ["bosun", "--manifest-url-header=<masked>", "-v=2"]
    );
    assert_eq!(
        shown(&["bosun", "--manifest_url_header", "a:b", "x"]),
        ["bosun", "--manifest_url_header", "<masked>", "x"]
    );
}
