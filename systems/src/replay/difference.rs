//! What differs between two records, field by field, without knowing what they mean.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use crate::kernel::record::hex;

/// A field that differs.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct FieldDifference {
    /// Its path, such as `journal.calls[0].name`; empty for the whole value.
    pub field: String,
    /// What it is on one side; `null` when it is missing there.
    pub before: Value,
    /// What it is on the other.
    pub after: Value,
}

/// A value of any record: MessagePack with named fields, bytes as hex.
struct Anything(Value);

impl<'de> Deserialize<'de> for Anything {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Shape).map(Anything)
    }
}

struct Shape;

impl<'de> Visitor<'de> for Shape {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_bytes<E>(self, value: &[u8]) -> Result<Value, E> {
        // An id is best known by its usual form.
        Ok(uuid::Uuid::from_slice(value).map_or_else(|_| hex(value), |id| id.to_string()).into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(Self)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(Self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(Anything(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(list.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some((Anything(key), Anything(value))) = entries.next_entry()? {
            let key = if let Value::String(text) = key { text } else { key.to_string() };
            map.insert(key, value);
        }
        Ok(map.into())
    }
}

/// A stored value for people: its fields when it is a record, its text when it is one, else its bytes as hex.
#[must_use]
pub fn shown(value: &[u8]) -> Value {
    let body = value.split_first().filter(|(version, _)| **version == 1).map(|(_, body)| body);
    if let Some(body) = body {
        if body.is_empty() {
            return Value::Object(Map::new());
        }
        if let Ok(Anything(fields)) = rmp_serde::from_slice(body) {
            return fields;
        }
    }
    std::str::from_utf8(value).map_or_else(|_| hex(value), str::to_owned).into()
}

/// The fields in which two stored values differ; `None` stands for no record.
#[must_use]
pub fn compared(before: Option<&[u8]>, after: Option<&[u8]>) -> Vec<FieldDifference> {
    let value = |bytes: Option<&[u8]>| bytes.map_or(Value::Null, shown);
    let mut found = Vec::new();
    compare(String::new(), &value(before), &value(after), &mut found);
    found
}

fn compare(field: String, before: &Value, after: &Value, found: &mut Vec<FieldDifference>) {
    if before == after {
        return;
    }
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => {
            let only_after = after.keys().filter(|key| !before.contains_key(*key));
            for key in before.keys().chain(only_after) {
                let path = if field.is_empty() { key.clone() } else { format!("{field}.{key}") };
                let of = |side: &Map<String, Value>| side.get(key).cloned().unwrap_or(Value::Null);
                compare(path, &of(before), &of(after), found);
            }
        }
        (Value::Array(before), Value::Array(after)) => {
            for at in 0..before.len().max(after.len()) {
                let of = |side: &[Value]| side.get(at).cloned().unwrap_or(Value::Null);
                compare(format!("{field}[{at}]"), &of(before), &of(after), found);
            }
        }
        _ => found.push(FieldDifference { field, before: before.clone(), after: after.clone() }),
    }
}

#[cfg(test)]
mod tests {
    use serde::Serialize;

    use super::*;
    use crate::kernel::record::encode;

    #[derive(Serialize)]
    struct Inner {
        list: Vec<u8>,
    }

    #[derive(Serialize)]
    struct Some {
        id: uuid::Uuid,
        text: &'static str,
        inner: Inner,
    }

    #[test]
    fn fields_that_differ_are_named() {
        let of = |text, list| encode(&Some { id: uuid::Uuid::nil(), text, inner: Inner { list } });
        assert_eq!(compared(Option::Some(&of("a", vec![1])), Option::Some(&of("a", vec![1]))), []);
        let found = compared(Option::Some(&of("a", vec![1, 2])), Option::Some(&of("b", vec![1, 3])));
        let fields: Vec<_> = found.iter().map(|found| found.field.as_str()).collect();
        assert_eq!(fields, ["inner.list[1]", "text"]);
        assert_eq!((&found[1].before, &found[1].after), (&"a".into(), &"b".into()));
    }

    #[test]
    fn what_is_no_record_is_shown_as_text_or_hex() {
        assert_eq!(shown(b"name = 1"), Value::from("name = 1"));
        assert_eq!(shown(&[0xff, 0]), Value::from("ff00"));
        assert_eq!(shown(&[1]), Value::Object(Map::new()));
        let whole = compared(None, Option::Some(b"text"));
        assert_eq!((whole[0].field.as_str(), &whole[0].before), ("", &Value::Null));
    }
}
