//! Reads rows of the content space only to see whether they can be read: before a whole store is trusted.

use agentsvc_components::compaction::record::SummaryRecord;
use agentsvc_components::memory::record::MemoryRecord;
use agentsvc_components::session::message_record::MessageRecord;
use agentsvc_components::turn::trace::TraceRecord;
use agentsvc_components::usage::record::UsageRecord;

use super::{AuditKey, Error, decode, hex, parse_active_key, parse_audit_key, parse_message_key};
use crate::audit;

/// Can this row of the content space be read by this release? Checkpoints of the audit trail are only told by their
/// keys: whether they are signed is for the vault to say.
///
/// # Errors
/// [`Error`] naming the key.
pub fn check_content(key: &[u8], value: &[u8]) -> Result<(), Error> {
    let unknown = || Error::Key(hex(key));
    match key.first() {
        Some(b'r') => {
            parse_message_key(key).ok_or_else(unknown)?;
            decode::<MessageRecord>(key, value).map(drop)
        }
        Some(b'u') => decode::<SummaryRecord>(key, value).map(drop),
        Some(b'y') => decode::<TraceRecord>(key, value).map(drop),
        Some(b'k') => decode::<MemoryRecord>(key, value).map(drop),
        Some(b'b') if parse_active_key(key).is_some() => Ok(()),
        Some(b'b') => decode::<UsageRecord>(key, value).map(drop),
        Some(b'x' | b'q') => std::str::from_utf8(value)
            .map(drop)
            .map_err(|_| Error::Corrupt { key: hex(key), reason: "not UTF-8".to_owned() }),
        Some(b'z') => match parse_audit_key(key).ok_or_else(unknown)? {
            AuditKey::Entry(_) if audit::decode(value).is_none() => {
                Err(Error::Corrupt { key: hex(key), reason: "no entry of the audit trail".to_owned() })
            }
            AuditKey::Entry(_) | AuditKey::Checkpoint(_) => Ok(()),
        },
        _ => Err(unknown()),
    }
}

#[cfg(test)]
mod tests {
    use agentsvc_components::LogId;

    use super::*;
    use crate::kernel::record::{MessageKey, audit_entry_key, message_key, result_key};

    #[test]
    fn what_cannot_be_read_is_named() {
        let at = MessageKey { log: LogId(1), ordinal: 2, index: 3 };
        check_content(&result_key(at), b"text").unwrap();
        for (key, value) in [
            (message_key(at), b"\x01nonsense".as_slice()),
            (message_key(at)[..5].to_vec(), b""),
            (result_key(at), b"\xff"),
            (audit_entry_key(1), b"short"),
            (b"?".to_vec(), b""),
            (Vec::new(), b""),
        ] {
            let error = check_content(&key, value).unwrap_err().to_string();
            assert!(error.contains(&hex(&key)), "{error}");
        }
    }
}
