//! The whole file: its top level with everything below, read, shown, described and compared.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use toml::de::DeTable;

use super::key::{Applies, Key};
use super::problem::{Found, Problems, Warning};
use super::reader::{Findings, Reader};
use super::reference::{self, KeyLine};
use super::table::Table;
use super::tree::{self, Place};
use super::{edit, schema, template};
use crate::kernel::disk;

/// Why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file is there but cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The text is wrong in one or more places.
    #[error("{0}")]
    Invalid(Problems),
    /// `--listen` asks for what the configuration forbids.
    #[error("{0}")]
    Listen(String),
    /// The file has no key of the API, although there was one.
    #[error(
        "{} sets no `api_key`, but this home had one: the file may be lost or cut off; restore it, run \
        `agentsvc init --key` to make a new key, or write `api_key = \"\"` to need none", .0.display()
    )]
    KeyLost(PathBuf),
}

/// A configuration that passed every check, and what was noticed on the way.
#[derive(Clone, Debug, Default)]
pub struct Loaded<D> {
    /// The effective configuration.
    pub config: D,
    /// What is written but has no effect; shown by `/api/health/detail`.
    pub warnings: Vec<Warning>,
}

impl<D> Loaded<D> {
    fn of(config: D, findings: Findings, text: &str, path: &Path) -> Result<Self, Error> {
        if findings.problems.is_empty() {
            Ok(Self { config, warnings: Warning::locate(text, findings.warnings) })
        } else {
            Err(Error::Invalid(Problems::locate(path, text, findings.problems)))
        }
    }
}

/// See [`Document::FORMER`].
pub type Former = &'static [(&'static str, fn(&str) -> String)];

/// The top level of the file. Every key is optional. Nothing is accepted that has no meaning: an unknown key is a
/// problem, a table of a later release is a [`Warning`].
pub trait Document: Table {
    /// Tables of later releases. Their names are accepted, so that a file written for a later release does not stop
    /// this one, and reported, so that nobody believes they work.
    const RESERVED: &'static [&'static str];

    /// Tables in which other tables stood that are of no use any more: the path of each, and what is said of one by its name.
    /// They are accepted with a [`Warning`].
    const FORMER: Former = &[];

    /// Reads the file at `path`. A missing file is an empty one.
    ///
    /// # Errors
    /// [`Error::Read`] when the system refuses, [`Error::Invalid`] with every problem of the text.
    fn load(path: &Path) -> Result<Loaded<Self>, Error> {
        let bytes = match disk::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            Err(source) => return Err(Error::Read { path: path.to_owned(), source }),
        };
        match String::from_utf8(bytes) {
            Ok(text) => Self::parse(&text, path),
            Err(error) => {
                let valid = error.utf8_error().valid_up_to();
                let text = String::from_utf8_lossy(error.as_bytes());
                let found = Found { at: valid, key: String::new(), message: "the file is not UTF-8 text".to_owned() };
                Err(Error::Invalid(Problems::locate(path, &text, vec![found])))
            }
        }
    }

    /// Checks `text` as if it stood in the file `path`, which only names it in messages.
    ///
    /// # Errors
    /// [`Error::Invalid`] with every problem found. When the text is not TOML, only that is reported: what
    /// follows from a broken line would mislead.
    fn parse(text: &str, path: &Path) -> Result<Loaded<Self>, Error> {
        let (document, syntax) = DeTable::parse_recoverable(text);
        if !syntax.is_empty() {
            let found = syntax.iter().map(|error| Found {
                at: error.span().map_or(0, |span| span.start),
                key: String::new(),
                message: format!("not TOML: {}", error.message()),
            });
            return Err(Error::Invalid(Problems::locate(path, text, found.collect())));
        }
        let (root, reserved) = (Self::KEYS, Self::RESERVED);
        let mut findings = Findings { root, reserved, former: Self::FORMER, ..Findings::default() };
        let config = Self::read(&mut Reader::new(document.get_ref(), String::new(), root, &mut findings));
        Loaded::of(config, findings, text, path)
    }

    /// The text of a first file: every key, commented out, with its default or an example.
    fn template() -> String {
        template::template(Self::KEYS)
    }

    /// The JSON Schema of the whole file (spec 2, GET /api/config/schema). Beside the standard's keywords each key has
    /// `x-takes-effect` (`reload`, `restart` or `never`) and `x-writable`, whether `POST /api/config/set` takes it.
    fn schema() -> Value {
        schema::schema(Self::KEYS, Self::RESERVED)
    }

    /// Every key of the file, in its order; what `agentsvc config keys` prints and `docs/configuration.md` holds.
    fn key_lines() -> Vec<KeyLine> {
        reference::key_lines(Self::KEYS)
    }

    /// The table of `docs/configuration.md`.
    fn key_table() -> String {
        reference::key_table(Self::KEYS)
    }

    /// The keys whose values differ between this configuration and `other`, in the order of their names.
    fn differences(&self, other: &Self) -> Vec<Difference> {
        let (ours, theirs) = (flat(self), flat(other));
        let paths = ours.keys().chain(theirs.keys()).filter(|path| ours.get(*path) != theirs.get(*path)).cloned();
        // These are masked in both.
        let secrets = self.secrets().into_iter().zip(other.secrets()).filter(|(ours, theirs)| ours != theirs);
        let paths = paths.chain(secrets.map(|((path, _), _)| path));
        let mut found: Vec<_> = paths.map(|path| Difference::at(Self::KEYS, &path)).collect();
        found.sort_by(|a, b| a.path.cmp(&b.path));
        found.dedup_by(|a, b| a.path == b.path);
        found
    }

    /// This configuration with the values of `started` for what only a start can change.
    fn until_restart(mut self, started: &Self) -> Self {
        self.keep(started);
        self
    }
}

