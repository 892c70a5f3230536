//! The log of calls.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use prost::Message;
use prost_reflect::{DescriptorPool, DynamicMessage, SerializeOptions};
use serde_json::{Value, json};
use tonic::Status;

const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));

/// One line of JSON per call, in the order of the answers.
#[derive(Debug)]
pub(crate) struct Journal {
    file: Mutex<File>,
    pool: DescriptorPool,
}

impl Journal {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let file = File::options().create(true).append(true).open(path)?;
        let pool = DescriptorPool::decode(DESCRIPTORS).map_err(io::Error::other)?;
        Ok(Self { file: Mutex::new(file), pool })
    }

    /// All fields of a message by their names, such as have no value among them.
    pub(crate) fn fields(&self, message: &str, bytes: &[u8]) -> Result<Value, Status> {
        let descriptor = self.pool.get_message_by_name(message);
        let descriptor = descriptor.ok_or_else(|| Status::internal(format!("no message {message}")))?;
        let read = DynamicMessage::decode(descriptor, bytes).map_err(|e| Status::internal(e.to_string()))?;
        let options = SerializeOptions::new().use_proto_field_name(true).skip_default_fields(false);
        read.serialize_with_options(serde_json::value::Serializer, &options)
            .map_err(|e| Status::internal(e.to_string()))
    }

    /// Notes a call, how it ended, and how long it took.
    pub(crate) fn note(&self, call: &str, request: Value, took: Duration, outcome: Result<(), &Status>) {
        let (code, message) = match outcome {
            Ok(()) => ("Ok".to_owned(), String::new()),
            Err(status) => (format!("{:?}", status.code()), status.message().to_owned()),
        };
        let line = json!({
            "call": call, "request": request, "code": code, "message": message, "ms": took.as_secs_f64() * 1e3,
        });
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(e) = file.write_all(format!("{line}\n").as_bytes()) {
            eprintln!("the log of calls cannot be written: {e}");
        }
    }
}

/// Bytes of a message, for [`Journal::fields`].
pub(crate) fn bytes(message: &impl Message) -> Vec<u8> {
    message.encode_to_vec()
}
