//! A home that had an API key is not served without one because config.toml was lost or cut off.
//!
//! `{home}/api_key.set` is there while the configuration in force has a key. Without a key in the file, it says that there was
//! one: then the file must say `api_key = ""` itself, which a file that is empty, cut off or lost does not.

use std::io;
use std::path::Path;

use super::{Config, ConfigFile, Error};
use crate::kernel::disk;
use crate::kernel::home::Home;

/// What stands in the marker.
const MARKER_TEXT: &[u8] = b"This home has an api_key. To serve it without one, write api_key = \"\" in config.toml.\n";

/// Checks that a configuration without a key is one on purpose.
///
/// # Errors
/// [`Error::KeyLost`].
pub(crate) fn check(home: &Home, config: &Config) -> Result<(), Error> {
    if config.api_key.is_set() || !home.api_key_marker().exists() || names_key(home) {
        return Ok(());
    }
    Err(Error::KeyLost(home.config_file()))
}

/// Remembers whether the configuration in force has a key.
///
/// # Errors
/// The disk failed.
pub(crate) fn remember(home: &Home, config: &Config) -> io::Result<()> {
    let marker = home.api_key_marker();
    match (config.api_key.is_set(), marker.exists()) {
        (true, false) => disk::replace(&marker, MARKER_TEXT),
        (false, true) => {
            disk::remove_file(&marker)?;
            disk::sync_dir(marker.parent().unwrap_or(Path::new(".")))
        }
        _ => Ok(()),
    }
}

/// Does the file say anything of the key?
fn names_key(home: &Home) -> bool {
    let text = ConfigFile::new(home).text().unwrap_or_default();
    text.parse::<toml::Table>().is_ok_and(|table| table.contains_key("api_key"))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::config::Document as _;

    #[test]
    fn a_lost_key_is_told_from_one_that_was_taken_out() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::new(dir.path());
        let read = |text: &str| {
            fs::write(home.config_file(), text).unwrap();
            let config = Config::load(&home.config_file()).unwrap().config;
            let checked = check(&home, &config).map_err(|error| error.to_string());
            if checked.is_ok() {
                remember(&home, &config).unwrap();
            }
            checked
        };
        read("").unwrap();
        read("api_key = \"k\"\n").unwrap();
        for text in ["", "# api_key = \"k\"\n", "log_level = \"info\"\n"] {
            let said = read(text).unwrap_err();
            assert!(said.contains("api_key = \"\"") && said.contains("init --key"), "{said}");
        }
        read("api_key = \"another\"\n").unwrap();
        read("api_key = \"\"\n").unwrap();
        read("").unwrap();
    }
}
