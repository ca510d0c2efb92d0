//! Keys, tokens and passwords in what another program says of an agent. They go by the names of their keys, are taken over
//! from no kind of home, and each is told by where it stood.

use std::collections::BTreeSet;

use serde_json::Value as Json;
use toml_edit::{Decor, DocumentMut, Item, TableLike, TomlError, Value};

use super::Found;

/// How the names of such keys end, in small letters and without what parts their words.
const ENDS: &str = "accesskey accesskeyid apikey apikeys authkey authorization credential credentials passphrase \
    passwd password passwords privatekey secret secretkey secrets signingkey token";

/// Is what stands under this key a secret?
pub(super) fn is_secret(key: &str) -> bool {
    let words = key.chars().filter(|c| !matches!(c, '_' | '-' | ' '));
    let plain: String = words.flat_map(char::to_lowercase).collect();
    ENDS.split(' ').any(|end| plain.ends_with(end))
}

/// Where secrets stand in `value`, such as `model.api_key`.
pub(super) fn named(value: &Json) -> BTreeSet<String> {
    fn walk(value: &Json, path: &str, found: &mut BTreeSet<String>) {
        match value {
            Json::Object(table) => {
                for (key, inner) in table {
                    let is_empty = inner.is_null() || inner.as_str() == Some("");
                    if !is_secret(key) {
                        walk(inner, &below(path, key), found);
                    } else if !is_empty {
                        found.insert(below(path, key));
                    }
                }
            }
            Json::Array(items) => items.iter().for_each(|item| walk(item, path, found)),
            _ => {}
        }
    }
    let mut found = BTreeSet::new();
    walk(value, "", &mut found);
    found
}

/// A TOML text without its secrets, also those that are commented out, and where they stood. One that has none stays as it
/// is written.
pub(super) fn without(text: String) -> Result<(String, BTreeSet<String>), String> {
    let mut document: DocumentMut = text.parse().map_err(|error: TomlError| error.message().to_owned())?;
    let mut found = BTreeSet::new();
    take_out(document.as_table_mut(), "", &mut found);
    if let Some(kept) = document.trailing().as_str().and_then(|comments| cleaned(comments, &mut found)) {
        document.set_trailing(kept);
    }
    let text = if found.is_empty() { text } else { document.to_string() };
    Ok((text, found))
}

/// Says of each what is to be done about it.
pub(super) fn tell(agent: &str, keys: &BTreeSet<String>, found: &mut Found) {
    for key in keys {
        found.warn(format!(
            "agent {agent:?}: {key:?} is not imported; set the provider's key again, or put the value in the \
             environment and its name in api_key_env"
        ));
    }
}

fn below(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

fn take_out(table: &mut dyn TableLike, path: &str, found: &mut BTreeSet<String>) {
    let keys: Vec<String> = table.iter().map(|(key, _)| key.to_owned()).collect();
    for key in keys {
        let place = below(path, &key);
        let Some(item) = table.get_mut(&key) else { continue };
        if is_secret(&key) && item.as_str() != Some("") {
            table.remove(&key);
            found.insert(place);
            continue;
        }
        take_out_of(item, &place, found);
        if let Some(mut key) = table.key_mut(&key) {
            clean(key.leaf_decor_mut(), found);
        }
    }
}

fn take_out_of(item: &mut Item, path: &str, found: &mut BTreeSet<String>) {
    match item {
        Item::None => {}
        Item::Value(value) => take_out_of_value(value, path, found),
        Item::Table(table) => {
            clean(table.decor_mut(), found);
            take_out(table, path, found);
        }
        Item::ArrayOfTables(tables) => {
            for table in tables.iter_mut() {
                clean(table.decor_mut(), found);
                take_out(table, path, found);
            }
        }
    }
}

fn take_out_of_value(value: &mut Value, path: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::InlineTable(table) => take_out(table, path, found),
        Value::Array(items) => items.iter_mut().for_each(|item| take_out_of_value(item, path, found)),
        _ => {}
    }
}

