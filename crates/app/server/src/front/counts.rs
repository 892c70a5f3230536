//! What happened to callers, in numbers.

use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counts {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// Counters of one server.
        #[derive(Debug, Default)]
        pub struct Counts { $($(#[$doc])* pub(super) $name: AtomicU64,)* }

        /// A reading of [`Counts`].
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Counted { $($(#[$doc])* pub $name: u64,)* }

        impl Counts {
            /// All of them now.
            #[must_use]
            pub fn read(&self) -> Counted {
                Counted { $($name: self.$name.load(Ordering::Relaxed),)* }
            }
        }
    };
}

counts! {
    /// Connections taken.
    accepted,
    /// Connections that were sent away because all places were taken by others with a better claim.
    refused,
    /// Connections that had to make room for others.
    evicted,
    /// TLS handshakes that failed.
    failed_handshakes,
    /// Connections ended because they were too slow (handshake, head) or idle for too long.
    expired,
    /// Requests.
    requests,
    /// Requests answered with 401.
    unauthenticated,
    /// Requests answered with 403.
    forbidden,
    /// Requests refused for their path (400).
    bad_paths,
    /// Requests answered with 429: too many reviews under way.
    busy,
    /// Requests answered with 500: the authorizer failed.
    authorizer_failures,
    /// Panics of handlers.
    panics,
}

pub(super) fn add(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
