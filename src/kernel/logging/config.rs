//! `[log]`: how log lines look on stderr, and how much of them is kept; `log_level`: which there are.

use serde::Serialize;

use crate::kernel::config::{Word, Words, table};

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
    const WORDS: Words<Self> = &[("human", Self::Human), ("json", Self::Json)];
}

table! {
    /// `[log]`.
    pub struct Log {
        /// Format on stderr: `human` or `json`. Log files always contain JSON lines.
        format: Format => choice(Format::WORDS).writable().at_restart(),
        /// Total size of the log files in bytes, 65536 to 1099511627776. The oldest files are deleted.
        max_bytes: u64 = 256 << 20 => integer(1 << 16..=1 << 40).writable().at_restart(),
    }
}

/// The least severe lines that are logged. `RUST_LOG` overrides it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// Nothing.
    Off,
    /// What failed and needs someone.
    Error,
    /// What is wrong but was dealt with.
    Warn,
    /// What happens.
    #[default]
    Info,
    /// What helps to find a fault.
    Debug,
    /// Everything.
    Trace,
}

impl Word for LogLevel {
    const WORDS: Words<Self> = &[
        ("off", Self::Off),
        ("error", Self::Error),
        ("warn", Self::Warn),
        ("info", Self::Info),
        ("debug", Self::Debug),
        ("trace", Self::Trace),
    ];
}