/// Reads the table `name` of `text`, whatever else is in it.
#[cfg(test)]
pub(crate) fn read_table<T: Table>(name: &str, text: &str) -> Result<Loaded<T>, Error> {
    let document = DeTable::parse(text).unwrap();
    let (mut findings, mut config) = (Findings { root: T::KEYS, ..Findings::default() }, T::default());
    Reader::below(document.get_ref(), String::new(), &mut findings).table(name, &mut config);
    Loaded::of(config, findings, text, Path::new("c"))
}

/// A key whose value differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Its path, such as `world.tick_hz`.
    pub path: String,
    /// When a new value takes effect.
    applies: Applies,
}

impl Difference {
    fn at(root: &'static [Key], path: &[String]) -> Self {
        let applies = match tree::find(root, path) {
            Place::Leaf(Key { applies, .. }) => *applies,
            // A named table that came or went without a key.
            Place::Table | Place::Nothing => Applies::Live,
        };
        Self { path: edit::joined(path), applies }
    }

    /// Takes effect with the next start only.
    pub fn needs_restart(&self) -> bool {
        self.applies == Applies::Restart
    }
}

/// Every value under its path. A list is one value.
fn flat<T: Table>(table: &T) -> BTreeMap<Vec<String>, Value> {
    fn walk(value: Value, path: &mut Vec<String>, out: &mut BTreeMap<Vec<String>, Value>) {
        match value {
            Value::Object(inner) => {
                for (name, value) in inner {
                    path.push(name);
                    walk(value, path, out);
                    path.pop();
                }
            }
            value => drop(out.insert(path.clone(), value)),
        }
    }
    let mut out = BTreeMap::new();
    walk(serde_json::to_value(table).unwrap_or_default(), &mut Vec::new(), &mut out);
    // Null is what is not there.
    out.retain(|_, value| !value.is_null());
    out
}

/// What is shown, as TOML. Null has no form there and is left out.
pub fn toml_of(shown: &Value) -> Result<String, toml::ser::Error> {
    fn without_null(value: &Value) -> Value {
        match value {
            Value::Object(inner) => {
                let kept = inner.iter().filter(|(_, value)| !value.is_null());
                Value::Object(kept.map(|(name, value)| (name.clone(), without_null(value))).collect::<Map<_, _>>())
            }
            other => other.clone(),
        }
    }
    toml::to_string(&without_null(shown))
}
