//! What tests read off a pod as the API has it, and off a server in one.

use std::io::{self, Read, Write};
use std::net::TcpStream;

use serde_json::Value;

/// `state` of the first container, by kind: `waiting`, `running`, `terminated`.
#[must_use]
pub fn state<'a>(pod: &'a Value, kind: &str) -> &'a Value {
    &pod["status"]["containerStatuses"][0]["state"][kind]
}

/// Container ids and restart counts of all containers of a pod.
#[must_use]
pub fn identity(pod: &Value) -> Vec<(String, u64)> {
    let all = pod["status"]["containerStatuses"].as_array().into_iter().flatten();
    all.map(|c| (c["containerID"].as_str().unwrap_or_default().to_owned(), c["restartCount"].as_u64().unwrap_or(99)))
        .collect()
}

/// What a server of plain HTTP 1.0 answers at this `address:port`, head and body.
///
/// # Errors
/// Those of the connection.
pub fn http_get(address: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.write_all(b"GET / HTTP/1.0\r\n\r\n")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    Ok(text)
}
