//! Answers of persons: a flat form, described by a JSON schema of the kind that MCP servers send. Fields are texts, numbers,
//! booleans, one of some texts, or several of them; there is no nesting and there are no references.

use bevy_ecs::prelude::{Entity, World};
use serde_json::{Map, Value};

use agentsvc_components::Refusal;
use agentsvc_components::approval::Approval;

use super::decide::Decision;
use super::limits::{ANSWER_BYTES_MAX, ANSWER_FIELDS_MAX, ANSWER_SCHEMA_BYTES_MAX};

/// What is answered where nothing is filled in.
const NOTHING: &str = "{}";

/// A field of a form.
enum Field<'a> {
    Text {
        length: (u64, u64),
        format: Option<&'a str>,
    },
    Number {
        is_integer: bool,
        range: (f64, f64),
    },
    Boolean,
    /// One of these texts.
    Choice(Vec<&'a str>),
    /// So many of these texts.
    Choices(Vec<&'a str>, (u64, u64)),
}

/// Refuses a schema that describes no flat form: why.
pub(super) fn check_schema(schema: &str) -> Result<(), String> {
    if schema.len() > ANSWER_SCHEMA_BYTES_MAX {
        return Err(format!("the form is longer than {ANSWER_SCHEMA_BYTES_MAX} bytes"));
    }
    form(&parsed(schema)?).map(drop)
}

fn parsed(schema: &str) -> Result<Value, String> {
    serde_json::from_str(schema).map_err(|_| "the form is not valid JSON".to_owned())
}

/// The fields of a form, and whether each is required.
fn form(schema: &Value) -> Result<Vec<(&str, Field<'_>, bool)>, String> {
    if schema["type"] != "object" {
        return Err("the form is not an object".to_owned());
    }
    let properties = schema["properties"].as_object().ok_or("the form has no properties")?;
    if properties.len() > ANSWER_FIELDS_MAX {
        return Err(format!("the form has more than {ANSWER_FIELDS_MAX} fields"));
    }
    let required = match schema.get("required") {
        None => Vec::new(),
        Some(Value::Array(names)) if names.len() <= ANSWER_FIELDS_MAX => names.iter().map(Value::as_str).collect(),
        Some(_) => return Err("`required` of the form is not a short list of names".to_owned()),
    };
    if required.iter().any(|name| name.is_none_or(|name| !properties.contains_key(name))) {
        return Err("the form requires a field that it does not have".to_owned());
    }
    properties
        .iter()
        .map(|(name, of)| {
            let field = Field::read(of).map_err(|why| format!("the field {name:?} of the form {why}"))?;
            Ok((name.as_str(), field, required.contains(&Some(name))))
        })
        .collect()
}

/// The answer to the approvals that are about to be decided, when their forms take it.
pub(super) fn judge(
    world: &World,
    entities: &[Entity],
    decision: Decision,
    answer: Option<Box<str>>,
) -> Result<Option<Box<str>>, Refusal> {
    if decision == Decision::Reject {
        let refusal = || Refusal::bad_field("answer", "a rejection takes no answer");
        return answer.map_or(Ok(None), |_| Err(refusal()));
    }
    let mut given = None;
    for approval in entities.iter().filter_map(|at| world.get::<Approval>(*at)) {
        let schema = approval.answer_schema.as_deref();
        check_answer(schema, answer.as_deref(), entities.len())?;
        given = given.or_else(|| schema.map(|_| answer.clone().unwrap_or_else(|| NOTHING.into())));
    }
    Ok(given)
}

/// Refuses an answer to one of `count` approvals that are approved at once: it has no form, or its form does not take it.
///
/// # Errors
/// 400 with the field `answer`, or one below it.
pub fn check_answer(schema: Option<&str>, answer: Option<&str>, count: usize) -> Result<(), Refusal> {
    let refuse = |text: &str| Err(Refusal::bad_field("answer", text));
    match schema {
        None if answer.is_some() => refuse("this approval takes no answer"),
        None => Ok(()),
        Some(_) if count > 1 => refuse("approvals that need an answer are approved one by one"),
        Some(schema) => check(schema, answer.unwrap_or(NOTHING)),
    }
}

/// Refuses an answer that the form does not take, and names the field.
fn check(schema: &str, answer: &str) -> Result<(), Refusal> {
    if answer.len() > ANSWER_BYTES_MAX {
        let text = format!("answer is longer than {ANSWER_BYTES_MAX} bytes");
        return Err(Refusal::bad_field("answer", text));
    }
    let answer: Map<String, Value> =
        serde_json::from_str(answer).map_err(|_| Refusal::bad_field("answer", "answer is not a JSON object"))?;
    let schema = parsed(schema).map_err(|why| Refusal::bad_field("answer", why))?;
    let fields = form(&schema).map_err(|why| Refusal::bad_field("answer", why))?;
    let wrong = |name: &str, why: &str| {
        let field = format!("answer.{name}");
        Err(Refusal::bad_field(field.clone(), format!("{field} {why}")))
    };
    if let Some(unknown) = answer.keys().find(|name| !fields.iter().any(|(field, ..)| field == name)) {
        let shown = &unknown[..unknown.floor_char_boundary(64)];
        return wrong(shown, "is not a field of the form");
    }
    for (name, field, is_required) in &fields {
        match answer.get(*name) {
            None if *is_required => return wrong(name, "is required"),
            None => {}
            Some(value) => {
                if let Err(why) = field.check(value) {
                    return wrong(name, &why);
                }
            }
        }
    }
    Ok(())
}

impl<'a> Field<'a> {
    /// What the schema of a field describes: why it is none.
    fn read(schema: &'a Value) -> Result<Self, String> {
        let bound = |key: &str, other: u64| match schema.get(key) {
            None => Ok(other),
            Some(bound) => bound.as_u64().ok_or_else(|| format!("has a `{key}` that is not a number")),
        };
        let bounds = |least, most| {
            let (least, most) = (bound(least, 0)?, bound(most, u64::MAX)?);
            if least <= most { Ok((least, most)) } else { Err("has bounds that nothing meets".to_owned()) }
        };
        match schema["type"].as_str() {
            Some("string") => match options(schema, "oneOf")? {
                Some(options) => Ok(Self::Choice(options)),
                None => Ok(Self::Text { length: bounds("minLength", "maxLength")?, format: schema["format"].as_str() }),
            },
            Some(kind @ ("number" | "integer")) => {
                let limit = |key: &str, other: f64| match schema.get(key) {
                    None => Ok(other),
                    Some(limit) => limit.as_f64().ok_or_else(|| format!("has a `{key}` that is not a number")),
                };
                let range = (limit("minimum", f64::NEG_INFINITY)?, limit("maximum", f64::INFINITY)?);
                if range.0 > range.1 {
                    return Err("has bounds that nothing meets".to_owned());
                }
                Ok(Self::Number { is_integer: kind == "integer", range })
            }
            Some("boolean") => Ok(Self::Boolean),
            Some("array") => {
                let items = &schema["items"];
                let options = options(items, "anyOf")?.ok_or("is a list of something other than given texts")?;
                Ok(Self::Choices(options, bounds("minItems", "maxItems")?))
            }
            _ => Err("is neither a text, a number, a boolean nor a list of given texts".to_owned()),
        }
    }

    /// Refuses a value that the field does not take: why.
    fn check(&self, value: &Value) -> Result<(), String> {
        match (self, value) {
            (Self::Text { length, format }, Value::String(text)) => {
                let characters = text.chars().count() as u64;
                if !(length.0..=length.1).contains(&characters) {
                    return Err(format!("has {characters} characters, which is not within the bounds of the form"));
                }
                match format.filter(|format| !has_format(text, format)) {
                    Some(format) => Err(format!("is not of the format {format:?}")),
                    None => Ok(()),
                }
            }
            (Self::Number { is_integer, range }, Value::Number(number)) => {
                let number = number.as_f64().unwrap_or(f64::NAN);
                if *is_integer && number.fract() != 0.0 {
                    return Err("is not an integer".to_owned());
                }
                let is_within = number >= range.0 && number <= range.1;
                if is_within { Ok(()) } else { Err("is not within the bounds of the form".to_owned()) }
            }
            (Self::Boolean, Value::Bool(_)) => Ok(()),
            (Self::Choice(options), Value::String(text)) if options.contains(&text.as_str()) => Ok(()),
            (Self::Choices(options, bounds), Value::Array(chosen)) => {
                let is_option = |text: &Value| text.as_str().is_some_and(|text| options.contains(&text));
                let is_fit = (bounds.0..=bounds.1).contains(&(chosen.len() as u64)) && chosen.iter().all(is_option);
                if is_fit { Ok(()) } else { Err("is not a choice that the form offers".to_owned()) }
            }
            (Self::Text { .. }, _) => Err("must be a text".to_owned()),
            (Self::Number { .. }, _) => Err("must be a number".to_owned()),
            (Self::Boolean, _) => Err("must be true or false".to_owned()),
            (Self::Choice(_) | Self::Choices(..), _) => Err("is not a choice that the form offers".to_owned()),
        }
    }
}

/// The texts of `enum`, or of the constants below `key`; `None` where any text will do.
fn options<'a>(schema: &'a Value, key: &str) -> Result<Option<Vec<&'a str>>, String> {
    let texts: Option<Vec<&str>> = match (schema.get("enum"), schema.get(key)) {
        (None, None) => return Ok(None),
        (Some(Value::Array(options)), _) => options.iter().map(Value::as_str).collect(),
        (None, Some(Value::Array(options))) => options.iter().map(|option| option["const"].as_str()).collect(),
        _ => None,
    };
    let texts = texts.filter(|texts| !texts.is_empty()).ok_or("has choices that are not texts")?;
    Ok(Some(texts))
}

