//! Nothing here: the tests of this package run a whole node on a virtual clock, see `tests/it`.

#![forbid(unsafe_code)]
