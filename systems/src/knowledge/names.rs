//! Names and types of entities and relations: what is allowed, and the form in which they are compared.

use agentsvc_components::Refusal;
use agentsvc_components::knowledge::EntityKey;

use super::limits::{ENTITY_NAME_BYTES_MAX, KNOWLEDGE_PROPERTIES_BYTES_MAX, KNOWLEDGE_TYPE_BYTES_MAX};
use crate::kernel::text::check_name;

/// The form in which names are compared: lower case, words with one space between them.
#[must_use]
pub fn fold(name: &str) -> String {
    let words: Vec<&str> = name.split_whitespace().collect();
    words.join(" ").to_lowercase()
}

/// The name of an entity as it is stored, without spaces around it.
///
/// # Errors
/// It is empty, too long, or has control characters. The error names `field`.
pub fn entity_name<'a>(field: &str, name: &'a str) -> Result<&'a str, Refusal> {
    let name = name.trim();
    check_name(field, name, ENTITY_NAME_BYTES_MAX)?;
    Ok(name)
}

/// The type of an entity or relation as it is stored: lower case, with `_` for spaces and hyphens.
///
/// # Errors
/// As [`entity_name`], or it has a colon.
pub fn type_name(field: &str, word: &str) -> Result<Box<str>, Refusal> {
    let word = word.trim();
    check_name(field, word, KNOWLEDGE_TYPE_BYTES_MAX)?;
    if word.contains(':') {
        return Err(Refusal::bad_field(field, format!("{field} must not contain a colon")));
    }
    Ok(word.to_lowercase().replace(|c: char| c.is_whitespace() || c == '-', "_").into())
}

/// What tells an entity of this name and type from others.
///
/// # Errors
/// As [`entity_name`] and [`type_name`].
pub fn entity_key(fields: (&str, &str), name: &str, kind: &str) -> Result<EntityKey, Refusal> {
    let name = fold(entity_name(fields.0, name)?).into();
    Ok(EntityKey { name, kind: type_name(fields.1, kind)? })
}

/// Refuses properties, as compact JSON, that are too long.
///
/// # Errors
/// 400 naming `field`.
pub fn check_properties(field: &str, properties: &str) -> Result<(), Refusal> {
    let most = KNOWLEDGE_PROPERTIES_BYTES_MAX;
    if properties.len() > most {
        let text = format!("{field} has more than {most} bytes of compact JSON");
        return Err(Refusal::bad_field(field, text));
    }
    Ok(())
}

/// Refuses a confidence that is not between 0 and 1.
///
/// # Errors
/// 400 naming `field`.
pub fn check_confidence(field: &str, confidence: f32) -> Result<(), Refusal> {
    if (0.0..=1.0).contains(&confidence) {
        return Ok(());
    }
    Err(Refusal::bad_field(field, format!("{field} must be between 0 and 1")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_differ_in_case_and_spaces_alone_are_one() {
        let key = |name, kind| entity_key(("name", "entity_type"), name, kind).unwrap();
        assert_eq!(key(" Ada   Lovelace", "Person"), key("ada lovelace ", "person"));
        assert_eq!(&*key("Ä", "Open-Source Tool").kind, "open_source_tool");
        assert_eq!(key("Ada", "person").to_string(), "person:ada");
        assert_ne!(key("Ada", "person"), key("Ada", "tool"));
    }

    #[test]
    fn what_is_no_name_names_its_field() {
        let long = "n".repeat(ENTITY_NAME_BYTES_MAX + 1);
        for (name, kind, field) in [
            ("", "person", "a"),
            ("  ", "person", "a"),
            ("a\0b", "person", "a"),
            (&*long, "person", "a"),
            ("Ada", "", "b"),
            ("Ada", "x:y", "b"),
            ("Ada", "x\ny", "b"),
            ("Ada", &"t".repeat(KNOWLEDGE_TYPE_BYTES_MAX + 1), "b"),
        ] {
            assert_eq!(entity_key(("a", "b"), name, kind).unwrap_err().field.as_deref(), Some(field), "{name} {kind}");
        }
        assert!(check_confidence("c", 0.0).is_ok() && check_confidence("c", 1.0).is_ok());
        assert!([-0.1, 1.1, f32::NAN].into_iter().all(|wrong| check_confidence("c", wrong).is_err()));
    }
}