/// Is the text of this format? One that is not known says nothing.
fn has_format(text: &str, format: &str) -> bool {
    match format {
        "email" => text.split_once('@').is_some_and(|(name, host)| {
            !name.is_empty() && host.split('.').all(|part| !part.is_empty()) && !text.contains(char::is_whitespace)
        }),
        "uri" => text.split_once(':').is_some_and(|(scheme, rest)| {
            let is_scheme = scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
            is_scheme && scheme.starts_with(|first: char| first.is_ascii_alphabetic()) && !rest.is_empty()
        }),
        "date" => chrono::NaiveDate::parse_from_str(text, "%Y-%m-%d").is_ok(),
        "date-time" => chrono::DateTime::parse_from_rfc3339(text).is_ok(),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema(properties: &Value, required: &Value) -> String {
        json!({ "type": "object", "properties": properties, "required": required }).to_string()
    }

    #[test]
    fn flat_forms_are_taken_and_others_are_not() {
        let all = json!({
            "name": { "type": "string", "minLength": 1, "maxLength": 5, "title": "Name" },
            "mail": { "type": "string", "format": "email" },
            "age": { "type": "integer", "minimum": 0, "maximum": 150 },
            "ratio": { "type": "number" },
            "sure": { "type": "boolean", "default": false },
            "old": { "type": "string", "enum": ["a", "b"], "enumNames": ["A", "B"] },
            "one": { "type": "string", "oneOf": [{ "const": "a", "title": "A" }] },
            "some": { "type": "array", "items": { "type": "string", "enum": ["x", "y"] }, "maxItems": 1 },
            "more": { "type": "array", "items": { "anyOf": [{ "const": "x", "title": "X" }] } },
        });
        assert_eq!(check_schema(&schema(&all, &json!(["name", "some"]))), Ok(()));
        assert_eq!(check_schema("{\"type\":\"object\",\"properties\":{}}"), Ok(()));
        for (properties, required) in [
            (json!({ "a": { "type": "object", "properties": {} } }), json!([])),
            (json!({ "a": { "$ref": "#/x" } }), json!([])),
            (json!({ "a": { "type": "array", "items": { "type": "string" } } }), json!([])),
            (json!({ "a": { "type": "array", "items": { "type": "object" } } }), json!([])),
            (json!({ "a": { "type": "string", "enum": [] } }), json!([])),
            (json!({ "a": { "type": "string", "enum": [1] } }), json!([])),
            (json!({ "a": { "type": "string", "minLength": 2, "maxLength": 1 } }), json!([])),
            (json!({ "a": { "type": "number", "minimum": "0" } }), json!([])),
            (json!({ "a": { "type": ["string", "null"] } }), json!([])),
            (json!({ "a": true }), json!([])),
            (json!({ "a": { "type": "string" } }), json!(["b"])),
            (json!({ "a": { "type": "string" } }), json!("a")),
            (json!([]), json!([])),
        ] {
            assert!(check_schema(&schema(&properties, &required)).is_err(), "{properties} {required}");
        }
        let many: Map<String, Value> =
            (0..=ANSWER_FIELDS_MAX).map(|n| (n.to_string(), json!({ "type": "boolean" }))).collect();
        assert!(check_schema(&schema(&many.into(), &json!([]))).is_err());
        let long = json!({ "a": { "type": "string", "title": "x".repeat(ANSWER_SCHEMA_BYTES_MAX) } });
        assert!(check_schema(&schema(&long, &json!([]))).is_err());
        assert!(check_schema("[]").is_err() && check_schema("{").is_err());
    }

    #[test]
    fn answers_are_checked_by_their_form() {
        let properties = json!({
            "name": { "type": "string", "minLength": 1, "maxLength": 3 },
            "mail": { "type": "string", "format": "email" },
            "link": { "type": "string", "format": "uri" },
            "day": { "type": "string", "format": "date" },
            "at": { "type": "string", "format": "date-time" },
            "age": { "type": "integer", "minimum": 0, "maximum": 150 },
            "sure": { "type": "boolean" },
            "one": { "type": "string", "oneOf": [{ "const": "a", "title": "A" }] },
            "some": { "type": "array", "items": { "type": "string", "enum": ["x", "y"] }, "minItems": 1, "maxItems": 2 },
        });
        let form = schema(&properties, &json!(["name"]));
        for right in [
            json!({ "name": "äöü" }),
            json!({ "name": "a", "mail": "a@b.c", "link": "https://h/", "day": "2026-01-31" }),
            json!({ "name": "a", "at": "2026-01-31T10:00:00Z", "age": 150, "sure": true, "one": "a", "some": ["y", "x"] }),
        ] {
            assert!(check(&form, &right.to_string()).is_ok(), "{right}");
        }
        for (field, wrong) in [
            ("answer", json!("a")),
            ("answer.name", json!({})),
            ("answer.name", json!({ "name": "" })),
            ("answer.name", json!({ "name": "long" })),
            ("answer.name", json!({ "name": null })),
            ("answer.other", json!({ "name": "a", "other": 1 })),
            ("answer.mail", json!({ "name": "a", "mail": "nobody" })),
            ("answer.link", json!({ "name": "a", "link": "no link" })),
            ("answer.day", json!({ "name": "a", "day": "2026-02-31" })),
            ("answer.at", json!({ "name": "a", "at": "today" })),
            ("answer.age", json!({ "name": "a", "age": 1.5 })),
            ("answer.age", json!({ "name": "a", "age": 151 })),
            ("answer.age", json!({ "name": "a", "age": "1" })),
            ("answer.sure", json!({ "name": "a", "sure": "yes" })),
            ("answer.one", json!({ "name": "a", "one": "b" })),
            ("answer.some", json!({ "name": "a", "some": [] })),
            ("answer.some", json!({ "name": "a", "some": ["z"] })),
        ] {
            let refusal = check(&form, &wrong.to_string()).unwrap_err();
            assert_eq!(refusal.field.as_deref(), Some(field), "{wrong}: {refusal}");
        }
        let long = json!({ "name": "x".repeat(ANSWER_BYTES_MAX) });
        assert_eq!(check(&form, &long.to_string()).unwrap_err().field.as_deref(), Some("answer"));
    }
}
