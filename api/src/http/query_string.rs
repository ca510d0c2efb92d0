//! The query of a URI as typed values: a map of text whose values turn into numbers, booleans and enums as the target
//! asks. Not by `serde_urlencoded`: it reads invalid UTF-8 as replacement characters and refuses a name that comes twice.

use std::borrow::Cow;

use agentsvc_components::kernel::limit;
use percent_encoding::percent_decode_str;
use serde::de::value::{MapDeserializer, StrDeserializer};
use serde::de::{DeserializeOwned, Deserializer, Error as _, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;

use crate::http::error::Error;

/// Reads the query `text` (without `?`) as `T`; see [`Call::query`](crate::http::call::Call::query).
pub(crate) fn read<T: DeserializeOwned>(text: &str) -> Result<T, Error> {
    let pairs = pairs(text)?;
    let map = MapDeserializer::<_, serde::de::value::Error>::new(
        pairs.iter().map(|(key, value)| (key.as_ref(), Value { key, text: value })),
    );
    serde_path_to_error::deserialize(map).map_err(|error| {
        let message = error.inner().to_string();
        let path = error.path().to_string();
        let field = match path.as_str() {
            "." | "?" => crate::http::json::missing_field(&message).unwrap_or_default().to_owned(),
            _ => path,
        };
        if field.is_empty() {
            return Error::bad_request(format!("invalid query: {message}"));
        }
        let sentence = match message.strip_prefix(&format!("{field}: ")) {
            Some(rest) => format!("query parameter '{field}': {rest}"),
            None => format!("query parameter '{field}': {message}"),
        };
        Error::bad_field(&field, sentence)
    })
}

/// One decoded name and value.
type Pair<'a> = (Cow<'a, str>, Cow<'a, str>);

/// The decoded pairs of a query; of equal names the last one stays.
///
/// # Errors
/// 400 for what is no text, and for more than [`limit::QUERY_PARAMETERS_MAX`]: each name is compared with those before it.
fn pairs(text: &str) -> Result<Vec<Pair<'_>>, Error> {
    let mut pairs: Vec<Pair<'_>> = Vec::new();
    for (n, part) in text.split('&').filter(|part| !part.is_empty()).enumerate() {
        if n == limit::QUERY_PARAMETERS_MAX {
            let text = format!("the query has more than {} parameters", limit::QUERY_PARAMETERS_MAX);
            return Err(Error::bad_request(text).with("limit_parameters", limit::QUERY_PARAMETERS_MAX));
        }
        let (key, value) = part.split_once('=').unwrap_or((part, ""));
        let decode = |text| percent_decode(text, true).filter(|t| !t.contains('\0'));
        let key = decode(key).ok_or_else(|| Error::bad_request("a query parameter's name is not valid UTF-8 text"))?;
        let value = decode(value)
            .ok_or_else(|| Error::bad_field(&key, format!("query parameter '{key}' is not valid UTF-8 text")))?;
        match pairs.iter_mut().find(|(known, _)| *known == key) {
            Some(pair) => pair.1 = value,
            None => pairs.push((key, value)),
        }
    }
    Ok(pairs)
}

/// Decodes `%xx`, and `+` as a space where `plus` says so. `None` when the result is not UTF-8; a stray `%` stays.
pub(crate) fn percent_decode(text: &str, plus: bool) -> Option<Cow<'_, str>> {
    if plus && text.contains('+') {
        let spaced = text.replace('+', " ");
        return percent_decode_str(&spaced).decode_utf8().ok().map(|text| Cow::Owned(text.into_owned()));
    }
    percent_decode_str(text).decode_utf8().ok()
}

/// One value of a query: text that reads itself as what the target wants.
struct Value<'a> {
    key: &'a str,
    text: &'a str,
}

impl<'de> IntoDeserializer<'de, serde::de::value::Error> for Value<'de> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

