//! Takes memory until it is ended. `hog MIB_PER_SECOND [THRESHOLD FILE]`: at such a pace; the file tells since when less than the
//! threshold (MiB) is available, and for how long it has lived since. `hog hold MIB`: so much. `hog until MIB`: as much as leaves
//! so much available.

#![forbid(unsafe_code)]

use std::os::unix::fs::FileExt as _;
use std::time::{Duration, Instant};

const MIB: usize = 1 << 20;
const PAGE: usize = 4096;
/// Between two steps.
const PAUSE: Duration = Duration::from_millis(5);

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["hold", mib] => {
            let held: Vec<_> = (0..number(mib)).map(|_| piece()).collect();
            rest(&held);
        }
        ["until", mib] => {
            let mut held = Vec::new();
            while available() > number(mib) {
                held.push(piece());
            }
            rest(&held);
        }
        [rate] => pace(number(rate), |_| {}),
        [rate, threshold, file] => watched(number(rate), number(threshold), file),
        _ => panic!("hog MIB_PER_SECOND [THRESHOLD FILE] | hold MIB | until MIB"),
    }
}

fn number(text: &str) -> u64 {
    text.parse().expect("a number")
}

/// Memory that is really there.
fn piece() -> Vec<u8> {
    let mut piece = vec![0_u8; MIB];
    piece.iter_mut().step_by(PAGE).for_each(|byte| *byte = 1);
    piece
}

fn rest(held: &[Vec<u8>]) {
    println!("{}", held.len());
    loop {
        testbed::let_pass(Duration::from_secs(3600));
    }
}

fn pace(rate: u64, mut step: impl FnMut(Duration)) {
    let (begin, mut held) = (Instant::now(), Vec::new());
    loop {
        let due = u128::from(rate) * begin.elapsed().as_millis() / 1000;
        while (held.len() as u128) < due {
            held.push(piece());
            step(begin.elapsed());
        }
        step(begin.elapsed());
        testbed::let_pass(PAUSE);
    }
}

/// The file has the milliseconds from the crossing to the last step, and the least that was available.
fn watched(rate: u64, threshold: u64, path: &str) {
    let file = std::fs::File::create(path).expect("a file");
    let (mut crossed, mut least) = (None, u64::MAX);
    pace(rate, |now| {
        least = least.min(available());
        if least < threshold {
            let since = *crossed.get_or_insert(now);
            let line = format!("{:>9} {least:>6}\n", now.saturating_sub(since).as_millis());
            file.write_all_at(line.as_bytes(), 0).expect("written");
        }
    });
}

/// MiB that are available as a kubelet counts on cgroup v2: what is free, and files that nobody used lately.
fn available() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").expect("/proc");
    let of = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)).expect("a line");
        number(line.trim().trim_end_matches(" kB"))
    };
    (of("MemFree:") + of("Inactive(file):")) / 1024
}
