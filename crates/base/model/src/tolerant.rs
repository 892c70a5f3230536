//! Enums of which a newer peer may know more.
//!
//! Who speaks to us from another process may be newer, and name a variant that is not known here, with content or without.
//! [`tolerant!`](crate::tolerant!) says what such a one is read as; [`Known`] lets the reader pass over it.

use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, EnumAccess, Error as _, IgnoredAny, IntoDeserializer, VariantAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// Makes an enum readable and writable, and says what a variant is read as that it does not have. The enum derives both
/// of serde's traits with `#[serde(remote = "Self")]`.
///
/// ```
/// use model::tolerant;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Debug, PartialEq, Serialize, Deserialize)]
/// #[serde(remote = "Self")]
/// enum Colour {
///     Red,
///     Mixed { parts: u32 },
///     Unknown,
/// }
/// tolerant!(Colour, else Colour::Unknown);
///
/// let read = |text| serde_json::from_str::<Vec<Colour>>(text).unwrap();
/// assert_eq!(read(r#"["Red", {"Mixed": {"parts": 2}}]"#), [Colour::Red, Colour::Mixed { parts: 2 }]);
/// assert_eq!(read(r#"["Blue", {"Striped": {"width": [1]}}, "Red"]"#), [Colour::Unknown, Colour::Unknown, Colour::Red]);
/// assert!(serde_json::from_str::<Colour>(r#"{"Mixed": "of what?"}"#).is_err(), "what is known must be right");
/// ```
#[macro_export]
macro_rules! tolerant {
    ($type:ident, else $unknown:expr) => {
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                $type::serialize(self, to)
            }
        }
        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                Ok($crate::tolerant::known(from, |from| $type::deserialize(from))?.unwrap_or_else(|| $unknown))
            }
        }
    };
}

/// Reads an enum; `None`: it is a variant that the enum does not have. For [`tolerant!`](crate::tolerant!).
///
/// # Errors
/// What is not well formed, and content of a known variant that does not fit it.
#[doc(hidden)]
pub fn known<'de, T, D: Deserializer<'de>>(
    from: D,
    read: impl FnOnce(Reader<'_, D>) -> Result<T, D::Error>,
) -> Result<Option<T>, D::Error> {
    let unknown = Cell::new(false);
    match read(Reader { from, unknown: &unknown }) {
        Err(_) if unknown.get() => Ok(None),
        read => read.map(Some),
    }
}

/// A variant that is known here, or one that is not: `Known(None)`. For keys and members of collections, from which the
/// reader leaves out what it does not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Known<T>(pub Option<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Known<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        known(from, |from| T::deserialize(from)).map(Known)
    }
}

/// Hands an enum through, and notes when its variant is not known.
#[doc(hidden)]
#[derive(Debug)]
pub struct Reader<'a, D> {
    from: D,
    unknown: &'a Cell<bool>,
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Reader<'_, D> {
    type Error = D::Error;

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        let read = self.from.deserialize_enum(name, variants, KnownVariant(visitor))?;
        read.ok_or_else(|| {
            self.unknown.set(true);
            D::Error::custom(format!("{name} has no such variant"))
        })
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.from.deserialize_any(visitor)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

/// Visits as the inner visitor does; `None`: the variant is not known, and its content has been passed over.
struct KnownVariant<V>(V);

impl<'de, V: Visitor<'de>> Visitor<'de> for KnownVariant<V> {
    type Value = Option<V::Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.expecting(f)
    }

    fn visit_enum<A: EnumAccess<'de>>(self, access: A) -> Result<Self::Value, A::Error> {
        let unknown = Cell::new(false);
        match self.0.visit_enum(Access { access, unknown: &unknown }) {
            Err(_) if unknown.get() => Ok(None),
            visited => visited.map(Some),
        }
    }
}

struct Access<'a, A> {
    access: A,
    unknown: &'a Cell<bool>,
}

impl<'de, A: EnumAccess<'de>> EnumAccess<'de> for Access<'_, A> {
    type Error = A::Error;
    type Variant = A::Variant;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, A::Variant), A::Error> {
        let (name, content) = self.access.variant::<String>()?;
        match seed.deserialize(name.as_str().into_deserializer()) {
            Ok(variant) => Ok((variant, content)),
            Err(e) => {
                pass_over(content)?;
                self.unknown.set(true);
                Err(e)
            }
        }
    }
}

/// Reads past the content of a variant, if it has any.
fn pass_over<'de, V: VariantAccess<'de>>(content: V) -> Result<(), V::Error> {
    let there = Cell::new(false);
    match content.newtype_variant_seed(PassOver(&there)) {
        Err(_) if !there.get() => Ok(()),
        passed => passed,
    }
}

struct PassOver<'a>(&'a Cell<bool>);

impl<'de> DeserializeSeed<'de> for PassOver<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        self.0.set(true);
        IgnoredAny::deserialize(from).map(drop)
    }
}
