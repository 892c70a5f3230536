//! Waiting for what should happen.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::outcome::{Broken, Outcome};

/// How often is looked.
const LOOK: Duration = Duration::from_millis(2);

/// Waits until it is so.
///
/// # Errors
/// When it is not within that time.
pub(crate) async fn until(what: &str, within: Duration, mut so: impl FnMut() -> bool) -> Outcome {
    let end = Instant::now() + within;
    while !so() {
        if Instant::now() >= end {
            return Err(Broken(format!("within {within:?} it never came so far: {what}")));
        }
        sleep(LOOK).await;
    }
    Ok(())
}
