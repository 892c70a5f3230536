//! LogManager: sizes and ages of container logs. Asks nobody, is asked by nobody.

use crate::runtime::Observed;

role! {
    /// Rotation of container logs.
    LogManager in log_manager, actor "log-manager";
    answers {}
    posts {}
    asks {}
    reads { Observed }
}
