//! Our descriptors against the facts of the protocol (interfaces 7.8), one line of `wire.txt` per fact.

use std::collections::BTreeSet;

use cri_api::v1;
use prost::Message as _;
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorSet};

fn field_type(message: &DescriptorProto, field: &FieldDescriptorProto) -> String {
    let name = field.type_name().rsplit('.').next().unwrap_or_default();
    if message.nested_type.iter().any(|n| n.name() == name) {
        return "map<s,s>".to_owned();
    }
    let base = match field.r#type() {
        Type::String => "s",
        Type::Bool => "b",
        Type::Int32 => "i32",
        Type::Int64 => "i64",
        Type::Uint32 => "u32",
        Type::Uint64 => "u64",
        Type::Double => "f64",
        Type::Bytes => "bytes",
        Type::Message | Type::Enum => name,
        other => panic!("CRI has no field of type {other:?}"),
    };
    if field.label() == Label::Repeated { format!("{base}*") } else { base.to_owned() }
}

fn enum_facts(prefix: &str, e: &EnumDescriptorProto, out: &mut BTreeSet<String>) {
    for v in &e.value {
        out.insert(format!("enum {prefix}{} {} {}", e.name(), v.number(), v.name()));
    }
}

fn ours() -> BTreeSet<String> {
    let set = FileDescriptorSet::decode(cri_api::FILE_DESCRIPTOR_SET).expect("written by our build script");
    let mut out = BTreeSet::new();
    for file in &set.file {
        assert_eq!(file.package(), "runtime.v1");
        for e in &file.enum_type {
            enum_facts("", e, &mut out);
        }
        for m in &file.message_type {
            out.insert(format!("message {}", m.name()));
            for f in &m.field {
                out.insert(format!("field {} {} {} {}", m.name(), f.number(), f.name(), field_type(m, f)));
            }
            for e in &m.enum_type {
                enum_facts(&format!("{}.", m.name()), e, &mut out);
            }
        }
        for s in &file.service {
            for m in &s.method {
                let stream = if m.server_streaming() { "stream " } else { "" };
                let last = |t: &str| t.rsplit('.').next().unwrap_or_default().to_owned();
                let (input, output) = (last(m.input_type()), last(m.output_type()));
                out.insert(format!("rpc {} {} {input} {stream}{output}", s.name(), m.name()));
            }
        }
    }
    out
}

#[test]
fn every_message_field_enum_and_rpc_is_the_one_of_the_protocol() {
    let facts: BTreeSet<String> = include_str!("wire.txt").lines().map(str::to_owned).collect();
    let ours = ours();
    let missing: Vec<_> = facts.difference(&ours).collect();
    let extra: Vec<_> = ours.difference(&facts).collect();
    assert!(missing.is_empty() && extra.is_empty(), "missing {missing:#?}, extra {extra:#?}");
}

#[test]
fn environment_values_may_hold_any_bytes() {
    let kv = v1::KeyValue { key: "A".to_owned(), value: vec![0xff, 0x00] };
    assert_eq!(kv.encode_to_vec(), b"\x0a\x01A\x12\x02\xff\x00");
}

#[test]
fn maps_are_written_in_key_order() {
    let mut config = v1::PodSandboxConfig::default();
    for k in ["b", "a", "c"] {
        config.labels.insert(k.to_owned(), String::new());
    }
    assert_eq!(config.encode_to_vec(), b"\x32\x03\x0a\x01a\x32\x03\x0a\x01b\x32\x03\x0a\x01c");
}

#[test]
fn unknown_fields_of_a_newer_runtime_are_skipped() {
    // Field 99, varint 1, then id "x".
    let status = v1::ContainerStatus::decode(&b"\x98\x06\x01\x0a\x01x"[..]).unwrap();
    assert_eq!(status.id, "x");
}

#[test]
fn an_unknown_enum_value_does_not_fail_the_message() {
    let status = v1::ContainerStatus::decode(&b"\x18\x63"[..]).unwrap();
    assert_eq!(status.state, 99);
    assert!(v1::ContainerState::try_from(status.state).is_err());
}
