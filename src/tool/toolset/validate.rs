//! Inputs held against the schemas of tools, by the crate `jsonschema`; and what it finds, in our words.
//!
//! Nothing that a schema names is fetched, its size and its patterns are bounded, and keywords that are not known say
//! nothing, as JSON Schema has it. How long it takes is not bounded: of schemas that
//! skills and plugins bring, only a cheap part is read ([`InputSchema::of_stranger`]).

use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
use jsonschema::paths::{Location, LocationSegment};
use jsonschema::{JsonType, Keyword, PatternOptions, ValidationError, Validator};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::checked_part::checked_part;

/// Bytes of a schema.
const SCHEMA_BYTES_MAX: usize = 256 << 10;
/// Steps back that one pattern may take.
const PATTERN_STEPS_MAX: usize = 100_000;
/// Bytes that one pattern may take up once it is read.
const PATTERN_BYTES_MAX: usize = 1 << 20;

/// What is wrong with an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// Where, such as `names[2]`; empty for the input as a whole.
    pub(crate) field: String,
    /// What, such as `must be a string`.
    pub(crate) message: String,
}

/// The schema of a tool's input, ready for inputs.
pub(crate) struct InputSchema(Validator);

impl InputSchema {
    /// Reads a schema.
    pub(crate) fn compile(schema: &Value) -> Result<Self, String> {
        if schema.to_string().len() > SCHEMA_BYTES_MAX {
            return Err(format!("the schema is longer than {SCHEMA_BYTES_MAX} bytes"));
        }
        let patterns = PatternOptions::fancy_regex()
            .backtrack_limit(PATTERN_STEPS_MAX)
            .size_limit(PATTERN_BYTES_MAX)
            .dfa_size_limit(PATTERN_BYTES_MAX);
        let options = jsonschema::options().offline().with_pattern_options(patterns).with_keyword("format", format);
        options.build(schema).map(Self).map_err(|error| format!("the schema cannot be read: {error}"))
    }

    /// Reads the part of a stranger's schema that costs no more than the value that is held against it is long.
    pub(crate) fn of_stranger(schema: &Value) -> Result<Self, String> {
        Self::compile(&checked_part(schema))
    }

    /// Holds an input against the schema; gives the first fault.
    pub(crate) fn check(&self, input: &Value) -> Result<(), Fault> {
        self.0.validate(input).map_err(|error| fault(&error))
    }
}

/// Says what is wrong with a value.
type Judge = dyn Fn(&Value) -> Option<String> + Send + Sync;

/// What a format asks of a value: gives what it must be, where it is not.
struct Format(Box<Judge>);

impl<'i> Keyword<'i> for Format {
    fn validate(&self, value: &'i Value) -> Result<(), ValidationError<'i>> {
        self.0(value).map_or(Ok(()), |must| Err(ValidationError::custom(must)))
    }

    fn is_valid(&self, value: &'i Value) -> bool {
        self.0(value).is_none()
    }
}

/// The formats that Rust's types get: of numbers their range, and UUIDs. Others only tell the reader something.
fn format<'a>(
    _: &'a Map<String, Value>,
    format: &'a Value,
    _: Location,
) -> Result<Box<dyn for<'i> Keyword<'i>>, ValidationError<'a>> {
    let (least, most) = match format.as_str() {
        Some("uuid") => {
            let is_wrong = |value: &Value| value.as_str().is_some_and(|text| Uuid::try_parse(text).is_err());
            return Ok(Box::new(Format(Box::new(move |value| is_wrong(value).then(|| "must be a UUID".to_owned())))));
        }
        Some("uint8") => (0, u64::from(u8::MAX)),
        Some("uint16") => (0, u64::from(u16::MAX)),
        Some("uint32") => (0, u64::from(u32::MAX)),
        Some("uint64" | "uint") => (0, u64::MAX),
        Some("int32") => (i64::from(i32::MIN), i32::MAX as u64),
        Some("int64" | "int") => (i64::MIN, i64::MAX as u64),
        _ => return Ok(Box::new(Format(Box::new(|_| None)))),
    };
    Ok(Box::new(Format(Box::new(move |value| out_of_range(value, least, most)))))
}

/// JSON Schema takes `2.0` for a whole number, what reads the input does not.
fn out_of_range(value: &Value, least: i64, most: u64) -> Option<String> {
    let signed = value.as_i64().map(|n| n >= least && (n < 0 || n as u64 <= most));
    match signed.or_else(|| value.as_u64().map(|n| n <= most)) {
        Some(true) => None,
        Some(false) => Some(format!("must be {least} to {most}")),
        None => value.is_f64().then(|| "must be a whole number".to_owned()),
    }
}

