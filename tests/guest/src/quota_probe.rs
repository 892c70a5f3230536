//! `quota-probe assign|release|usage DIR`: what the daemon does with an emptyDir where its file system counts projects. `usage` tells
//! what the file system counted, and what a walk finds.

#![forbid(unsafe_code)]

use std::path::Path;

use host_linux::{LinuxQuotas, LinuxStats};
use model::reading::DiskUse;
use ports::host::ProjectQuotas;
use ports::stats::StatsSource;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [what, dir] = args.as_slice() else { return Err("quota-probe assign|release|usage DIR".into()) };
    let (quotas, dir) = (LinuxQuotas::new("/etc"), Path::new(dir));
    let text = |u: Option<DiskUse>| u.map_or("nothing".to_owned(), |u| format!("{} bytes in {}", u.bytes, u.inodes));
    match what.as_str() {
        "assign" => println!("{}", quotas.assign(dir)?),
        "release" => quotas.release(dir)?,
        _ => {
            let walked = LinuxStats::v2_in(Path::new("/")).tree(dir, u64::MAX);
            println!("counted {}, walked {}", text(quotas.usage(dir)), text(walked));
        }
    }
    Ok(())
}
