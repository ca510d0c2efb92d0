//! Signed heads of the audit trail, sent elsewhere: to a file, which a verification compares with, and to syslog.
//!
//! A line of the file is the time of the signature, a space and the signed checkpoint in hex. What is sent is only a copy: a
//! failure stops nothing, is counted, and is retried with the newest head.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::net::UdpSocket;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use agentsvc_api::http::metrics::MetricsText;
use agentsvc_components::audit::record::AuditCheckpoint;
use agentsvc_components::kernel::limit;
use agentsvc_systems::kernel::record::hex;

use super::config::{Audit, Syslog};
use super::vault::unhex;

/// Bytes at the end of the file that are read: more than one line.
const TAIL_BYTES: u64 = 4 << 10;
/// How long a syslog socket may take.
const SYSLOG_WAIT: Duration = Duration::from_secs(1);
/// Facility `authpriv`, severity `notice` (RFC 5424, 6.2.1).
const PRIORITY: u8 = 10 * 8 + 5;

/// Where signed heads are sent.
#[derive(Default)]
pub struct Outside {
    file: Option<PathBuf>,
    syslog: Option<Syslog>,
    sent: AtomicU64,
    failed: AtomicU64,
    is_failing: AtomicBool,
}

impl Outside {
    /// What the configuration names.
    pub fn new(config: &Audit) -> Self {
        Self { file: config.heads_file.clone(), syslog: config.heads_syslog.clone(), ..Self::default() }
    }

    /// Sends a signed head everywhere. False when it is to be tried again.
    pub fn send(&self, checkpoint: &AuditCheckpoint, row: &[u8]) -> bool {
        let file = self.file.as_deref().map(|path| append(path, &format!("{} {}\n", checkpoint.at, hex(row))));
        let syslog = self.syslog.as_ref().map(|syslog| tell(syslog, &message(checkpoint, row)));
        let mut is_sent = true;
        for (key, sent) in [("audit.heads_file", file), ("audit.heads_syslog", syslog)] {
            match sent {
                Some(Ok(())) => drop(self.sent.fetch_add(1, Ordering::Relaxed)),
                Some(Err(error)) => {
                    is_sent = false;
                    self.failed.fetch_add(1, Ordering::Relaxed);
                    tracing::error!(%error, key, "a signed head of the audit log could not be sent");
                }
                None => {}
            }
        }
        self.is_failing.store(!is_sent, Ordering::Relaxed);
        is_sent
    }

    /// The newest head of the file whose signature `parse` accepts; `None` when no file is configured, or has none.
    pub fn newest(&self, parse: impl Fn(&[u8]) -> Option<AuditCheckpoint>) -> Option<AuditCheckpoint> {
        let path = self.file.as_deref()?;
        let found = match tail(path) {
            Ok(text) => text.lines().rev().find_map(|line| parse(&unhex(line.split_once(' ')?.1)?)),
            Err(error) => {
                tracing::error!(%error, path = %path.display(), "audit.heads_file cannot be read");
                None
            }
        };
        if found.is_none() {
            self.is_failing.store(true, Ordering::Relaxed);
        }
        found
    }

    /// Was the last head not sent, or is the file without one?
    pub fn is_failing(&self) -> bool {
        self.is_failing.load(Ordering::Relaxed)
    }

    /// Its counts, for the metrics page.
    pub fn gather(&self, out: &mut MetricsText) {
        let name = "agentsvc_audit_heads_total";
        out.family(name, "Signed heads of the audit log sent elsewhere, by outcome.", "counter");
        out.sample(name, "outcome=\"sent\"", self.sent.load(Ordering::Relaxed));
        out.sample(name, "outcome=\"failed\"", self.failed.load(Ordering::Relaxed));
    }
}

/// Appends a line and waits until it is on the disk. A line that a crash has cut off is ended first.
fn append(path: &Path, line: &str) -> std::io::Result<()> {
    let mut file = OpenOptions::new().create(true).append(true).read(true).mode(0o600).open(path)?;
    let length = file.metadata()?.len();
    if length + line.len() as u64 > limit::AUDIT_HEADS_BYTES_MAX {
        let most = limit::AUDIT_HEADS_BYTES_MAX;
        return Err(std::io::Error::other(format!("the file has {most} bytes; move it away and keep it")));
    }
    let mut last = [b'\n'];
    if length > 0 {
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)?;
    }
    let end = if last == *b"\n" { "" } else { "\n" };
    file.write_all(format!("{end}{line}").as_bytes())?;
    file.sync_all()
}

/// The end of the file; nothing of one that is not there.
fn tail(path: &Path) -> std::io::Result<String> {
    let mut file = match std::fs::File::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(String::new()),
        opened => opened?,
    };
    let from = file.metadata()?.len().saturating_sub(TAIL_BYTES);
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.take(TAIL_BYTES).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// A message of syslog (RFC 5424). The host is left to the one that receives it.
fn message(checkpoint: &AuditCheckpoint, row: &[u8]) -> String {
    let AuditCheckpoint { at, sequence, hash, .. } = checkpoint;
    let (process, hash, row) = (std::process::id(), hex(hash), hex(row));
    format!("<{PRIORITY}>1 {at} - agentsvc {process} audit-head - entry={sequence} hash={hash} checkpoint={row}")
}

fn tell(syslog: &Syslog, message: &str) -> std::io::Result<()> {
    let sent = match syslog {
        Syslog::Socket(path) => {
            let socket = UnixDatagram::unbound()?;
            socket.set_write_timeout(Some(SYSLOG_WAIT))?;
            socket.send_to(message.as_bytes(), path)?
        }
        Syslog::Udp(address) => {
            let local = if address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
            UdpSocket::bind(local)?.send_to(message.as_bytes(), *address)?
        }
    };
    if sent == message.len() { Ok(()) } else { Err(std::io::Error::other("the message was cut off")) }
}
