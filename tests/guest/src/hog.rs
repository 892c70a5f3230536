//! Takes memory until it is ended. `hog MIB_PER_SECOND [THRESHOLD FILE]`: at such a pace; the file tells since when less than the
//! threshold (MiB) is available, and what came of it. `hog hold MIB`: so much. `hog until MIB`: as much as leaves so much available.
//!
//! It writes to a file in memory without a name, as a fault for each page of its own would be too slow in user-mode-linux.

#![forbid(unsafe_code)]

use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::FileExt as _;
use std::time::{Duration, Instant};

const MIB: usize = 1 << 20;
/// Between two steps.
const PAUSE: Duration = Duration::from_millis(5);

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["hold", mib] => {
            let mut memory = Memory::new();
            memory.take_until(|taken| taken >= number(mib));
            memory.rest();
        }
        ["until", mib] => {
            let mut memory = Memory::new();
            memory.take_until(|_| available() <= number(mib));
            memory.rest();
        }
        [rate] => pace(number(rate), |_, _| {}),
        [rate, threshold, file] => watched(number(rate), number(threshold), file),
        _ => panic!("hog MIB_PER_SECOND [THRESHOLD FILE] | hold MIB | until MIB"),
    }
}

fn number(text: &str) -> u64 {
    text.parse().expect("a number")
}

/// What was taken; it is free again when this process ends.
struct Memory {
    file: File,
    mib: u64,
}

impl Memory {
    fn new() -> Self {
        let path = format!("/dev/shm/hog-{}", std::process::id());
        let file = File::create(&path).expect("a file in memory");
        std::fs::remove_file(path).expect("its name goes");
        Memory { file, mib: 0 }
    }

    fn take(&mut self) {
        self.file.write_all(&[1; MIB]).expect("room in /dev/shm");
        self.mib += 1;
    }

    fn take_until(&mut self, is_enough: impl Fn(u64) -> bool) {
        while !is_enough(self.mib) {
            self.take();
        }
    }

    fn rest(self) {
        println!("{}", self.mib);
        loop {
            testbed::let_pass(Duration::from_secs(3600));
        }
    }
}

fn pace(rate: u64, mut step: impl FnMut(Duration, u64)) {
    let (begin, mut memory) = (Instant::now(), Memory::new());
    loop {
        let due = u128::from(rate) * begin.elapsed().as_millis() / 1000;
        while u128::from(memory.mib) < due {
            memory.take();
            step(begin.elapsed(), memory.mib);
        }
        step(begin.elapsed(), memory.mib);
        testbed::let_pass(PAUSE);
    }
}

/// The file has the milliseconds from the crossing to the last step, the least that was available, and what was taken meanwhile.
fn watched(rate: u64, threshold: u64, path: &str) {
    let file = File::create(path).expect("a file");
    let (mut crossed, mut least) = (None, u64::MAX);
    pace(rate, |now, taken| {
        least = least.min(available());
        if least < threshold {
            let (since, before) = *crossed.get_or_insert((now, taken));
            let line = format!("{:>9} {least:>6} {:>6}\n", now.saturating_sub(since).as_millis(), taken - before);
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