/// Cleans the comments that stand before something.
fn clean(decor: &mut Decor, found: &mut BTreeSet<String>) {
    let comments = decor.prefix().and_then(|comments| comments.as_str());
    if let Some(kept) = comments.and_then(|comments| cleaned(comments, found)) {
        decor.set_prefix(kept);
    }
}

/// The comments without the lines that set a secret; `None` when there is none.
fn cleaned(comments: &str, found: &mut BTreeSet<String>) -> Option<String> {
    let mut kept = String::with_capacity(comments.len());
    for line in comments.split_inclusive('\n') {
        match commented(line) {
            Some(key) => {
                found.insert(key.to_owned());
            }
            None => kept.push_str(line),
        }
    }
    (kept.len() < comments.len()).then_some(kept)
}

/// The key of a secret that is commented out.
fn commented(line: &str) -> Option<&str> {
    let said = line.trim_start().strip_prefix('#')?.trim_start_matches(['#', ' ', '\t']);
    let (key, value) = said.split_once('=')?;
    let key = key.trim().trim_matches(['"', '\'']);
    let is_key = !key.contains(char::is_whitespace) && is_secret(key);
    (is_key && !value.trim().is_empty()).then_some(key)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn taken(text: &str) -> (String, Vec<String>) {
        let (text, keys) = without(text.to_owned()).unwrap();
        (text, keys.into_iter().collect())
    }

    #[test]
    fn secrets_go_by_the_names_of_their_keys() {
        for key in
            ["api_key", "apiKey", "x-api-key", "OPENAI_API_KEY", "token", "bot-token", "clientSecret", "Password"]
        {
            assert!(is_secret(key), "{key}");
        }
        for key in ["api_key_env", "max_tokens", "hourly_token_limit", "key", "keywords", "tokenizer", "name"] {
            assert!(!is_secret(key), "{key}");
        }
    }

    #[test]
    fn a_text_loses_its_secrets_and_nothing_else() {
        let text = "# by hand\nname = \"a\"\napi_key = \"canary\" # mine\nmodel.token = \"canary\"\nmodel.model = \"m\"\n\
                    empty.password = \"\"\n\n# token = \"canary\"\n[deep]\nlist = [{ secret = \"canary\", n = 1 }]\n\
                    # what follows\nn = 2\n\n[deep.credentials]\nuser = \"canary\"\n\n[[more]]\npassword = 7777\n\
                    m = 3\n# deep.api-key = 'canary'\n";
        let (clean, keys) = taken(text);
        assert!(!clean.contains("canary") && !clean.contains("7777"), "{clean}");
        let places =
            ["api_key", "deep.api-key", "deep.credentials", "deep.list.secret", "model.token", "more.password"];
        assert_eq!(keys, [places.as_slice(), &["token"]].concat());
        for kept in ["# by hand\nname = \"a\"\n", "# what follows\nn = 2\n", "n = 1", "m = 3\n", "password = \"\""] {
            assert!(clean.contains(kept), "{kept}: {clean}");
        }
        assert_eq!(taken(&clean), (clean.clone(), Vec::new()));
    }

    #[test]
    fn a_text_without_secrets_stays_as_it_is_written() {
        let text =
            "# token budget = none\nname   =   'a'\nsystem_prompt = '''\n# token = \"said by the prompt\"\n'''\n";
        assert_eq!(taken(text), (text.to_owned(), Vec::new()));
    }

    #[test]
    fn secrets_of_other_formats_are_named() {
        let value =
            json!({ "model": { "apiKey": "x", "name": "m" }, "list": [{ "token": "y" }], "password": "", "n": 1 });
        assert_eq!(named(&value).into_iter().collect::<Vec<_>>(), ["list.token", "model.apiKey"]);
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "[\\[\\]{}=,.'\"# a-c\n]{0,60}(token = 'x')?[\\[\\]{}=,.'\"# a-c\n]{0,20}") {
            let _ = without(text);
        }
    }
}
