//! Signed heads of the audit trail, sent elsewhere: to a file, which a verification compares with, and to syslog.
//!
//! What is sent is only a copy: a failure stops nothing, is counted, and is retried with the newest head.

use std::net::UdpSocket;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use agentsvc_api::http::metrics::MetricsText;
use agentsvc_components::audit::record::AuditCheckpoint;
use agentsvc_systems::kernel::record::hex;

use super::config::{Audit, Syslog};
use super::heads_file::HeadsFile;
use super::vault::Vault;

/// How long a syslog socket may take.
const SYSLOG_WAIT: Duration = Duration::from_secs(1);
/// Facility `authpriv`, severity `notice` (RFC 5424, 6.2.1).
const PRIORITY: u8 = 10 * 8 + 5;

/// A signed head.
pub(super) struct SignedHead {
    /// What is signed.
    pub(super) checkpoint: AuditCheckpoint,
    /// Its stored form.
    pub(super) row: Vec<u8>,
    /// The signature that says that an operator accepted the trail with it.
    pub(super) acceptance: Option<Vec<u8>>,
}

/// Where signed heads are sent.
#[derive(Default)]
pub struct Outside {
    file: Option<HeadsFile>,
    syslog: Option<Syslog>,
    /// Is the file within the home, and so set back with it?
    is_inside: bool,
    sent: AtomicU64,
    failed: AtomicU64,
    is_unsent: AtomicBool,
    is_unread: AtomicBool,
}

impl Outside {
    /// What the configuration of the home `home` names.
    pub fn new(config: &Audit, home: &Path) -> Self {
        let file = config.heads_file.clone();
        let is_inside = file.as_deref().is_some_and(|file| is_within(file, home));
        Self { file: file.map(HeadsFile::new), syslog: config.heads_syslog.clone(), is_inside, ..Self::default() }
    }

    /// Sends a signed head everywhere. False when it is to be tried again.
    pub(super) fn send(&self, head: &SignedHead) -> bool {
        let SignedHead { checkpoint, row, acceptance } = head;
        let acceptance = acceptance.as_deref().map(|signature| format!(" {}", hex(signature))).unwrap_or_default();
        let line = || format!("{} {}{acceptance}\n", checkpoint.at, hex(row));
        let file = self.file.as_ref().map(|file| file.append(line()));
        if let Some(Ok(())) = file {
            self.is_unread.store(false, Ordering::Relaxed);
        }
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
        self.is_unsent.store(!is_sent, Ordering::Relaxed);
        is_sent
    }

    /// The head of the file that the trail is compared with: of the highest entry that `vault` signed since an operator
    /// accepted the trail last. `None` when no file is configured, or has none.
    ///
    /// # Errors
    /// The file cannot be read, or not in time.
    pub(super) fn reference(&self, vault: &Arc<Vault>) -> std::io::Result<Option<AuditCheckpoint>> {
        let Some(file) = &self.file else { return Ok(None) };
        let found = file.highest(vault);
        if let Err(error) = &found {
            tracing::error!(%error, path = %file.path().display(), "audit.heads_file cannot be read");
        }
        self.is_unread.store(!matches!(found, Ok(Some(_))), Ordering::Relaxed);
        found
    }

    /// What is wrong with the copies elsewhere, for the operator.
    pub fn fault(&self) -> Option<&'static str> {
        if self.is_inside {
            return Some("audit.heads_file is in the home, so that it is set back together with it; put it elsewhere");
        }
        if self.is_unsent.load(Ordering::Relaxed) {
            return Some("audit.heads_file or audit.heads_syslog does not have the newest head; see the log");
        }
        let is_unread = self.is_unread.load(Ordering::Relaxed);
        is_unread.then_some("audit.heads_file cannot be read, or has no head of this vault; see the log")
    }

    /// Its counts, for the metrics page.
    pub fn gather(&self, out: &mut MetricsText) {
        let name = "agentsvc_audit_heads_total";
        out.family(name, "Signed heads of the audit log sent elsewhere, by outcome.", "counter");
        out.sample(name, "outcome=\"sent\"", self.sent.load(Ordering::Relaxed));
        out.sample(name, "outcome=\"failed\"", self.failed.load(Ordering::Relaxed));
    }
}

/// Is `file`, which need not be there, in `home`? Links on the way are followed.
fn is_within(file: &Path, home: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let home = real(home);
    real(file).starts_with(&home) || file.parent().is_some_and(|parent| real(parent).starts_with(&home))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_in_the_home_is_a_fault() {
        let (home, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::os::unix::fs::symlink(home.path(), elsewhere.path().join("link")).unwrap();
        for (file, is_inside) in [
            (home.path().join("heads"), true),
            (elsewhere.path().join("link/heads"), true),
            (elsewhere.path().join("heads"), false),
            ("/nowhere/heads".into(), false),
        ] {
            let config = Audit { heads_file: Some(file.clone()), ..Audit::default() };
            let fault = Outside::new(&config, home.path()).fault();
            assert_eq!(fault.is_some_and(|fault| fault.contains("is in the home")), is_inside, "{}", file.display());
        }
    }

    #[test]
    fn a_head_goes_to_syslog_over_udp() {
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        receiver.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let syslog = Syslog::Udp(receiver.local_addr().unwrap());
        let outside = Outside { syslog: Some(syslog), ..Outside::default() };
        let (dir, at) = (tempfile::tempdir().unwrap(), agentsvc_components::Timestamp(1_700_000_000_000));
        let vault = Vault::open(dir.path()).unwrap();
        let checkpoint = AuditCheckpoint { sequence: 7, hash: [1; 32], previous: 0, first: 1, anchor: [0; 32], at };
        let row = vault.sign(&checkpoint);
        assert!(outside.send(&SignedHead { checkpoint, row: row.clone(), acceptance: None }));
        let mut bytes = [0; 2_048];
        let length = receiver.recv(&mut bytes).unwrap();
        let text = std::str::from_utf8(&bytes[..length]).unwrap();
        assert!(text.starts_with("<85>1 2023-11-14T22:13:20.000Z - agentsvc "), "{text}");
        assert!(text.ends_with(&format!("entry=7 hash={} checkpoint={}", hex(&[1; 32]), hex(&row))), "{text}");
    }
}
