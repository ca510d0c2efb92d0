//! `{home}/secrets.env`: values of adapters that are not shown. `KEY=VALUE` lines; `<CHANNEL>__KEY` is for one channel.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;

use super::config::{check_variable, prefix};
use crate::kernel::config::Secret;
use crate::kernel::disk;

/// Bytes of the file that are read.
const FILE_BYTES_MAX: usize = 1 << 20;
/// What stands between the prefix of a channel and a key.
const OF: &str = "__";

/// The file.
#[derive(Debug)]
pub(crate) struct SecretsFile {
    path: PathBuf,
    /// One change at a time.
    writing: Mutex<()>,
}

/// Values with their keys.
type Values<'a> = Vec<(&'a str, &'a Secret)>;

/// Its values.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Secrets(BTreeMap<String, Secret>);

impl Secrets {
    /// Reads the text of the file. A line that has no form is left out.
    pub(crate) fn parse(text: &str) -> Self {
        let values = text.lines().filter_map(|line| {
            let line = line.trim();
            let (key, value) = line.split_once('=').filter(|_| !line.starts_with('#'))?;
            Some((key.trim().to_owned(), Secret::new(unquoted(value.trim()))))
        });
        Self(values.filter(|(key, _)| !key.is_empty()).collect())
    }

    /// The values that are no channel's own, and those that are this channel's. None is the key of the vault.
    pub(crate) fn of(&self, name: &str) -> (Values<'_>, Values<'_>) {
        let start = format!("{}{OF}", prefix(name));
        let may_be_passed = |key: &str| check_variable(key).is_ok();
        let common = self.0.iter().filter(|(key, _)| !key.contains(OF) && may_be_passed(key));
        let own = self.0.iter().filter_map(|(key, value)| {
            let key = key.strip_prefix(&start).filter(|key| !key.contains(OF) && may_be_passed(key))?;
            Some((key, value))
        });
        (common.map(|(key, value)| (key.as_str(), value)).collect(), own.collect())
    }

    /// Is the key another channel's own?
    pub(crate) fn is_anothers(&self, name: &str, key: &str) -> bool {
        let own = format!("{}{OF}{key}", prefix(name));
        let end = format!("{OF}{key}");
        self.0.keys().any(|found| *found != own && found.ends_with(&end))
    }
}

/// The text without one matching pair of quotes.
fn unquoted(text: &str) -> &str {
    let inner = |quote: char| text.strip_prefix(quote)?.strip_suffix(quote);
    inner('"').or_else(|| inner('\'')).unwrap_or(text)
}

/// Can the file hold the value, so that it reads the same?
///
/// # Errors
/// What the value must be, without it.
pub(crate) fn check(value: &str) -> Result<(), String> {
    if value.contains(['\n', '\r', '\0']) || value.trim() != value || value.starts_with(['"', '\'']) {
        Err("must be one line without blanks at its ends and without a quote at its start".to_owned())
    } else {
        Ok(())
    }
}

impl SecretsFile {
    /// The file in this home; it need not exist.
    pub(crate) fn new(home: &Path) -> Self {
        Self { path: home.join("secrets.env"), writing: Mutex::default() }
    }

    /// Reads it. Blocks on the disk.
    ///
    /// # Errors
    /// The file is there and cannot be read, or is too large.
    pub(crate) fn read(&self) -> io::Result<Secrets> {
        Ok(Secrets::parse(&self.text()?))
    }

    fn text(&self) -> io::Result<String> {
        let text = disk::there(disk::read_text(&self.path))?.unwrap_or_default();
        if text.len() > FILE_BYTES_MAX {
            return Err(io::Error::other(format!("secrets.env has more than {FILE_BYTES_MAX} bytes")));
        }
        Ok(text)
    }

    /// Sets a channel's own values; `None` removes one. Other lines stay as they are. Blocks on the disk.
    ///
    /// # Errors
    /// A value that the file cannot hold, or what the disk says; nothing changes then.
    pub(crate) fn change(&self, name: &str, values: &[(String, Option<String>)]) -> io::Result<()> {
        for value in values.iter().filter_map(|(_, value)| value.as_ref()) {
            check(value).map_err(io::Error::other)?;
        }
        let _one_by_one = self.writing.lock();
        let before = self.text()?;
        let mut lines: Vec<String> = before.lines().map(str::to_owned).collect();
        for (key, value) in values {
            let key = format!("{}{OF}{key}", prefix(name));
            lines.retain(|line| line.split_once('=').is_none_or(|(found, _)| found.trim() != key));
            lines.extend(value.as_ref().map(|value| format!("{key}={value}")));
        }
        self.write(&lines)
    }

    /// Removes all values that are a channel's own. Blocks on the disk.
    ///
    /// # Errors
    /// What the disk says.
    pub(crate) fn forget(&self, name: &str) -> io::Result<()> {
        let _one_by_one = self.writing.lock();
        let (before, start) = (self.text()?, format!("{}{OF}", prefix(name)));
        let lines: Vec<String> =
            before.lines().filter(|line| !line.trim_start().starts_with(&start)).map(str::to_owned).collect();
        if lines.len() == before.lines().count() { Ok(()) } else { self.write(&lines) }
    }

    /// The files that this writes are private.
    fn write(&self, lines: &[String]) -> io::Result<()> {
        let text: String = lines.iter().flat_map(|line| [line, "\n"]).collect();
        disk::replace(&self.path, text.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn pairs(found: &[(&str, &Secret)]) -> Vec<(String, String)> {
        found.iter().map(|(key, value)| ((*key).to_owned(), value.expose().to_owned())).collect()
    }

    #[test]
    fn the_lines_of_the_format_are_read() {
        let text = "# c\nA=1\n B = ' x ' \nC=\"q\"\nD=\"q'\nnone\n=x\nBOT_1__A=own\nBOT_1__=x\nOTHER__A=no\nE=a=b\n";
        let secrets = Secrets::parse(text);
        let (common, own) = secrets.of("bot-1");
        let want = [("A", "1"), ("B", " x "), ("C", "q"), ("D", "\"q'"), ("E", "a=b")];
        assert_eq!(pairs(&common), want.map(|(key, value)| (key.to_owned(), value.to_owned())));
        assert_eq!(pairs(&own), [("A".to_owned(), "own".to_owned())]);
    }

    #[test]
    fn what_is_written_reads_the_same_and_the_rest_stays() {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join("secrets.env"), "# mine\nX=1\nBOT__T=old\n").unwrap();
        let file = SecretsFile::new(home.path());
        let set = |value: &str| file.change("bot", &[("T".to_owned(), Some(value.to_owned()))]);
        for wrong in ["a\nb", " a", "a ", "\"a", "'a", "a\0"] {
            assert!(set(wrong).is_err(), "{wrong:?}");
        }
        set("a=b \"c\" #d").unwrap();
        assert_eq!(pairs(&file.read().unwrap().of("bot").1), [("T".to_owned(), "a=b \"c\" #d".to_owned())]);
        let path = home.path().join("secrets.env");
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        file.change("bot", &[("T".to_owned(), None), ("U".to_owned(), Some("u".to_owned()))]).unwrap();
        file.forget("bot").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "# mine\nX=1\n");
    }
}
