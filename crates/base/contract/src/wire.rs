//! How types that serde does not know cross a process border.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serializer};

/// CRI messages: protobuf, as base64 text. For `#[serde(with = "crate::wire")]`.
pub(crate) fn serialize<M: prost::Message, S: Serializer>(message: &Arc<M>, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&STANDARD.encode(message.encode_to_vec()))
}

pub(crate) fn deserialize<'de, M, D>(from: D) -> Result<Arc<M>, D::Error>
where
    M: prost::Message + Default,
    D: Deserializer<'de>,
{
    let text = String::deserialize(from)?;
    let bytes = STANDARD.decode(text).map_err(D::Error::custom)?;
    M::decode(bytes.as_slice()).map(Arc::new).map_err(D::Error::custom)
}
