//! Who may ask what of a node's HTTPS server (interfaces 3.2, 3.4).
//!
//! Owns: reading of request paths, the table from path and method to authorization attributes, users out of certificates and
//! reviews, bodies of reviews, texts of refusals, rules of the caches, labels of request metrics.
//! Never talks to anybody, reads a clock or draws a random number: all of that comes in.

#![forbid(unsafe_code)]

mod attributes;
mod cache;
mod credential;
mod identity;
mod label;
mod pace;
mod path;
mod review;
mod text;

pub use attributes::{Attributes, Rules, subresources, verb};
pub use cache::{CACHED_BYTES, Key, Lru, Ttl};
pub use credential::{BadCredential, Protocols, bearer, websocket};
pub use identity::{BadSubject, User};
pub use label::{Labels, labels};
pub use pace::{TokenBucket, TokenBuckets, pause};
pub use path::{Canonical, Refused, canonical};
pub use review::{BadReview, access_review, decide_access, decide_token, token_review};
pub use text::{DISABLED, UNAUTHORIZED, authorization_error, forbidden};
