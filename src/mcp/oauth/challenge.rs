//! `WWW-Authenticate` of a server that wants a sign-in (RFC 9110, 11.6.1; RFC 6750, 3; RFC 9728, 5.1).

/// What the `Bearer` challenge of an answer says. All of it is the server's word.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Challenge {
    /// Where the server's metadata are.
    pub(super) resource_metadata: Option<String>,
    /// The scopes that the request needs, separated by spaces.
    pub(super) scope: Option<String>,
    /// Why the token was not accepted, such as `insufficient_scope`.
    pub(super) error: Option<String>,
}

impl Challenge {
    /// Reads the values of the header, joined by commas. `None` when no challenge is `Bearer`; the first one counts.
    pub(super) fn read(text: &str) -> Option<Self> {
        let (mut rest, mut found, mut is_bearer) = (text, None::<Self>, false);
        loop {
            rest = rest.trim_start_matches([' ', '\t', ',']);
            if rest.is_empty() {
                return found;
            }
            let end = rest.find(|c| !is_token(c)).unwrap_or(rest.len());
            if end == 0 {
                // Not of the grammar: the next word may be again.
                let length = rest.chars().next().map_or(1, char::len_utf8);
                rest = &rest[length..];
                continue;
            }
            let (word, behind) = rest.split_at(end);
            match behind.trim_start_matches([' ', '\t']).strip_prefix('=') {
                Some(value) => {
                    let (value, left) = read_value(value.trim_start_matches([' ', '\t']));
                    if let Some(challenge) = found.as_mut().filter(|_| is_bearer) {
                        challenge.set(word, value);
                    }
                    rest = left;
                }
                None => {
                    is_bearer = found.is_none() && word.eq_ignore_ascii_case("bearer");
                    if is_bearer {
                        found = Some(Self::default());
                    }
                    rest = behind;
                }
            }
        }
    }

    fn set(&mut self, name: &str, value: String) {
        let place = match name.to_ascii_lowercase().as_str() {
            "resource_metadata" => &mut self.resource_metadata,
            "scope" => &mut self.scope,
            "error" => &mut self.error,
            _ => return,
        };
        place.get_or_insert(value);
    }
}

/// A character of a token (RFC 9110, 5.6.2).
const fn is_token(c: char) -> bool {
    c.is_ascii_alphanumeric()
        || matches!(c, '!' | '#' | '$' | '%' | '&' | '\'' | '*' | '+' | '-' | '.' | '^' | '_' | '`' | '|' | '~')
}

/// The value at the start of `text`, a token or a quoted string, and what follows it.
fn read_value(text: &str) -> (String, &str) {
    let Some(inside) = text.strip_prefix('"') else {
        let end = text.find([',', ' ', '\t']).unwrap_or(text.len());
        return (text[..end].to_owned(), &text[end..]);
    };
    let (mut value, mut is_escaped) = (String::new(), false);
    for (at, c) in inside.char_indices() {
        match c {
            '\\' if !is_escaped => is_escaped = true,
            '"' if !is_escaped => return (value, &inside[at + 1..]),
            c => {
                value.push(c);
                is_escaped = false;
            }
        }
    }
    (value, "")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> [Option<String>; 3] {
        let Challenge { resource_metadata, scope, error } = Challenge::read(text).unwrap();
        [resource_metadata, scope, error]
    }

    #[test]
    fn challenges_are_read_as_servers_write_them() {
        let some = |text: &str| Some(text.to_owned());
        let place = "https://mcp.example.com/.well-known/oauth-protected-resource";
        for (text, expected) in [
            ("Bearer", [None, None, None]),
            ("bearer realm=\"x\"", [None, None, None]),
            (&format!("Bearer resource_metadata=\"{place}\""), [some(place), None, None]),
            (
                &format!(
                    "Bearer error=\"invalid_token\", error_description=\"a, b=\\\"c\\\"\", resource_metadata={place}"
                ),
                [some(place), None, some("invalid_token")],
            ),
            (
                "Basic realm=\"a, Bearer scope=b\", BEARER scope=\"files:read files:write\"",
                [None, some("files:read files:write"), None],
            ),
            ("Negotiate abc==, Bearer  scope = \"a\" ,error=b", [None, some("a"), some("b")]),
            ("Bearer scope=a, scope=b, Digest scope=c", [None, some("a"), None]),
            ("Bearer scope=a, Bearer error=b", [None, some("a"), None]),
            ("Bearer scope=\"not closed", [None, some("not closed"), None]),
            ("é;{} Bearer scope=\"é\"", [None, some("é"), None]),
        ] {
            assert_eq!(read(text), expected, "{text}");
        }
        for text in ["", ",", "Basic realm=\"Bearer\"", "resource_metadata=\"x\"", "Digest a=b"] {
            assert_eq!(Challenge::read(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in ".{0,200}") {
            let _ = Challenge::read(&text);
        }

        #[test]
        fn what_is_quoted_comes_back(value in "[ -~]{0,60}", before in "(Basic realm=\"x\", )?") {
            let quoted = value.replace('\\', "\\\\").replace('"', "\\\"");
            let text = format!("{before}Bearer a=\"b\", scope=\"{quoted}\", error=c");
            let read = Challenge::read(&text).unwrap();
            prop_assert_eq!((read.scope.as_deref(), read.error.as_deref()), (Some(&*value), Some("c")));
        }
    }
}
