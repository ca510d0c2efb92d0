//! Values of fields and their types.

use std::borrow::Cow;
use std::cmp::Ordering;

use agentsvc_components::Timestamp;
use uuid::Uuid;

/// What kind of values a field has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// Yes or no.
    Bool,
    /// A number; whole ones are exact up to 2^53.
    Number,
    /// Any text.
    Text,
    /// One of these words.
    Word(&'static [&'static str]),
    /// A moment.
    Time,
    /// A span of time.
    Duration,
    /// A UUID.
    Id,
}

impl Type {
    /// The word of the API.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::Number => "number",
            Self::Text => "text",
            Self::Word(_) => "word",
            Self::Time => "time",
            Self::Duration => "duration",
            Self::Id => "id",
        }
    }

    /// Are values of the two compared with each other? Words are texts.
    pub(crate) fn is_like(self, other: Self) -> bool {
        let plain = |of: Self| if matches!(of, Self::Word(_)) { Self::Text } else { of };
        plain(self) == plain(other)
    }
}

/// A value of a field.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<'w> {
    /// Nothing is there.
    Null,
    /// Yes or no.
    Bool(bool),
    /// A number; never NaN.
    Number(f64),
    /// A text or a word.
    Text(Cow<'w, str>),
    /// A moment.
    Time(Timestamp),
    /// Milliseconds.
    Duration(i64),
    /// A UUID.
    Id(Uuid),
}

impl<'w> Value<'w> {
    /// A text that is there already.
    pub(crate) const fn text(text: &'w str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }

    /// A count.
    #[allow(clippy::cast_precision_loss, reason = "numbers of the language are exact up to 2^53, as documented")]
    pub(crate) const fn count(count: u64) -> Self {
        Self::Number(count as f64)
    }

    /// The value, or nothing.
    pub(crate) fn maybe<T>(value: Option<T>, of: impl FnOnce(T) -> Self) -> Self {
        value.map_or(Self::Null, of)
    }

    /// A value of its own, its text cut to `bytes_max`.
    pub(crate) fn kept(self, bytes_max: usize) -> Value<'static> {
        match self {
            Self::Null => Value::Null,
            Self::Bool(it) => Value::Bool(it),
            Self::Number(it) => Value::Number(it),
            Self::Time(it) => Value::Time(it),
            Self::Duration(it) => Value::Duration(it),
            Self::Id(it) => Value::Id(it),
            Self::Text(text) => {
                let end = text.floor_char_boundary(bytes_max);
                if end < text.len() {
                    Value::Text(text[..end].to_owned().into())
                } else {
                    Value::Text(text.into_owned().into())
                }
            }
        }
    }

    /// Bytes that it takes beside its place.
    pub(crate) fn heap_bytes(&self) -> usize {
        if let Self::Text(text) = self { text.len() } else { 0 }
    }

    /// Bytes of a text that was made for the one who looks.
    pub(crate) fn made_bytes(&self) -> usize {
        if let Self::Text(Cow::Owned(text)) = self { text.len() } else { 0 }
    }

    /// The order of two values of one type; nothing stands behind everything else, and values of different types are in
    /// the order of their types.
    pub(crate) fn order(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Bool(one), Self::Bool(other)) => one.cmp(other),
            (Self::Number(one), Self::Number(other)) => one.total_cmp(other),
            (Self::Text(one), Self::Text(other)) => one.cmp(other),
            (Self::Time(one), Self::Time(other)) => one.cmp(other),
            (Self::Duration(one), Self::Duration(other)) => one.cmp(other),
            (Self::Id(one), Self::Id(other)) => one.cmp(other),
            (one, other) => one.rank().cmp(&other.rank()),
        }
    }

    const fn rank(&self) -> u8 {
        match self {
            Self::Bool(_) => 0,
            Self::Number(_) => 1,
            Self::Text(_) => 2,
            Self::Time(_) => 3,
            Self::Duration(_) => 4,
            Self::Id(_) => 5,
            Self::Null => 6,
        }
    }

    /// Is nothing there?
    #[must_use]
    pub const fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// Appends the value as bytes that are equal for equal values only: the key of a group.
    pub(crate) fn write_key(&self, key: &mut Vec<u8>) {
        key.push(self.rank());
        match self {
            Self::Null => {}
            Self::Bool(it) => key.push(u8::from(*it)),
            // Minus zero is zero.
            Self::Number(it) => key.extend((it + 0.0).to_bits().to_be_bytes()),
            Self::Text(text) => {
                key.extend((text.len() as u64).to_be_bytes());
                key.extend(text.as_bytes());
            }
            Self::Time(it) => key.extend(it.0.to_be_bytes()),
            Self::Duration(it) => key.extend(it.to_be_bytes()),
            Self::Id(it) => key.extend(it.as_bytes()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_tell_values_apart() {
        let values = [
            Value::Null,
            Value::Bool(false),
            Value::Number(0.0),
            Value::Number(1.0),
            Value::text(""),
            Value::text("a"),
            Value::Time(Timestamp(1)),
            Value::Duration(1),
            Value::Id(Uuid::from_u128(1)),
        ];
        let key = |value: &Value<'_>| {
            let mut key = Vec::new();
            value.write_key(&mut key);
            key
        };
        for (at, one) in values.iter().enumerate() {
            for (other_at, other) in values.iter().enumerate() {
                assert_eq!(key(one) == key(other), at == other_at);
                assert_eq!(one.order(other).is_eq(), at == other_at);
            }
        }
        assert_eq!(key(&Value::Number(-0.0)), key(&Value::Number(0.0)));
    }

    #[test]
    fn texts_are_cut_between_characters() {
        assert_eq!(Value::text("aüb").kept(2), Value::text("a"));
        assert_eq!(Value::text("aüb").kept(3), Value::text("aü"));
    }
}
