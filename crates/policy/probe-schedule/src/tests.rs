mod schedule;
mod target;
mod worker;
