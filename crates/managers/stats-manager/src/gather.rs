//! One gathering.
