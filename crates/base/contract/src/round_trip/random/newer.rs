//! What is not known here.

use serde::de::{DeserializeSeed, EnumAccess, Error as _, VariantAccess, Visitor};
use serde_json::{Error, json};

use super::text;

/// What a newer peer says where an enum is expected.
#[derive(Debug, Clone, Copy)]
pub(in crate::round_trip) enum Newer {
    /// A name.
    Bare,
    /// A name with content.
    WithContent,
}

impl<'de> EnumAccess<'de> for Newer {
    type Error = Error;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), Error> {
        Ok((seed.deserialize(text("SomethingNewer"))?, self))
    }
}

/// As JSON has it: there is content or there is none, and who asks for the other gets an error.
impl<'de> VariantAccess<'de> for Newer {
    type Error = Error;

    fn unit_variant(self) -> Result<(), Error> {
        match self {
            Newer::Bare => Ok(()),
            Newer::WithContent => Err(Error::custom("there is content")),
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Error> {
        match self {
            Newer::Bare => Err(Error::custom("there is no content")),
            Newer::WithContent => seed.deserialize(json!({"of": ["a newer peer"]})),
        }
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, Error> {
        Err(Error::custom("not a tuple"))
    }

    fn struct_variant<V: Visitor<'de>>(self, _: &'static [&'static str], _: V) -> Result<V::Value, Error> {
        Err(Error::custom("not a struct"))
    }
}
