//! Values that clients give to a channel, held against what its adapter takes.

use std::collections::BTreeMap;

use agentsvc_api::channel::service::{ChannelChange, ChannelError};

use super::config::check_value;
use super::definition::Definition;
use super::describe::{Field, Schema};
use super::secrets;

/// The values with whether each is secret. All that is required must be there then.
pub(super) fn checked(
    schema: &Schema,
    definition: &Definition,
    change: &ChannelChange,
) -> Result<BTreeMap<String, (bool, Option<String>)>, ChannelError> {
    let bad = |key: &str, text: String| ChannelError::BadField(key.to_owned(), format!("{key}: {text}"));
    let mut given = change.values.clone();
    if let Some(token) = &change.token {
        let secret = |field: &&Field| field.is_secret() && (field.required || field.key.ends_with("TOKEN"));
        let field = schema.fields.iter().find(secret);
        let field = field.ok_or_else(|| bad("token", "the adapter takes no token".to_owned()))?;
        given.insert(field.key.clone(), Some(token.clone()));
    }
    let mut values = BTreeMap::new();
    for (key, value) in given {
        let field = schema.fields.iter().find(|field| field.key == key);
        let field = field.ok_or_else(|| bad(&key, "the adapter takes no such value".to_owned()))?;
        if let Some(value) = &value {
            check_value(value).and_then(|()| secrets::check(value)).map_err(|why| bad(&key, why))?;
            let is_number = || value.parse::<f64>().is_ok();
            if field.kind == "number" && !value.is_empty() && !is_number() {
                return Err(bad(&key, "must be a number".to_owned()));
            }
            let options = field.options.iter().flatten().collect::<Vec<_>>();
            if field.kind == "select" && !options.is_empty() && !options.contains(&value) {
                return Err(bad(&key, "must be one of the options".to_owned()));
            }
        }
        values.insert(key, (field.is_secret(), value));
    }
    let is_there = |key: &str| match values.get(key) {
        Some((_, value)) => value.as_ref().is_some_and(|value| !value.is_empty()),
        None => definition.value(key).is_some(),
    };
    match schema.fields.iter().find(|field| field.required && !is_there(&field.key)) {
        Some(field) => Err(bad(&field.key, "required".to_owned())),
        None => Ok(values),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::definition::Sources;
    use super::super::secrets::Secrets;
    use super::*;

    #[test]
    fn values_are_held_against_the_fields() {
        let schema: Schema = serde_json::from_str(
            r#"{"fields":[{"key":"A_TOKEN","type":"secret","required":true},{"key":"PORT","type":"number"},
                {"key":"MODE","type":"select","options":["x","y"]}]}"#,
        )
        .unwrap();
        let none = |_: &str| None;
        let empty = Secrets::default();
        let sources = Sources { home: Path::new("/h"), secrets: &empty, variable: &none, is_daemons: &|_| false };
        let definition = Definition::new("bot", &std::sync::Arc::default(), &sources);
        let of = |token: Option<&str>, values: &[(&str, Option<&str>)]| {
            let values = values.iter().map(|(key, value)| ((*key).to_owned(), value.map(str::to_owned))).collect();
            let change = ChannelChange { values, token: token.map(str::to_owned), ..ChannelChange::default() };
            checked(&schema, &definition, &change)
        };
        let good = of(Some("t"), &[("PORT", Some("80")), ("MODE", Some("x"))]).unwrap();
        assert_eq!(good["A_TOKEN"], (true, Some("t".to_owned())));
        assert_eq!(good["PORT"], (false, Some("80".to_owned())));
        for (values, field) in [
            (&[("PORT", Some("many"))][..], "PORT"),
            (&[("MODE", Some("z"))], "MODE"),
            (&[("OTHER", Some("z"))], "OTHER"),
            (&[("A_TOKEN", Some("a\nb"))], "A_TOKEN"),
        ] {
            assert!(matches!(of(None, values), Err(ChannelError::BadField(of, _)) if of == field), "{field}");
        }
        assert!(matches!(of(None, &[]), Err(ChannelError::BadField(field, _)) if field == "A_TOKEN"));
    }
}
