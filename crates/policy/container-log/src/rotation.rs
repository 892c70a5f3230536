//! When a log is rotated, and what becomes of its older files (interfaces 4.5).

use std::collections::BTreeSet;

use jiff::tz::TimeZone;
use model::Timestamp;

/// Ending of a file that is being compressed.
pub const TMP: &str = ".tmp";
/// Ending of a compressed file.
pub const GZ: &str = ".gz";

/// What a log needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Need {
    /// Nothing.
    Nothing,
    /// The runtime must make the file that is missing: somebody took it away, or a rotation ended half-way.
    Reopen,
    /// Rotation.
    Rotate,
}

/// What a log of `size` bytes (`None`: missing) needs at this limit.
#[must_use]
pub fn need(size: Option<u64>, max_size: u64) -> Need {
    match size {
        None => Need::Reopen,
        Some(size) if size >= max_size => Need::Rotate,
        Some(_) => Need::Nothing,
    }
}

/// What happens to the rotated files before the current one is renamed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Plan {
    /// To delete, in this order.
    pub remove: Vec<String>,
    /// To compress to their name with [`GZ`], oldest first.
    pub compress: Vec<String>,
}

/// Plans for the log called `log` in a folder with this content. `max_files` counts the current file, the one that it is
/// renamed to, and the compressed ones. Names that do not begin with `<log>.` are nobody's business.
#[must_use]
pub fn plan(log: &str, listing: &BTreeSet<String>, max_files: u32) -> Plan {
    let prefix = format!("{log}.");
    let of_log = listing.iter().filter(|name| name.len() > prefix.len() && name.starts_with(&prefix));
    // Leftovers of a compression that did not end, or whose last step (deleting the original) did not happen.
    let leftover =
        |name: &&String| name.ends_with(TMP) || (!name.ends_with(GZ) && listing.contains(&format!("{name}{GZ}")));
    let (mut remove, rotated): (Vec<&String>, Vec<&String>) = of_log.partition(leftover);
    // Names are times: their order is age.
    let kept = usize::try_from(max_files.saturating_sub(2)).unwrap_or(usize::MAX);
    let (old, kept) = rotated.split_at(rotated.len().saturating_sub(kept));
    remove.extend(old);
    Plan {
        remove: remove.into_iter().cloned().collect(),
        compress: kept.iter().filter(|name| !name.ends_with(GZ)).map(|name| (*name).clone()).collect(),
    }
}

/// `<log>.<YYYYMMDD-HHMMSS>` in the node's time zone.
#[must_use]
pub fn rotated_name(log: &str, now: Timestamp, zone: &TimeZone) -> String {
    let t = jiff::Timestamp::from_nanosecond(i128::from(now.0)).unwrap_or_default().to_zoned(zone.clone()).datetime();
    let (year, month, day) = (t.year(), t.month(), t.day());
    format!("{log}.{year:04}{month:02}{day:02}-{:02}{:02}{:02}", t.hour(), t.minute(), t.second())
}
