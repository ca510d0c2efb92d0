//! Reads MessagePack into types, as rmp-serde wrote them.
//!
//! The reader of rmp-serde is compiled as a whole for each type that is read. Here a [`Token`] is read by one function for
//! all, and only what to do with it is compiled for each type.

use std::fmt;

use serde::Deserialize;
use serde::de::value::SeqDeserializer;
use serde::de::{DeserializeOwned, DeserializeSeed, EnumAccess, Error, MapAccess, SeqAccess, Unexpected};
use serde::de::{VariantAccess, Visitor};
use serde::forward_to_deserialize_any;

/// Arrays and maps that may stand in each other.
const DEPTH_MAX: u16 = 1_024;

/// Why bytes cannot be read as a type.
#[derive(Debug)]
pub(crate) struct ReadError(Box<str>);

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ReadError {}

impl Error for ReadError {
    fn custom<T: fmt::Display>(text: T) -> Self {
        Self(text.to_string().into())
    }
}

/// Reads the value at the beginning of `bytes`.
pub(crate) fn from_slice<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ReadError> {
    T::deserialize(&mut Reader { rest: bytes, depth: 0 })
}

/// The beginning of a value, or all of it.
enum Token<'de> {
    Nil,
    Bool(bool),
    Unsigned(u64),
    Signed(i64),
    Single(f32),
    Double(f64),
    Text(&'de str),
    /// A text that is not UTF-8.
    NotText(&'de [u8]),
    Bytes(&'de [u8]),
    Array(u32),
    Map(u32),
}

struct Reader<'de> {
    rest: &'de [u8],
    depth: u16,
}

impl<'de> Reader<'de> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], ReadError> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or_else(short)?;
        self.rest = rest;
        Ok(*taken)
    }

    fn bytes(&mut self, length: u32) -> Result<&'de [u8], ReadError> {
        let (taken, rest) = self.rest.split_at_checked(length as usize).ok_or_else(short)?;
        self.rest = rest;
        Ok(taken)
    }

    fn text(&mut self, length: u32) -> Result<Token<'de>, ReadError> {
        let bytes = self.bytes(length)?;
        Ok(std::str::from_utf8(bytes).map_or(Token::NotText(bytes), Token::Text))
    }

    fn byte(&mut self) -> Result<u8, ReadError> {
        self.take().map(|[byte]| byte)
    }

    fn short(&mut self) -> Result<u16, ReadError> {
        self.take().map(u16::from_be_bytes)
    }

    fn word(&mut self) -> Result<u32, ReadError> {
        self.take().map(u32::from_be_bytes)
    }

    fn token(&mut self) -> Result<Token<'de>, ReadError> {
        Ok(match self.byte()? {
            number @ 0x00..=0x7f => Token::Unsigned(number.into()),
            head @ 0x80..=0x8f => Token::Map(u32::from(head & 0x0f)),
            head @ 0x90..=0x9f => Token::Array(u32::from(head & 0x0f)),
            head @ 0xa0..=0xbf => self.text(u32::from(head & 0x1f))?,
            0xc0 => Token::Nil,
            0xc2 => Token::Bool(false),
            0xc3 => Token::Bool(true),
            0xc4 => self.byte().and_then(|length| self.bytes(length.into())).map(Token::Bytes)?,
            0xc5 => self.short().and_then(|length| self.bytes(length.into())).map(Token::Bytes)?,
            0xc6 => self.word().and_then(|length| self.bytes(length)).map(Token::Bytes)?,
            0xca => Token::Single(f32::from_be_bytes(self.take()?)),
            0xcb => Token::Double(f64::from_be_bytes(self.take()?)),
            0xcc => Token::Unsigned(self.byte()?.into()),
            0xcd => Token::Unsigned(self.short()?.into()),
            0xce => Token::Unsigned(self.word()?.into()),
            0xcf => Token::Unsigned(u64::from_be_bytes(self.take()?)),
            0xd0 => Token::Signed(i8::from_be_bytes(self.take()?).into()),
            0xd1 => Token::Signed(i16::from_be_bytes(self.take()?).into()),
            0xd2 => Token::Signed(i32::from_be_bytes(self.take()?).into()),
            0xd3 => Token::Signed(i64::from_be_bytes(self.take()?)),
            0xd9 => self.byte().and_then(|length| self.text(length.into()))?,
            0xda => self.short().and_then(|length| self.text(length.into()))?,
            0xdb => self.word().and_then(|length| self.text(length))?,
            0xdc => Token::Array(self.short()?.into()),
            0xdd => Token::Array(self.word()?),
            0xde => Token::Map(self.short()?.into()),
            0xdf => Token::Map(self.word()?),
            head @ 0xe0..=0xff => Token::Signed(i64::from(head as i8)),
            head @ (0xc1 | 0xc7..=0xc9 | 0xd4..=0xd8) => {
                return Err(ReadError::custom(format_args!("the byte {head:#04x} begins no value")));
            }
        })
    }

    /// Reads a value; `as_list` when bytes are to be read as a list of numbers.
    fn visit<V: Visitor<'de>>(&mut self, visitor: V, as_list: bool) -> Result<V::Value, ReadError> {
        match self.token()? {
            Token::Nil => visitor.visit_unit(),
            Token::Bool(is) => visitor.visit_bool(is),
            Token::Unsigned(number) => visitor.visit_u64(number),
            Token::Signed(number) => visitor.visit_i64(number),
            Token::Single(number) => visitor.visit_f32(number),
            Token::Double(number) => visitor.visit_f64(number),
            Token::Text(text) => visitor.visit_borrowed_str(text),
            Token::Bytes(bytes) if as_list => visitor.visit_seq(SeqDeserializer::new(bytes.iter().copied())),
            Token::Bytes(bytes) | Token::NotText(bytes) => visitor.visit_borrowed_bytes(bytes),
            Token::Array(left) => {
                let mut items = self.begin(left)?;
                visitor.visit_seq(&mut items).and_then(|value| items.end(value))
            }
            Token::Map(left) => {
                let mut items = self.begin(left)?;
                visitor.visit_map(&mut items).and_then(|value| items.end(value))
            }
        }
    }

    fn begin(&mut self, left: u32) -> Result<Items<'_, 'de>, ReadError> {
        if self.depth == DEPTH_MAX {
            return Err(ReadError::custom("it is nested too deep"));
        }
        self.depth += 1;
        Ok(Items { reader: self, left })
    }
}

