//! One HTTP request over the daemon's unix socket: cheaper than its command line where a test asks often.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use crate::BedError;

/// Sends a request and answers the body of a 2xx response.
pub(crate) fn request(socket: &Path, method: &str, path: &str, body: &str) -> Result<String, BedError> {
    let fail = |detail: String| BedError::Answer { from: format!("bosun ({method} {path})"), detail };
    let exchange = || -> std::io::Result<Vec<u8>> {
        let mut stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        // 1.0: the answer ends with the connection and is not chunked.
        write!(stream, "{method} {path} HTTP/1.0\r\nHost: bosun\r\nContent-Length: {}\r\n\r\n{body}", body.len())?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        Ok(answer)
    };
    let answer = exchange().map_err(|e| fail(e.to_string()))?;
    let text = String::from_utf8_lossy(&answer);
    let (head, body) = text.split_once("\r\n\r\n").ok_or_else(|| fail(format!("no HTTP: {text}")))?;
    let code = head.split_whitespace().nth(1).unwrap_or_default();
    if code.starts_with('2') { Ok(body.to_owned()) } else { Err(fail(format!("{code}: {body}"))) }
}
