//! Random content of whatever shape a type asks serde for, from a seed: no generator per type.

use std::collections::BTreeMap;

use serde::Deserializer;
use serde::de::value::StrDeserializer;
use serde::de::{
    DeserializeSeed, EnumAccess, Expected, IntoDeserializer, MapAccess, SeqAccess, VariantAccess, Visitor,
};
use serde_json::{Error, json};

mod newer;

pub(super) use newer::Newer;

const WORDS: &[&str] =
    &["", "a", "web-0", "kube-system", "\u{fc}\"\\\n\u{1f980}", "0", "null", "true", "/var/lib/x", "1e3"];
const QUANTITIES: &[&str] = &["0", "100m", "1.5Gi", "2k"];
const TIMES: &[&str] = &["2026-01-02T03:04:05Z", "1999-12-31T23:59:59Z"];
const NANO_TIMES: &[&str] = &["2026-01-02T03:04:05Z", "2026-01-02T03:04:05.067008009Z"];
const MICRO_TIMES: &[&str] = &["2026-01-02T03:04:05.000006Z"];
/// Each is also a protobuf message of any type with a message as field 1 and text as field 2, so of all CRI configurations.
const BASE64: &[&str] = &["", "CgASAA=="];
/// A protobuf message with a number as field 1: resources of a container.
const RESOURCES: &[&str] = &["", "CAE="];
/// Below this depth everything optional is absent.
const DEPTH: u32 = 14;

pub(super) struct Random {
    state: u64,
    depth: u32,
    /// Values that may still be made before everything optional is absent.
    left: u32,
    /// One of so many optional values is there.
    rare: u64,
    /// The field that is made now holds protobuf: one of these.
    protobuf: Option<&'static [&'static str]>,
    /// Enums met so far, by name.
    pub(super) enums: Vec<&'static str>,
    /// The enum of this number gets a variant that no version knows.
    newer: Option<(usize, Newer)>,
    /// Structs have these fields only; `None`: all that they have.
    fields: Option<&'static Structs>,
    /// Structs met so far, with their fields.
    pub(super) structs: BTreeMap<&'static str, &'static [&'static str]>,
}

