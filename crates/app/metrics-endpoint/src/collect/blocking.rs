//! Blocking work of actors, by what it waits for.

use actor::Kernel;
use metrics::Kind::{Counter, Gauge};

use super::actors::{number, seconds};
use crate::families::{Families, Row};

pub(crate) const TABLE: &[Row] = &[
    ("bosun_blocking_calls", Gauge, "Blocking calls that are not back, by what they are at.", &["class", "state"]),
    ("bosun_blocking_calls_overdue", Gauge, "Blocking calls that have not come back for a minute.", &["class"]),
    ("bosun_blocking_calls_total", Counter, "Blocking calls that came back.", &["class"]),
    ("bosun_blocking_seconds_total", Counter, "Time that those took on their threads.", &["class"]),
    ("bosun_blocking_oldest_seconds", Gauge, "Age of the oldest blocking call that is not back.", &["class"]),
    ("bosun_blocking_threads", Gauge, "Threads that blocking calls have now.", &["class"]),
];

pub(crate) fn fill(families: &mut Families, kernel: &Kernel) {
    for c in kernel.blocking_classes() {
        let class: &[&str] = &[c.class.name()];
        families.put("bosun_blocking_calls", &[c.class.name(), "running"], number(c.running as u64));
        families.put("bosun_blocking_calls", &[c.class.name(), "waiting"], number(c.waiting as u64));
        families.put("bosun_blocking_calls_overdue", class, number(c.overdue as u64));
        families.put("bosun_blocking_calls_total", class, number(c.finished));
        families.put("bosun_blocking_seconds_total", class, seconds(c.busy_ns));
        families.put("bosun_blocking_oldest_seconds", class, c.oldest.as_secs_f64());
        families.put("bosun_blocking_threads", class, number(c.threads as u64));
    }
}
