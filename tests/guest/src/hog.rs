//! Takes memory: `hog MIB_PER_SECOND`, until it is ended.

#![forbid(unsafe_code)]

use std::time::{Duration, Instant};

const MIB: usize = 1 << 20;
const PAGE: usize = 4096;

fn main() {
    let rate: f64 = std::env::args().nth(1).and_then(|n| n.parse().ok()).expect("MiB per second");
    let (begin, mut held) = (Instant::now(), Vec::new());
    loop {
        let due = begin.elapsed().as_secs_f64() * rate;
        while (held.len() as f64) < due {
            let mut piece = vec![0_u8; MIB];
            piece.iter_mut().step_by(PAGE).for_each(|byte| *byte = 1);
            held.push(piece);
        }
        testbed::let_pass(Duration::from_millis(5));
    }
}
