//! `csi-driver CONFIG.json`: serves until it is killed.

use std::error::Error;

use csi_driver::{Config, Driver};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("usage: csi-driver CONFIG.json")?;
    let config: Config = serde_json::from_slice(&std::fs::read(&path)?)?;
    let driver = Driver::start(config)?;
    driver.dies().await;
    // As when it is killed: its sockets stay.
    std::process::exit(1);
}
