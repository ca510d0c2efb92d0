//! The configuration: any text is read or refused, and a change that is taken leaves a file that says it.

use std::path::Path;

use agentsvc::config::{ChangeError, Config, Document as _, Editable as _};

use super::feed::parts;

/// `input` is a configuration in TOML and, behind lines `---`, the path of a key and its new value in JSON.
pub fn run(input: &[u8]) {
    agentsvc::install();
    let parts = parts(input, "---");
    let Ok(text) = std::str::from_utf8(parts[0]) else { return };
    let file = Path::new("config.toml");
    let read = Config::parse(text, file);
    let Some(Ok(key)) = parts.get(1).map(|part| std::str::from_utf8(part)) else { return };
    let Ok(path) = Config::path_of(key) else { return };
    let _ = Config::writable(&path);
    let typed = String::from_utf8_lossy(parts.get(2).copied().unwrap_or_default());
    let value = serde_json::from_str(&typed).unwrap_or_else(|_| Config::value_of(&path, &typed));
    match Config::changed(text, &path, &value, file) {
        Ok((after, _)) => {
            let again = Config::parse(&after, file);
            assert!(again.is_ok(), "{after:?} is not read again");
        }
        // A file that was right is not called broken because of what somebody wants to write into it.
        Err(ChangeError::Broken(problems)) => assert!(read.is_err(), "{problems}"),
        Err(_) => {}
    }
}
