//! The contract of ImageManager: `contract::image`, and the rules of pod-lifecycle 5.3, 5.4, 6.2 and node-and-resources 4.1.
//!
//! The manager calls the runtime's image service itself: that is the suite's, in this process or on a socket whose address a program
//! finds in `IMAGE_SERVICE_ENDPOINT`. It is expected to have the settings that a node has by default: one pull at a time, five a
//! second after a burst of ten, images that it pulled itself verified, none removed that is younger than two minutes.

mod back_off;
mod bed;
mod credentials;
mod deaths;
mod faults;
mod presence;
mod pulls;
mod room;

use contract::ImageManager;

use crate::case::Case;

/// All cases of the role.
#[must_use]
pub fn cases() -> Vec<Case<ImageManager>> {
    [
        presence::cases(),
        pulls::cases(),
        back_off::cases(),
        credentials::cases(),
        room::cases(),
        deaths::cases(),
        faults::cases(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
