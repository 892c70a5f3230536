//! Asks for `/healthz` all the time: `healthz ADDRESS FILE`. The file has the longest time between two good answers in
//! milliseconds, and how many there were.

#![forbid(unsafe_code)]

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::FileExt as _;
use std::time::{Duration, Instant};

/// Between two questions.
const PAUSE: Duration = Duration::from_millis(50);
const PATIENCE: Duration = Duration::from_secs(120);

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [address, path] = args.as_slice() else { panic!("healthz ADDRESS FILE") };
    let address = address.parse().expect("an address");
    let file = std::fs::File::create(path).expect("a file");
    let (mut last, mut longest, mut good) = (None::<Instant>, Duration::ZERO, 0_u64);
    loop {
        if answers(&address) {
            let now = Instant::now();
            longest = longest.max(last.map_or(Duration::ZERO, |last| now - last));
            (last, good) = (Some(now), good + 1);
            let line = format!("{:>9} {good:>9}\n", longest.as_millis());
            file.write_all_at(line.as_bytes(), 0).expect("written");
        }
        testbed::let_pass(PAUSE);
    }
}

/// One that does not is asked again: the gap grows.
fn answers(address: &SocketAddr) -> bool {
    let ask = || {
        let mut stream = TcpStream::connect_timeout(address, PATIENCE)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: node\r\nConnection: close\r\n\r\n")?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        std::io::Result::Ok(text)
    };
    ask().is_ok_and(|text| text.starts_with("HTTP/1.1 200"))
}
