//! HTTP over the daemon's unix socket: cheaper than its command line where a test asks often.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use crate::BedError;

/// An answer whose head is read.
pub(crate) struct Opened {
    /// HTTP status code.
    code: u16,
    /// What follows the head.
    pub(crate) body: BufReader<UnixStream>,
}

/// Sends a request and reads the head of a 2xx response; the body comes as the daemon writes it.
pub(crate) fn open(socket: &Path, method: &str, path: &str, body: &str) -> Result<Opened, BedError> {
    let fail = |detail: String| BedError::Answer { from: format!("bosun ({method} {path})"), detail };
    let mut opened = exchange(socket, method, path, body).map_err(|e| fail(e.to_string()))?;
    if (200..300).contains(&opened.code) {
        return Ok(opened);
    }
    let mut text = String::new();
    opened.body.read_to_string(&mut text).map_err(|e| fail(e.to_string()))?;
    Err(fail(format!("{}: {text}", opened.code)))
}

/// As [`open`]; answers the whole body.
pub(crate) fn request(socket: &Path, method: &str, path: &str, body: &str) -> Result<String, BedError> {
    let mut text = String::new();
    let read = open(socket, method, path, body)?.body.read_to_string(&mut text);
    read.map_err(|e| BedError::Answer { from: format!("bosun ({method} {path})"), detail: e.to_string() })?;
    Ok(text)
}

fn exchange(socket: &Path, method: &str, path: &str, body: &str) -> std::io::Result<Opened> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    // 1.0: the answer ends with the connection and is not chunked.
    write!(stream, "{method} {path} HTTP/1.0\r\nHost: bosun\r\nContent-Length: {}\r\n\r\n{body}", body.len())?;
    let mut body = BufReader::new(stream);
    let mut line = String::new();
    body.read_line(&mut line)?;
    let invalid = || std::io::Error::new(std::io::ErrorKind::InvalidData, format!("no HTTP: {line}"));
    let code = line.split_whitespace().nth(1).and_then(|c| c.parse().ok()).ok_or_else(invalid)?;
    while !line.trim().is_empty() {
        line.clear();
        body.read_line(&mut line)?;
    }
    Ok(Opened { code, body })
}