/// Names of structs, each with fields. One that is not among them has none.
pub(super) type Structs = BTreeMap<&'static str, Vec<&'static str>>;

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        let mut random = Random {
            state: seed,
            depth: 0,
            left: 1500,
            rare: 1,
            protobuf: None,
            enums: Vec::new(),
            newer: None,
            fields: None,
            structs: BTreeMap::new(),
        };
        random.rare = [1, 2, 3, 6, 12][random.index(5)];
        random
    }

    /// As [`Self::new`]; the enum that is met as number `at` has a variant that is not known here.
    pub(super) fn newer(seed: u64, at: usize, newer: Newer) -> Self {
        Random { newer: Some((at, newer)), ..Self::new(seed) }
    }

    /// As [`Self::new`], from a peer whose structs have only these fields.
    pub(super) fn older(seed: u64, fields: &'static Structs) -> Self {
        Random { fields: Some(fields), ..Self::new(seed) }
    }

    /// SplitMix64.
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn index(&mut self, len: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(len).unwrap()).unwrap()
    }

    fn one_of(&mut self, words: &[&'static str]) -> &'static str {
        words[self.index(words.len())]
    }

    /// Small ones, and such as do not fit into 32 bits.
    fn number(&mut self) -> u64 {
        let bits = [1, 7, 31, 40][self.index(4)];
        self.next() & ((1 << bits) - 1)
    }

    fn is_there(&mut self) -> bool {
        self.left = self.left.saturating_sub(1);
        self.left > 0 && self.depth < DEPTH && self.next().is_multiple_of(self.rare)
    }

    fn deeper<T>(&mut self, make: impl FnOnce(&mut Self) -> T) -> T {
        self.depth += 1;
        let made = make(self);
        self.depth -= 1;
        made
    }

    fn items(&mut self) -> usize {
        if self.is_there() { self.index(3) } else { 0 }
    }
}

fn wanted<'de, V: Visitor<'de>>(visitor: &V) -> String {
    (visitor as &dyn Expected).to_string()
}

fn text(word: &'static str) -> StrDeserializer<'static, Error> {
    word.into_deserializer()
}

macro_rules! numbers {
    ($($method:ident $visit:ident $t:ty),* $(,)?) => {
        $(#[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap, reason = "any number will do")]
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            visitor.$visit(self.number() as $t)
        })*
    };
}

impl<'de> Deserializer<'de> for &mut Random {
    type Error = Error;

    numbers! {
        deserialize_i8 visit_i8 i8, deserialize_i16 visit_i16 i16, deserialize_i32 visit_i32 i32,
        deserialize_i64 visit_i64 i64, deserialize_u8 visit_u8 u8, deserialize_u16 visit_u16 u16,
        deserialize_u32 visit_u32 u32, deserialize_u64 visit_u64 u64,
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let eighths = u32::try_from(self.number() & 0xffff).unwrap();
        visitor.visit_f64(f64::from(eighths) / 8.0)
    }

    /// What takes anything is a number or a text (`IntOrString`, JSON).
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.next().is_multiple_of(2) {
            visitor.visit_i64(i64::try_from(self.number() & 0xffff).unwrap())
        } else {
            visitor.visit_str(self.one_of(WORDS))
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_bool(self.next().is_multiple_of(2))
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let wanted = wanted(&visitor);
        let words = match wanted.as_str() {
            _ if self.protobuf.is_some() => self.protobuf.unwrap_or_default(),
            _ if wanted.contains("base64") => BASE64,
            "a timestamp string" => NANO_TIMES,
            "IP address" => &["10.1.2.3", "fd00::1"],
            _ => WORDS,
        };
        visitor.visit_str(self.one_of(words))
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_str(visitor)
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_str(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.is_there() { self.deeper(|random| visitor.visit_some(random)) } else { visitor.visit_none() }
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_unit()
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_unit()
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, name: &'static str, visitor: V) -> Result<V::Value, Error> {
        let words = match name {
            "Time" => TIMES,
            "MicroTime" => MICRO_TIMES,
            "Quantity" => QUANTITIES,
            _ => return visitor.visit_newtype_struct(self),
        };
        visitor.visit_newtype_struct(text(self.one_of(words)))
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let left = self.items();
        self.deeper(|random| visitor.visit_seq(Items { random, left }))
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, left: usize, visitor: V) -> Result<V::Value, Error> {
        self.deeper(|random| visitor.visit_seq(Items { random, left }))
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        left: usize,
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserialize_tuple(left, visitor)
    }

    /// A struct with a flattened part asks for a map and does not say its fields: those are written here.
    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let (time, number) = (self.one_of(TIMES), self.number());
        match wanted(&visitor).as_str() {
            "struct NetworkStats" => json!({"time": time, "name": "eth0", "rxBytes": number}).deserialize_map(visitor),
            "struct VolumeStats" => json!({"time": time, "name": "data", "usedBytes": number}).deserialize_map(visitor),
            _ => {
                let left = self.items();
                self.deeper(|random| visitor.visit_map(Items { random, left }))
            }
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.structs.insert(name, fields);
        let sent = |field: &&&str| {
            let known = self.fields.filter(|_| !name.is_empty());
            known.is_none_or(|known| known.get(name).is_some_and(|fields| fields.contains(*field)))
        };
        let left: Vec<_> = fields.iter().filter(sent).copied().collect();
        self.deeper(|random| visitor.visit_map(Fields { random, left: &left, now: "" }))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.enums.push(name);
        if let Some((at, newer)) = self.newer
            && at == self.enums.len() - 1
        {
            return visitor.visit_enum(newer);
        }
        self.deeper(|random| {
            let name = random.one_of(variants);
            visitor.visit_enum(Variant { random, name })
        })
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_unit()
    }

    serde::forward_to_deserialize_any! { f32 char bytes byte_buf }
}

/// Members of a sequence, or keys and values of a map.
struct Items<'r> {
    random: &'r mut Random,
    left: usize,
}

impl<'de> SeqAccess<'de> for Items<'_> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Error> {
        let Some(left) = self.left.checked_sub(1) else { return Ok(None) };
        self.left = left;
        seed.deserialize(&mut *self.random).map(Some)
    }
}

impl<'de> MapAccess<'de> for Items<'_> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Error> {
        self.next_element_seed(seed)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        seed.deserialize(&mut *self.random)
    }
}

/// Fields of a struct.
struct Fields<'r> {
    random: &'r mut Random,
    left: &'r [&'static str],
    now: &'static str,
}

impl<'de> MapAccess<'de> for Fields<'_> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Error> {
        let Some((now, left)) = self.left.split_first() else { return Ok(None) };
        (self.now, self.left) = (now, left);
        // An object of the API knows its own version and kind and takes no others.
        if ["apiVersion", "kind"].contains(now) && left.contains(&"metadata") {
            return self.next_key_seed(seed);
        }
        seed.deserialize(text(now)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        self.random.protobuf = match self.now {
            "config" | "sandbox_config" => Some(BASE64),
            "linux" | "linux_overhead" => Some(RESOURCES),
            _ => None,
        };
        let value = seed.deserialize(&mut *self.random);
        self.random.protobuf = None;
        value
    }
}

/// A variant of an enum.
struct Variant<'r> {
    random: &'r mut Random,
    name: &'static str,
}

impl<'de> EnumAccess<'de> for Variant<'_> {
    type Error = Error;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), Error> {
        Ok((seed.deserialize(text(self.name))?, self))
    }
}

impl<'de> VariantAccess<'de> for Variant<'_> {
    type Error = Error;

    fn unit_variant(self) -> Result<(), Error> {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Error> {
        seed.deserialize(self.random)
    }

    fn tuple_variant<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, Error> {
        self.random.deserialize_tuple(len, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(self, fields: &'static [&'static str], visitor: V) -> Result<V::Value, Error> {
        self.random.deserialize_struct("", fields, visitor)
    }
}
