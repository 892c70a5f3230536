//! How far the kernel's log was told: one line of the journal, good for one boot.

use ports::journal::{Journal, JournalError};

const KEY: &str = "oom/told";

/// The number of the last line that was told of in this boot. Blocks.
pub(crate) fn load(journal: &dyn Journal, boot_id: &str) -> Result<Option<u64>, JournalError> {
    let line = journal.load(KEY)?;
    Ok(line.and_then(|line| decode(&line, boot_id)))
}

/// Told up to this line. What is lost with a crash of the daemon is told again.
pub(crate) fn save(journal: &dyn Journal, boot_id: &str, number: u64) {
    journal.put_soon(KEY, Some(format!("{boot_id} {number}").into_bytes()));
}

fn decode(line: &[u8], boot_id: &str) -> Option<u64> {
    let (of, number) = std::str::from_utf8(line).ok()?.split_once(' ')?;
    // Without an id every boot would look like this one.
    (of == boot_id && !boot_id.is_empty()).then(|| number.parse().ok()).flatten()
}
