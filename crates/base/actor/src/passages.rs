//! Which fault points an actor has passed, and how often.

use crate::control::locked;
use crate::type_name::short;
use std::fmt;
use std::sync::Mutex;

/// A place that a rule may name. Copied per message, so its text is made only for those who read it.
#[derive(Clone, Copy)]
pub(crate) enum Point {
    /// A turn by a message of that type (its full name): `turn:Message`.
    Turn(&'static str),
    /// One that the actor declares.
    Named(&'static str),
}

impl Point {
    /// Equal names in different places of the program count apart, and are added where they are listed.
    fn is(self, other: Point) -> bool {
        match (self, other) {
            (Point::Turn(a), Point::Turn(b)) | (Point::Named(a), Point::Named(b)) => std::ptr::eq(a, b),
            _ => false,
        }
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Point::Turn(message) => write!(f, "turn:{}", short(message)),
            Point::Named(name) => f.write_str(name),
        }
    }
}

/// Of one actor; an actor has some ten points.
#[derive(Default)]
pub(crate) struct Passages(Mutex<Vec<(Point, u64)>>);

impl fmt::Debug for Passages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.all()).finish()
    }
}

impl Passages {
    pub(crate) fn note(&self, point: Point) {
        let mut passed = locked(&self.0);
        match passed.iter_mut().find(|(known, _)| known.is(point)) {
            Some((_, count)) => *count += 1,
            None => passed.push((point, 1)),
        }
    }

    pub(crate) fn all(&self) -> Vec<(String, u64)> {
        locked(&self.0).iter().map(|(point, count)| (point.to_string(), *count)).collect()
    }
}