/// What was found, in our words.
fn fault(error: &ValidationError<'_>) -> Fault {
    let path = path(error.instance_path());
    let message = match error.kind() {
        Kind::Type { kind } => must_be(kind),
        Kind::Constant { expected_value } => format!("must be {expected_value}"),
        Kind::Enum { options } => format!("must be one of {}", listed(options.as_array().into_iter().flatten())),
        Kind::Minimum { limit } => format!("must be at least {limit}"),
        Kind::Maximum { limit } => format!("must be at most {limit}"),
        Kind::ExclusiveMinimum { limit } => format!("must be more than {limit}"),
        Kind::ExclusiveMaximum { limit } => format!("must be less than {limit}"),
        Kind::MinLength { limit } => format!("must have at least {limit} characters"),
        Kind::MaxLength { limit } => format!("must have at most {limit} characters"),
        Kind::MinItems { limit } => format!("must have at least {limit} items"),
        Kind::MaxItems { limit } => format!("must have at most {limit} items"),
        Kind::FalseSchema => "is not allowed".to_owned(),
        Kind::Custom { message, .. } => message.clone(),
        Kind::Required { property } => {
            return Fault {
                field: below(path, property.as_str().unwrap_or_default()),
                message: "is required".to_owned(),
            };
        }
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            let name = unexpected.first().map_or("", String::as_str);
            return Fault { field: below(path, name), message: "is not a field of this tool".to_owned() };
        }
        // The first fault stands for all: alternatives are mostly a value or null.
        Kind::AnyOf { context } => match context.first().and_then(|faults| faults.first()) {
            Some(first) => return fault(first),
            None => "is not allowed".to_owned(),
        },
        Kind::OneOfNotValid { context } => one_of(context),
        // Not the value: it may be a secret.
        _ => error.masked().to_string(),
    };
    Fault { field: path, message }
}

