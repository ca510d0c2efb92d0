//! `[audit]`: the audit trail.

use std::net::SocketAddr;
use std::path::PathBuf;

use serde::{Serialize, Serializer};

use crate::kernel::config::table;
use crate::kernel::config::text::directory;

table! {
    /// `[audit]`. What stays can still be verified.
    pub struct Audit {
        /// Delete audit log entries after this many days, 0 to 36500; 0 keeps them.
        retention_days: u32 => integer(0..=36_500).protected(),
        /// File that each signed head of the audit log is appended to, an absolute path outside the home, best on another
        /// machine's disk. `GET /api/audit/verify` compares with it.
        heads_file: Option<PathBuf> => text(directory).example("/mnt/witness/agentsvc-audit-heads").at_restart(),
        /// Syslog that each signed head of the audit log is sent to (RFC 5424): the path of a socket, or
        /// `udp://<address>:<port>`.
        heads_syslog: Option<Syslog> => text(syslog).example("/dev/log").at_restart(),
    }
}

/// Where syslog listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Syslog {
    /// At a socket of this machine.
    Socket(PathBuf),
    /// At an address.
    Udp(SocketAddr),
}

impl Serialize for Syslog {
    /// As written in the file.
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Socket(path) => to.collect_str(&path.display()),
            Self::Udp(address) => to.collect_str(&format_args!("udp://{address}")),
        }
    }
}

fn syslog(text: &str) -> Result<Syslog, String> {
    let wrong = |_| "must be an absolute path, or udp:// with an IP address and a port".to_owned();
    match text.strip_prefix("udp://") {
        Some(address) => address.parse().map(Syslog::Udp).map_err(|_| wrong(String::new())),
        None => directory(text).map(Syslog::Socket).map_err(wrong),
    }
}

#[cfg(test)]
mod tests {
    use super::{Audit, Syslog};
    use crate::kernel::config::{Error, Loaded, read_table};

    fn parse(text: &str) -> Result<Loaded<Audit>, Error> {
        read_table("audit", text)
    }

    #[test]
    fn retention_is_read_and_checked() {
        assert_eq!(parse("").unwrap().config.retention_days, 0);
        assert_eq!(parse("[audit]\nretention_days = 90\n").unwrap().config.retention_days, 90);
        let error = parse("[audit]\nretention_days = -1\n").unwrap_err().to_string();
        assert!(error.contains("audit.retention_days: must be 0 to 36500"), "{error}");
    }

    #[test]
    fn heads_go_to_absolute_paths_and_addresses() {
        let text = "[audit]\nheads_file = \"/w/heads\"\nheads_syslog = \"udp://192.0.2.1:514\"\n";
        let audit = parse(text).unwrap().config;
        assert_eq!(audit.heads_file.as_deref(), Some(std::path::Path::new("/w/heads")));
        assert_eq!(audit.heads_syslog, Some(Syslog::Udp("192.0.2.1:514".parse().unwrap())));
        assert_eq!(serde_json::to_value(&audit.heads_syslog).unwrap(), "udp://192.0.2.1:514");
        for wrong in ["heads_file = \"heads\"", "heads_syslog = \"udp://host\"", "heads_syslog = \"log\""] {
            let error = parse(&format!("[audit]\n{wrong}\n")).unwrap_err().to_string();
            assert!(error.contains("audit.heads_") && error.contains("absolute path"), "{error}");
        }
    }
}