macro_rules! parsed {
    ($($method:ident $visit:ident $what:literal,)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
            match self.text.parse() {
                Ok(value) => visitor.$visit(value),
                Err(_) => Err(Self::Error::custom(format_args!("{}: '{}' is not {}", self.key, self.text, $what))),
            }
        }
    )*};
}

impl<'de> Deserializer<'de> for Value<'de> {
    type Error = serde::de::value::Error;

    parsed! {
        deserialize_bool visit_bool "true or false",
        deserialize_u8 visit_u8 "a whole number in range",
        deserialize_u16 visit_u16 "a whole number in range",
        deserialize_u32 visit_u32 "a whole number in range",
        deserialize_u64 visit_u64 "a whole number in range",
        deserialize_i8 visit_i8 "a whole number in range",
        deserialize_i16 visit_i16 "a whole number in range",
        deserialize_i32 visit_i32 "a whole number in range",
        deserialize_i64 visit_i64 "a whole number in range",
        deserialize_f32 visit_f32 "a number",
        deserialize_f64 visit_f64 "a number",
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        visitor.visit_borrowed_str(self.text)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        StrDeserializer::<Self::Error>::new(self.text).deserialize_enum(name, variants, visitor)
    }

    fn is_human_readable(&self) -> bool {
        true
    }

    forward_to_deserialize_any! {
        char str string bytes byte_buf unit unit_struct seq tuple tuple_struct map struct identifier ignored_any
        i128 u128
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use uuid::Uuid;

    use super::*;

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Order {
        #[default]
        Newest,
        Oldest,
    }

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(default)]
    struct Filter {
        limit: Option<u32>,
        text: String,
        order: Order,
        all: bool,
        agent: Option<Uuid>,
    }

    fn field_of(error: Error) -> (String, u16) {
        let status = error.status().as_u16();
        (error.message().to_owned(), status)
    }

    #[test]
    fn reads_typed_values() {
        let filter: Filter =
            read("limit=20&text=a%20b+c&order=oldest&all=true&agent=018f0000-0000-7000-8000-000000000001&x=1").unwrap();
        assert_eq!(filter.limit, Some(20));
        assert_eq!(filter.text, "a b c");
        assert_eq!(filter.order, Order::Oldest);
        assert!(filter.all && filter.agent.is_some());
        assert_eq!(read::<Filter>("").unwrap(), Filter::default());
        assert_eq!(read::<Filter>("limit=1&limit=2").unwrap().limit, Some(2));
    }

    #[test]
    fn parameters_are_bounded() {
        let of = |count: usize| (0..count).map(|n| format!("p{n}=1&")).collect::<String>();
        assert!(read::<Filter>(&of(limit::QUERY_PARAMETERS_MAX)).is_ok());
        let (message, status) = field_of(read::<Filter>(&of(limit::QUERY_PARAMETERS_MAX + 1)).unwrap_err());
        assert_eq!((status, &*message), (400, "the query has more than 64 parameters"));
    }

    #[test]
    fn errors_name_the_parameter() {
        for (query, name) in [
            ("limit=abc", "limit"),
            ("limit=-1", "limit"),
            ("limit=", "limit"),
            ("order=random", "order"),
            ("agent=7", "agent"),
            ("all=yes", "all"),
            ("text=%ff", "text"),
            ("text=%00", "text"),
        ] {
            let (message, status) = field_of(read::<Filter>(query).unwrap_err());
            assert_eq!(status, 400);
            assert!(message.contains(&format!("'{name}'")), "{query}: {message}");
        }
    }

    #[test]
    fn stray_percent_signs_stay() {
        assert_eq!(percent_decode("100%", false).unwrap(), "100%");
        assert_eq!(percent_decode("%zz", false).unwrap(), "%zz");
        assert_eq!(percent_decode("a+%2B%", true).unwrap(), "a +%");
        assert_eq!(percent_decode("a+b", false).unwrap(), "a+b");
        assert!(percent_decode("%c3%28", false).is_none());
    }
}