fn short() -> ReadError {
    ReadError::custom("it is truncated")
}

impl<'de> serde::Deserializer<'de> for &mut Reader<'de> {
    type Error = ReadError;

    fn is_human_readable(&self) -> bool {
        false
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        self.visit(visitor, false)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match self.rest {
            [0xc0, rest @ ..] => {
                self.rest = rest;
                visitor.visit_none()
            }
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        // A variant that brings something is a map of its name and that.
        let has_content = if let [0x81 | 0x91, rest @ ..] = self.rest {
            self.rest = rest;
            true
        } else {
            false
        };
        visitor.visit_enum(Variant { reader: self, has_content })
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, ReadError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, ReadError> {
        match self.rest {
            [0xc0 | 0x90, rest @ ..] => {
                self.rest = rest;
                visitor.visit_unit()
            }
            _ => self.visit(visitor, false),
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        self.visit(visitor, true)
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, ReadError> {
        self.visit(visitor, true)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        self.visit(visitor, true)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        self.visit(visitor, true)
    }

    forward_to_deserialize_any! {
        bool u8 u16 u32 u64 i8 i16 i32 i64 f32 f64 bytes byte_buf unit map identifier str string char ignored_any
    }
}

/// What is left of an array or a map.
struct Items<'a, 'de> {
    reader: &'a mut Reader<'de>,
    left: u32,
}

impl Items<'_, '_> {
    fn end<T>(self, value: T) -> Result<T, ReadError> {
        self.reader.depth -= 1;
        if self.left == 0 { Ok(value) } else { Err(ReadError::custom("it has too many items")) }
    }
}

impl<'de> SeqAccess<'de> for Items<'_, 'de> {
    type Error = ReadError;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, ReadError> {
        let Some(left) = self.left.checked_sub(1) else { return Ok(None) };
        self.left = left;
        seed.deserialize(&mut *self.reader).map(Some)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.left as usize)
    }
}

impl<'de> MapAccess<'de> for Items<'_, 'de> {
    type Error = ReadError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, ReadError> {
        self.next_element_seed(seed)
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, ReadError> {
        seed.deserialize(&mut *self.reader)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.left as usize)
    }
}

/// A variant of an enum, from its name on.
struct Variant<'a, 'de> {
    reader: &'a mut Reader<'de>,
    has_content: bool,
}

impl<'a, 'de> Variant<'a, 'de> {
    fn content(self, expected: &'static str) -> Result<&'a mut Reader<'de>, ReadError> {
        if self.has_content {
            Ok(self.reader)
        } else {
            Err(ReadError::invalid_type(Unexpected::UnitVariant, &expected))
        }
    }
}

impl<'de> EnumAccess<'de> for Variant<'_, 'de> {
    type Error = ReadError;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), ReadError> {
        Ok((seed.deserialize(&mut *self.reader)?, self))
    }
}

impl<'de> VariantAccess<'de> for Variant<'_, 'de> {
    type Error = ReadError;

    fn unit_variant(self) -> Result<(), ReadError> {
        if self.has_content { <()>::deserialize(self.reader) } else { Ok(()) }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, ReadError> {
        seed.deserialize(self.content("newtype variant")?)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, ReadError> {
        self.content("tuple variant")?.visit(visitor, true)
    }

    fn struct_variant<V: Visitor<'de>>(self, _: &'static [&'static str], visitor: V) -> Result<V::Value, ReadError> {
        self.content("struct variant")?.visit(visitor, true)
    }
}

#[cfg(test)]
#[path = "msgpack_tests.rs"]
mod tests;
