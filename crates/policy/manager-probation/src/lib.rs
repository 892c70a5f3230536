//! Does a manager that has just taken the place of another one keep it? Decided from how asks fared before and since, what was
//! refused of it, and what became of the rows that it found. And what two managers say differently about the same thing.
//!
//! [`judge`] is called again and again while the probation lasts. What one manager does worse by chance (a pull that fails, a pod
//! that ends) keeps its place: the rules compare with the one before, and count more than one of most things.

#![forbid(unsafe_code)]

mod differences;
mod judge;

pub use differences::{Difference, differences};
pub use judge::{Asked, Reason, Seen, Verdict, judge, next_rest, summary};
