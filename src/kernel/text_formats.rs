//! Text formats that people write by hand: YAML, JSON with comments, and Markdown with a YAML head.

use serde_json::Value;

/// Reads YAML as a JSON value. Its size is bounded by that of the file; aliases are expanded within the parser's budget.
pub(crate) fn yaml(text: &str) -> Result<Value, String> {
    serde_saphyr::from_str(text).map_err(|error| first_line(&error.to_string()))
}

/// Reads JSON5 as it is written by hand: comments, trailing commas, keys without quotes, single quotes.
pub(crate) fn json5(text: &str) -> Result<Value, String> {
    if let Ok(value) = serde_json::from_str(text) {
        return Ok(value);
    }
    // Without its comments it is YAML in flow style.
    yaml(&without_comments(text))
}

/// The text with `//` and `/* */` comments and tabs outside of strings turned into spaces; lines stay where they are.
pub(crate) fn without_comments(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    let mut quote = None;
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(_), '\\') => {
                out.push(c);
                out.extend(chars.next());
            }
            (Some(open), _) => {
                if c == open {
                    quote = None;
                }
                out.push(c);
            }
            (None, '"' | '\'') => {
                quote = Some(c);
                out.push(c);
            }
            (None, '/') if chars.peek() == Some(&'/') => while chars.next_if(|c| *c != '\n').is_some() {},
            (None, '/') if chars.peek() == Some(&'*') => {
                chars.next();
                let mut last = ' ';
                for c in chars.by_ref() {
                    if c == '\n' {
                        out.push('\n');
                    }
                    if last == '*' && c == '/' {
                        break;
                    }
                    last = c;
                }
                out.push(' ');
            }
            (None, '\t') => out.push(' '),
            (None, _) => out.push(c),
        }
    }
    out
}

/// Splits a Markdown file with a YAML head between `---` lines; without one the head is `null`.
pub(crate) fn front_matter(text: &str) -> (Result<Value, String>, &str) {
    let (head, body) = split_front_matter(text);
    (head.map_or(Ok(Value::Null), yaml), body)
}

/// The text between the `---` lines at the beginning, where there are any, and what follows them.
pub(crate) fn split_front_matter(text: &str) -> (Option<&str>, &str) {
    let text = text.trim_start_matches('\u{feff}');
    let Some(rest) = text.strip_prefix("---").and_then(|rest| rest.split_once('\n').map(|(_, rest)| rest)) else {
        return (None, text);
    };
    let mut at = 0;
    for line in rest.split_inclusive('\n') {
        if line.trim_end() == "---" {
            return (Some(&rest[..at]), rest[at + line.len()..].trim_start_matches(['\r', '\n']));
        }
        at += line.len();
    }
    (None, text)
}

/// The text under one of `keys`, trimmed and not empty.
pub(crate) fn word<'v>(value: &'v Value, keys: &[&str]) -> Option<&'v str> {
    let texts = keys.iter().filter_map(|key| value.get(key)?.as_str());
    texts.map(str::trim).find(|text| !text.is_empty())
}

/// The texts of a list under one of `keys`; one text alone, parted by commas, is a list too.
pub(crate) fn words(value: &Value, keys: &[&str]) -> Vec<String> {
    let Some(found) = keys.iter().find_map(|key| value.get(key)) else { return Vec::new() };
    let list = match found {
        Value::Array(items) => items.iter().filter_map(|item| item.as_str()).map(str::to_owned).collect(),
        Value::String(text) => text.split(',').map(str::to_owned).collect(),
        _ => Vec::new(),
    };
    let trimmed: Vec<String> = list.iter().map(|word: &String| word.trim().to_owned()).collect();
    trimmed.into_iter().filter(|word| !word.is_empty()).collect()
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn json_as_people_write_it() {
        let text = "{\n\t// the model\n\tagents: { defaults: { model: 'a/b', /* not\n this */ n: 1.5, }, },\n\t\"url\": \"http://x//y\",\n list: [1, 'two', true, null,],\n}";
        let expected = json!({
            "agents": {"defaults": {"model": "a/b", "n": 1.5}},
            "url": "http://x//y",
            "list": [1, "two", true, null],
        });
        assert_eq!(json5(text).unwrap(), expected);
        assert_eq!(json5("{\"a\": 1}").unwrap(), json!({"a": 1}));
        assert!(json5("{").is_err());
    }

    #[test]
    fn heads_of_markdown() {
        let (head, body) = front_matter("---\nname: x\ntags: [a, b]\n---\n\n# Title\n");
        assert_eq!((head.unwrap(), body), (json!({"name": "x", "tags": ["a", "b"]}), "# Title\n"));
        assert_eq!(front_matter("# Title\n"), (Ok(Value::Null), "# Title\n"));
        assert_eq!(front_matter("---\nnever ended\n").0, Ok(Value::Null));
        assert!(front_matter("---\na: [\n---\nx").0.is_err());
    }

    #[test]
    fn aliases_that_grow_are_refused() {
        let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for n in 1..12 {
            let list = vec![format!("*a{}", n - 1); 10].join(", ");
            bomb.push_str(&format!("a{n}: &a{n} [{list}]\n"));
        }
        assert!(yaml(&bomb).is_err());
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "[\\[\\]{}:,'\"/*#&!|>a-z0-9 \n\t-]{0,80}") {
            let _ = (yaml(&text), json5(&text), front_matter(&text));
        }
    }
}
