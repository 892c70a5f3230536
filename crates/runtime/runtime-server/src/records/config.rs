//! The configuration of a container in its record. Values of its environment are bytes, of which JSON would make a list of numbers
//! each: they are written beside it, as text where they are.

use std::borrow::Cow;

use cri_api::v1;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A value of the environment.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum Value<'a> {
    Text(Cow<'a, str>),
    Bytes(Cow<'a, [u8]>),
}

#[derive(Serialize)]
struct Writing<'a> {
    /// Values of `config.envs`, in their order.
    values: Vec<Value<'a>>,
    config: v1::ContainerConfig,
}

#[derive(Deserialize)]
struct Read {
    values: Vec<Value<'static>>,
    config: v1::ContainerConfig,
}

pub(super) fn serialize<S: Serializer>(config: &v1::ContainerConfig, to: S) -> Result<S::Ok, S::Error> {
    let value = |bytes| match std::str::from_utf8(bytes) {
        Ok(text) => Value::Text(text.into()),
        Err(_) => Value::Bytes(bytes.into()),
    };
    let values = config.envs.iter().map(|e| value(e.value.as_slice())).collect();
    let mut config = config.clone();
    config.envs.iter_mut().for_each(|e| e.value.clear());
    Writing { values, config }.serialize(to)
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<v1::ContainerConfig, D::Error> {
    let Read { values, mut config } = Read::deserialize(from)?;
    if values.len() != config.envs.len() {
        return Err(serde::de::Error::custom("not as many values as names in the environment"));
    }
    for (variable, value) in config.envs.iter_mut().zip(values) {
        variable.value = match value {
            Value::Text(text) => text.into_owned().into_bytes(),
            Value::Bytes(bytes) => bytes.into_owned(),
        };
    }
    Ok(config)
}
