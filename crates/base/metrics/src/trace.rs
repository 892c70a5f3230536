//! Our own: spans on their way to a collector.

use crate::family::{counter, counters};

/// More came than could be sent.
pub const LOST_FULL: &str = "queue_full";
/// The collector was away, did not answer or took too long.
pub const LOST_UNSENT: &str = "not_sent";
/// The collector refused them.
pub const LOST_REFUSED: &str = "refused";

families! { MAIN;
    /// Spans that a collector took.
    SPANS_SENT: IntCounter = counter("bosun_trace_spans_sent_total", "Spans that the collector took.");
    /// Spans that were lost. Label: why.
    SPANS_LOST: IntCounterVec = counters(
        "bosun_trace_spans_lost_total", "Spans that did not come to the collector, by reason.", &["reason"]);
}
