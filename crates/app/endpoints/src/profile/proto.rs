//! The profile format of `go tool pprof` (`profile.proto`), as far as counters need it.

use std::collections::BTreeMap;
use std::io::Write;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use prost::Message;

#[derive(Clone, PartialEq, Message)]
pub(super) struct ValueType {
    #[prost(int64, tag = "1")]
    pub(super) kind: i64,
    #[prost(int64, tag = "2")]
    pub(super) unit: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Sample {
    /// Leaf first.
    #[prost(uint64, repeated, tag = "1")]
    pub(super) location_id: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    pub(super) value: Vec<i64>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Line {
    #[prost(uint64, tag = "1")]
    pub(super) function_id: u64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Location {
    #[prost(uint64, tag = "1")]
    pub(super) id: u64,
    #[prost(message, repeated, tag = "4")]
    pub(super) line: Vec<Line>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Function {
    #[prost(uint64, tag = "1")]
    pub(super) id: u64,
    #[prost(int64, tag = "2")]
    pub(super) name: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Profile {
    #[prost(message, repeated, tag = "1")]
    pub(super) sample_type: Vec<ValueType>,
    #[prost(message, repeated, tag = "2")]
    pub(super) sample: Vec<Sample>,
    #[prost(message, repeated, tag = "4")]
    pub(super) location: Vec<Location>,
    #[prost(message, repeated, tag = "5")]
    pub(super) function: Vec<Function>,
    #[prost(string, repeated, tag = "6")]
    pub(super) string_table: Vec<String>,
    #[prost(int64, tag = "9")]
    pub(super) time_nanos: i64,
    #[prost(int64, tag = "10")]
    pub(super) duration_nanos: i64,
    #[prost(int64, tag = "14")]
    pub(super) default_sample_type: i64,
}

/// Puts a profile together.
pub(super) struct Builder {
    profile: Profile,
    names: BTreeMap<String, u64>,
}

fn signed(n: impl TryInto<i64>) -> i64 {
    n.try_into().unwrap_or(i64::MAX)
}

impl Builder {
    /// A profile without samples. `types`: what is counted, and its unit.
    pub(super) fn new(types: &[(&str, &str)]) -> Self {
        // The first text is always the empty one.
        let profile = Profile { string_table: vec![String::new()], ..Profile::default() };
        let mut builder = Self { profile, names: BTreeMap::new() };
        for (kind, unit) in types {
            let sample_type = ValueType { kind: builder.text(kind), unit: builder.text(unit) };
            builder.profile.sample_type.push(sample_type);
        }
        // What a viewer shows first; without it the last.
        builder.profile.default_sample_type = builder.profile.sample_type.first().map_or(0, |first| first.kind);
        builder
    }

    /// When it was taken, and for how long.
    pub(super) fn span(&mut self, started: jiff::Timestamp, length: Duration) {
        self.profile.time_nanos = signed(started.as_nanosecond());
        self.profile.duration_nanos = signed(length.as_nanos());
    }

    fn text(&mut self, text: &str) -> i64 {
        self.profile.string_table.push(text.to_owned());
        signed(self.profile.string_table.len() - 1)
    }

    /// One location and one function per name, with the same number.
    fn location(&mut self, name: &str) -> u64 {
        if let Some(id) = self.names.get(name) {
            return *id;
        }
        let id = u64::try_from(self.names.len()).unwrap_or(u64::MAX - 1) + 1;
        let name_index = self.text(name);
        self.profile.function.push(Function { id, name: name_index });
        self.profile.location.push(Location { id, line: vec![Line { function_id: id }] });
        self.names.insert(name.to_owned(), id);
        id
    }

    /// Adds a sample; `frames` innermost first, one value per type.
    pub(super) fn sample(&mut self, frames: &[&str], values: &[u64]) {
        let location_id = frames.iter().map(|name| self.location(name)).collect();
        self.profile.sample.push(Sample { location_id, value: values.iter().map(|v| signed(*v)).collect() });
    }

    pub(super) fn gzipped(&self) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        // Writing into a Vec cannot fail.
        let _ = encoder.write_all(&self.profile.encode_to_vec());
        encoder.finish().unwrap_or_default()
    }
}
