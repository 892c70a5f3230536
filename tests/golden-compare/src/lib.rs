//! Nothing here: the tests of this package compare a whole node with what a kubelet 1.36.2 did, see `tests/it`.

#![forbid(unsafe_code)]
