//! Variables in the arguments of servers.

use std::collections::BTreeMap;

/// The text with `~` at its start, `$NAME` and `${NAME}` replaced where the server has a variable of this name.
pub(super) fn expanded(text: &str, home: &str, env: &BTreeMap<String, String>) -> String {
    let value = |name: &str| if name == "HOME" { Some(home) } else { env.get(name).map(String::as_str) };
    let (mut done, mut rest) = match text.strip_prefix('~') {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => (home.to_owned(), rest),
        _ => (String::new(), text),
    };
    while let Some(at) = rest.find('$') {
        done.push_str(&rest[..at]);
        let behind = &rest[at + 1..];
        let (name, length) = match behind.strip_prefix('{').and_then(|inside| inside.split_once('}')) {
            Some((name, _)) => (name, name.len() + 2),
            None => {
                let end = behind.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(behind.len());
                (&behind[..end], end)
            }
        };
        match value(name) {
            Some(value) => done.push_str(value),
            None => done.push_str(&rest[at..=at + length]),
        }
        rest = &behind[length..];
    }
    done + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_declared_variables_are_expanded() {
        let env = BTreeMap::from([("A".to_owned(), "1".to_owned()), ("B_2".to_owned(), "$A".to_owned())]);
        for (text, result) in [
            ("$HOME", "/h"),
            ("${HOME}/x", "/h/x"),
            ("~", "/h"),
            ("~/x", "/h/x"),
            ("~x", "~x"),
            ("a~", "a~"),
            ("$A-$B_2.${A}", "1-$A.1"),
            ("$OTHER ${OTHER} $ ${ $1", "$OTHER ${OTHER} $ ${ $1"),
            ("$AB", "$AB"),
            ("é$Aé", "é1é"),
        ] {
            assert_eq!(expanded(text, "/h", &env), result, "{text}");
        }
    }
}
