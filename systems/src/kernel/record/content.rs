//! Reads rows of the content space only to see whether they can be read: before a whole store is trusted.

use std::sync::LazyLock;

use super::{Error, decode, hex, unknown};

/// Tells whether a row, of this key and value, can be read.
pub type CheckRow = fn(&[u8], &[u8]) -> Result<(), Error>;

/// A kind of rows of the content space: the byte that its keys begin with, and what tells whether a row can be read.
pub type ContentKind = (u8, CheckRow);

/// The kinds of all domains, by the byte that their keys begin with.
static CHECKS: LazyLock<[Option<CheckRow>; 256]> = LazyLock::new(|| {
    let mut checks = [None; 256];
    for (byte, check) in crate::kernel::domain::all().iter().flat_map(|domain| domain.content) {
        checks[usize::from(*byte)] = Some(*check);
    }
    checks
});

/// Can this row of the content space be read by this release?
///
/// # Errors
/// [`Error`] naming the key.
pub(crate) fn check_content(key: &[u8], value: &[u8]) -> Result<(), Error> {
    let check = key.first().and_then(|byte| CHECKS[usize::from(*byte)]).ok_or_else(|| unknown(key))?;
    check(key, value)
}

/// Rows that are records of one type.
pub(crate) fn is_record<T: serde::de::DeserializeOwned>(key: &[u8], value: &[u8]) -> Result<(), Error> {
    decode::<T>(key, value).map(drop)
}

/// Rows that are texts.
pub(crate) fn is_text(key: &[u8], value: &[u8]) -> Result<(), Error> {
    let not_text = || Error::Corrupt { key: hex(key), reason: "not UTF-8".to_owned() };
    std::str::from_utf8(value).map(drop).map_err(|_| not_text())
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
