//! Writes the transcripts of some seeds to stdout: `transcript FIRST COUNT`.

use std::io::Write as _;

fn main() -> std::io::Result<()> {
    sim::log_to_stderr();
    let mut numbers = std::env::args().skip(1).filter_map(|a| a.parse::<u64>().ok());
    let (first, count) = (numbers.next().unwrap_or(1), numbers.next().unwrap_or(1));
    let mut out = std::io::stdout().lock();
    for seed in first..first + count {
        writeln!(out, "seed {seed}")?;
        out.write_all(sim::busy_minutes(seed).as_bytes())?;
    }
    Ok(())
}