/// The values that may stand there, where all are constants.
fn one_of(context: &[Vec<ValidationError<'static>>]) -> String {
    let constants = context.iter().flatten().filter_map(|error| match error.kind() {
        Kind::Constant { expected_value } => Some(&**expected_value),
        _ => None,
    });
    match listed(constants) {
        none if none.is_empty() => "matches none of the allowed schemas".to_owned(),
        list => format!("must be one of {list}"),
    }
}

fn listed<'v>(values: impl Iterator<Item = &'v Value>) -> String {
    values.map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn must_be(kind: &TypeKind) -> String {
    let types: Vec<JsonType> = match kind {
        TypeKind::Single(one) => vec![*one],
        TypeKind::Multiple(many) => many.iter().filter(|one| *one != JsonType::Null).collect(),
    };
    let named = types.into_iter().map(|kind| match kind {
        JsonType::Null => "null",
        JsonType::Boolean => "true or false",
        JsonType::String => "a string",
        JsonType::Array => "a list",
        JsonType::Object => "an object",
        JsonType::Number => "a number",
        JsonType::Integer => "a whole number",
    });
    format!("must be {}", named.collect::<Vec<_>>().join(" or "))
}

/// Such as `names[2]` or `a.b`.
fn path(location: &Location) -> String {
    location.into_iter().fold(String::new(), |path, segment| match segment {
        LocationSegment::Property(name) => below(path, &name),
        LocationSegment::Index(at) => format!("{path}[{at}]"),
    })
}

/// The field `name` of what stands at `path`.
fn below(path: String, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::built_in;
    use super::{InputSchema, SCHEMA_BYTES_MAX};

    fn fault(schema: &Value, input: &Value) -> String {
        let schema = InputSchema::compile(schema).expect("a schema");
        schema.check(input).map_or_else(|fault| format!("{} {}", fault.field, fault.message), |()| String::new())
    }

    #[test]
    fn the_schema_of_every_tool_is_read_and_its_formats_are_held_to() {
        for tool in built_in().iter() {
            let schema = tool.schema();
            InputSchema::compile(&schema).unwrap_or_else(|error| panic!("{}: {error}", tool.name));
            let text = schema.to_string();
            for format in text.split("\"format\":\"").skip(1).filter_map(|rest| rest.split('"').next()) {
                let known = ["uuid", "uint8", "uint16", "uint32", "uint64", "uint", "int32", "int64", "int"];
                assert!(known.contains(&format) || ["float", "double"].contains(&format), "{}: {format}", tool.name);
            }
        }
    }

    #[test]
    fn faults_name_the_field() {
        let schema = json!({
            "type": "object",
            "additionalProperties": false,
            "required": ["path"],
            "properties": {
                "path": { "type": "string", "minLength": 1, "maxLength": 3, "description": "x" },
                "limit": { "type": ["integer", "null"], "format": "uint", "minimum": 0, "maximum": 9 },
                "ids": { "type": "array", "maxItems": 2, "items": { "type": "string", "format": "uuid" } },
                "mode": { "anyOf": [{ "type": "string", "enum": ["a", "b"] }, { "type": "null" }] },
                "kind": { "oneOf": [{ "type": "string", "const": "x" }, { "type": "string", "const": "y" }] },
                "free": true,
                "words": { "type": "object", "additionalProperties": { "type": "number" } },
            },
        });
        let uuid = "018f0000-0000-7000-8000-000000000001";
        for good in [
            json!({ "path": "a" }),
            json!({ "path": "äöü", "limit": null, "ids": [uuid], "mode": null, "kind": "y", "free": [1] }),
            json!({ "path": "a", "limit": 9, "mode": "b", "words": { "x": 1.5, "y": 2 } }),
        ] {
            assert_eq!(fault(&schema, &good), "");
        }
        for (bad, expected) in [
            (json!({}), "path is required"),
            (json!([]), " must be an object"),
            (json!({ "path": 3 }), "path must be a string"),
            (json!({ "path": "" }), "path must have at least 1 characters"),
            (json!({ "path": "abcd" }), "path must have at most 3 characters"),
            (json!({ "path": "a", "limit": -1 }), "limit must be at least 0"),
            (json!({ "path": "a", "limit": 10 }), "limit must be at most 9"),
            (json!({ "path": "a", "limit": 1.5 }), "limit must be a whole number"),
            (json!({ "path": "a", "limit": "1" }), "limit must be a whole number"),
            (json!({ "path": "a", "ids": [uuid, "x"] }), "ids[1] must be a UUID"),
            (json!({ "path": "a", "ids": [uuid, uuid, uuid] }), "ids must have at most 2 items"),
            (json!({ "path": "a", "mode": "c" }), "mode must be one of \"a\", \"b\""),
            (json!({ "path": "a", "kind": "z" }), "kind must be one of \"x\", \"y\""),
            (json!({ "path": "a", "words": { "x": "1" } }), "words.x must be a number"),
            (json!({ "path": "a", "odd": 1 }), "odd is not a field of this tool"),
        ] {
            assert_eq!(fault(&schema, &bad), expected, "{bad}");
        }
    }

    #[test]
    fn a_schema_is_read_as_json_schema_has_it() {
        let schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {
                "to": { "$ref": "#/$defs/address" },
                "day": { "type": "string", "pattern": "^\\d{4}-\\d{2}$", "x-hint": "a month" },
                "tags": { "type": "array", "uniqueItems": true, "items": { "type": "string", "format": "slug" } },
            },
            "if": { "required": ["day"] },
            "then": { "required": ["to"] },
            "$defs": { "address": { "type": "string", "minLength": 3 } },
        });
        assert_eq!(fault(&schema, &json!({ "to": "a@b", "day": "2026-11", "tags": ["a", "b"] })), "");
        assert_eq!(fault(&schema, &json!({ "to": "a" })), "to must have at least 3 characters");
        assert_eq!(fault(&schema, &json!({ "day": "2026-11" })), "to is required");
        assert_eq!(fault(&schema, &json!({ "to": "a@b", "day": "x" })), "day value does not match \"^\\d{4}-\\d{2}$\"");
        assert_eq!(fault(&schema, &json!({ "tags": ["a", "a"] })), "tags value has non-unique elements");
    }

    #[test]
    fn what_cannot_be_read_is_refused_and_nothing_is_fetched() {
        let refused = |schema: Value| InputSchema::compile(&schema).err().expect("refused");
        refused(json!(3));
        refused(json!({ "type": "text" }));
        refused(json!({ "pattern": "(" }));
        refused(json!({ "pattern": "(?:a{1000}){1000}" }));
        refused(json!({ "$ref": "https://schemas.example/a.json" }));
        refused(json!({ "$ref": "file:///etc/passwd" }));
        assert!(refused(json!({ "description": "x".repeat(SCHEMA_BYTES_MAX) })).contains("longer than"));
        assert_ne!(fault(&json!(false), &json!("a")), "");
    }

    #[test]
    fn a_schema_within_itself_and_a_slow_pattern_come_to_an_end() {
        let tree =
            json!({ "type": "object", "properties": { "next": { "$ref": "#" } }, "additionalProperties": false });
        assert_eq!(fault(&tree, &json!({ "next": { "next": { "x": 1 } } })), "next.next.x is not a field of this tool");
        fault(&json!({ "$ref": "#" }), &json!({}));
        fault(&json!({ "allOf": [{ "$ref": "#" }, { "$ref": "#" }] }), &json!({}));
        let slow = json!({ "pattern": "^(?=(a+)+$)(a|aa)+\\1$" });
        assert_ne!(fault(&slow, &json!("a".repeat(200) + "b")), "");
    }

    #[test]
    fn inputs_of_real_tools_are_judged() {
        let check = |name: &str, input: Value| fault(&built_in().find(name).unwrap().schema(), &input);
        assert_eq!(check("file_read", json!({ "path": "a", "offset": 3 })), "");
        assert_eq!(check("file_read", json!({ "offset": 3 })), "path is required");
        assert_eq!(check("file_read", json!({ "path": "a", "ofset": 3 })), "ofset is not a field of this tool");
        assert_eq!(check("tool_load", json!({ "names": ["a", 2] })), "names[1] must be a string");
        assert_eq!(check("task_claim", json!({ "task_id": "x" })), "task_id must be a UUID");
        assert_eq!(check("system_time", json!({})), "");
        assert_eq!(check("event_publish", json!({ "event_type": "a.b", "payload": [1, { "x": null }] })), "");
        assert_ne!(check("goal_update", json!({ "status": "done" })), "");
    }
}
