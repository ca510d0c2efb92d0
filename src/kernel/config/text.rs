//! Texts that several tables hold: addresses, directories, names of variables.

use std::path::PathBuf;

/// The name of an environment variable, or nothing. The message keeps the value out: it is often a pasted key.
pub(crate) fn variable(text: &str) -> Result<Box<str>, String> {
    let named = !text.starts_with(|first: char| first.is_ascii_digit());
    if named && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
        Ok(text.into())
    } else {
        Err("must be the name of an environment variable, not the key itself".to_owned())
    }
}

/// Is it one of the daemon's own variables, such as the one of the vault's key?
pub(crate) fn is_own_variable(name: &str) -> bool {
    name.starts_with("AGENTSVC_")
}

/// The name of an environment variable that is none of the daemon's.
pub(crate) fn own_variable(text: &str) -> Result<Box<str>, String> {
    if text.is_empty() || is_own_variable(text) {
        return Err("must be the name of an environment variable of your own".to_owned());
    }
    variable(text)
}

/// An absolute path.
pub(crate) fn directory(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    if path.is_absolute() && !text.contains('\0') { Ok(path) } else { Err("must be an absolute path".to_owned()) }
}

/// A base URL as it will be used: without a slash at its end.
pub(crate) fn base_url(text: &str) -> Result<Box<str>, String> {
    base_url_with(text, &[])
}

/// A base URL whose query has no other keys than these; without keys it has none.
pub(crate) fn base_url_with(text: &str, query_keys: &[&str]) -> Result<Box<str>, String> {
    let wrong = || "must be an http or https URL, such as \"https://api.openai.com/v1\"".to_owned();
    let url = reqwest::Url::parse(text).map_err(|_| wrong())?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err(wrong());
    }
    let is_known = |query_key: &str| query_keys.contains(&query_key);
    let has_other = query_keys.is_empty() || url.query_pairs().any(|(query_key, _)| !is_known(&query_key));
    if url.password().is_some() || !url.username().is_empty() || (url.query().is_some() && has_other) {
        return Err("must be without a user, a password or a query; keys belong in `api_key_env`".to_owned());
    }
    Ok(text.trim_end_matches('/').into())
}

#[cfg(test)]
mod tests {
    use super::{base_url, variable};

    #[test]
    fn urls_and_variables_are_checked() {
        for url in ["", "localhost:80", "ftp://x", "http://", "https://u:p@h/", "https://h/?key=1"] {
            assert!(base_url(url).is_err(), "{url}");
        }
        assert!(variable("OPENAI_API_KEY").is_ok() && variable("").is_ok());
        assert!(["1A", "sk-123", "A B"].into_iter().all(|name| variable(name).is_err()));
    }
}
