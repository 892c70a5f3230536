//! Messages of the CRI as protobuf JSON with the field names of the proto file, as recordings have them.

use prost_reflect::{DescriptorPool, DynamicMessage, SerializeOptions};
use serde_json::Value;

/// Descriptors of the CRI.
pub fn pool() -> DescriptorPool {
    DescriptorPool::decode(cri_api::FILE_DESCRIPTOR_SET).expect("descriptors of the CRI")
}

/// One message.
pub fn json(message: &str, bytes: &[u8]) -> Value {
    let descriptor = pool().get_message_by_name(message).expect("a message of the CRI");
    let dynamic = DynamicMessage::decode(descriptor, bytes).expect("bytes of that message");
    let options = SerializeOptions::new().use_proto_field_name(true);
    dynamic.serialize_with_options(serde_json::value::Serializer, &options).expect("JSON")
}
