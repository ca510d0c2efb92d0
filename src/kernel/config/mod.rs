//! The machinery of `{home}/config.toml`: read, checked, shown, described, edited and written for the first time.
//!
//! A [`table!`] is a struct each of whose fields is a key, with its default, its text and its rules in one place; a
//! [`Document`] is the table at the top of the file. Parsing, the search for the nearest key, `config show`, the
//! commented file that `init` writes, the JSON Schema, what the API may change ([`Editable`]), what a reload can put
//! in force and the table in `docs/configuration.md` all come from those fields.

mod change;
mod document;
pub mod edit;
mod file;
mod key;
mod merge;
mod problem;
mod reader;
mod reference;
mod schema;
mod secret;
mod table;
mod template;
pub(crate) mod text;
pub(crate) mod tree;

pub use self::change::{ChangeError, Editable};
#[cfg(test)]
pub(crate) use self::document::read_table;
pub use self::document::{Difference, Document, Error, Former, Loaded, toml_of};
pub use self::file::{ConfigFile, Error as FileError};
pub use self::key::{Applies, Field, Key, Kind, Word, Words, Writes, default_of, word};
pub use self::merge::{Merged, merged};
pub(crate) use self::problem::nearest;
pub use self::problem::{Place, Problem, Problems, Warning};
pub use self::reader::{Reader, Slot};
pub use self::reference::KeyLine;
pub use self::secret::{HiddenValues, MASK, Secret};
pub(crate) use self::table::table;
pub use self::table::{Table, keep_named};
