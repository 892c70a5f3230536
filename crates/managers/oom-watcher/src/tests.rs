//! The actor beside a kernel's log that the test writes, and what the lines of real kernels mean.

mod life;
mod lines;
