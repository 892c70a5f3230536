//! `/proc/<pid>/net/dev`. Not by `procfs`, which reads a table of any length and gives up all of it for one line that it does not
//! understand (docs/decisions/0018-host-libraries.md).

use std::io::Read;
use std::path::Path;

use model::reading::{InterfaceCounters, InterfaceReading};

/// A container with rights over its network can make as many interfaces as it likes.
const LONGEST: u64 = 256 << 10;
/// How the host's ends of containers begin.
const IGNORED: [&str; 3] = ["veth", "docker", "nerdctl"];

pub(super) fn read(file: &Path) -> Option<Vec<InterfaceReading>> {
    let mut text = String::new();
    std::fs::File::open(file).ok()?.take(LONGEST).read_to_string(&mut text).ok()?;
    Some(text.lines().filter_map(interface).collect())
}

/// `  eth0: 1 2 3 4 0 0 0 0 5 6 7 8 0 0 0 0`: bytes, packets, errors, drops and four more of what came in, then of what went
/// out. Heads of the table have no such line.
fn interface(line: &str) -> Option<InterfaceReading> {
    // A name may hold a colon, the numbers do not.
    let (name, numbers) = line.rsplit_once(':')?;
    let name = name.trim();
    if name == "lo" || IGNORED.iter().any(|prefix| name.starts_with(prefix)) {
        return None;
    }
    let numbers: Vec<u64> = numbers.split_whitespace().map_while(|n| n.parse().ok()).collect();
    let counters = |at: usize| {
        let [bytes, packets, errors, dropped] = *numbers.get(at..at + 4)? else { return None };
        Some(InterfaceCounters { bytes, packets, errors, dropped })
    };
    Some(InterfaceReading { name: name.to_owned(), received: counters(0)?, sent: counters(8)? })
}
