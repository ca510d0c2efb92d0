//! `[log]`: how log lines look on stderr, and how much of them is kept; `log_level`: which there are.

use serde::Serialize;

use crate::kernel::config::{Word, table};

agentsvc_components::enum_words! {
    /// How log lines look on stderr. The files under `logs/` are always JSON lines.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, clap::ValueEnum)]
    #[serde(rename_all = "lowercase")]
    pub enum Format [Word] {
        /// For people.
        #[default]
        Human = "human",
        /// One JSON object per line, for programs.
        Json = "json",
    }
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

agentsvc_components::enum_words! {
    /// The least severe lines that are logged. `RUST_LOG` overrides it.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
    #[serde(rename_all = "lowercase")]
    pub enum LogLevel [Word] {
        /// Nothing.
        Off = "off",
        /// What failed and needs someone.
        Error = "error",
        /// What is wrong but was dealt with.
        Warn = "warn",
        /// What happens.
        #[default]
        Info = "info",
        /// What helps to find a fault.
        Debug = "debug",
        /// Everything.
        Trace = "trace",
    }
}
