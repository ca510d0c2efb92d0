//! `[log]`: how log lines look on stderr.

use serde::Serialize;

use super::key::{Key, Table, Word};
use super::reader::Reader;

/// How log lines look on stderr. The files under `logs/` are always JSON lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// For people.
    #[default]
    Human,
    /// One JSON object per line, for programs.
    Json,
}

impl Word for Format {
    const WORDS: &'static [(&'static str, Self)] = &[("human", Self::Human), ("json", Self::Json)];
}

/// `[log]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Log {
    /// How lines look on stderr.
    pub format: Format,
}

impl Table for Log {
    const KEYS: &'static [Key] = &[Key::choice::<Format>(
        "format",
        "\"human\"",
        "Log lines on stderr: `human` or `json`. The files are always JSON lines.",
    )
    .writable()
    .at_restart()];

    fn read(reader: &mut Reader<'_, '_>) -> Self {
        Self { format: reader.choice("format").unwrap_or_default() }
    }
}
