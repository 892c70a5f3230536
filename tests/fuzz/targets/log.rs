//! Container logs: however a file is cut into pieces, what is printed is the same and within its limit.

#![no_main]

use container_log::{Fed, Printer, Wanted, decode};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let [switches, cut, limit, log @ ..] = input else { return };
    if let Ok(query) = std::str::from_utf8(log) {
        let _options = decode(query, switches & 8 != 0);
    }
    let wanted = Wanted {
        timestamps: switches & 1 != 0,
        limit_bytes: (switches & 2 != 0).then(|| u64::from(*limit)),
        max_lines: (switches & 4 != 0).then(|| u64::from(*limit)),
        ..Wanted::default()
    };
    let whole = print(wanted, log, usize::MAX);
    assert_eq!(whole, print(wanted, log, usize::from(*cut).max(1)), "cut into pieces");
    if let (Some(most), Ok(bytes)) = (wanted.limit_bytes, &whole) {
        assert!(bytes.len() as u64 <= most);
    }
});

/// Feeds a log piece by piece, as a reader does: what was not used is shown again with more behind it.
fn print(wanted: Wanted, log: &[u8], piece: usize) -> Result<Vec<u8>, String> {
    let mut printer = Printer::new(wanted);
    let (mut out, mut begin, mut end) = (Vec::new(), 0, 0);
    while end < log.len() {
        end = end.saturating_add(piece).min(log.len());
        let (used, fed) = printer.feed(&log[begin..end], &mut out);
        begin += used;
        match fed {
            Fed::More => {}
            Fed::Done => return Ok(out),
            Fed::Failed(text) => return Err(text),
        }
    }
    match printer.finish(&log[begin..], &mut out) {
        Fed::Failed(text) => Err(text),
        Fed::More | Fed::Done => Ok(out),
    }
}
