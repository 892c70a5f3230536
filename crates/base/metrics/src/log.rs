//! Our own: the daemon's log.

use crate::family::counter;

families! { MAIN;
    /// Lines that were not written.
    LINES_LOST: IntCounter = counter(
        "bosun_log_lines_lost_total", "Lines of the daemon's own log that were lost because nobody read them in time.");
}
