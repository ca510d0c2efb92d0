//! Reads rows of the content space only to see whether they can be read: before a whole store is trusted.

use super::{Error, decode, hex, unknown};

/// A kind of rows of the content space: the byte that its keys begin with, and what tells whether a row can be read.
pub type ContentKind = (u8, fn(&[u8], &[u8]) -> Result<(), Error>);

/// Can this row of the content space be read by this release?
///
/// # Errors
/// [`Error`] naming the key.
pub fn check_content(key: &[u8], value: &[u8]) -> Result<(), Error> {
    let mut kinds = crate::kernel::domain::all().iter().flat_map(|domain| domain.content);
    let kind = kinds.find(|(byte, _)| key.first() == Some(byte)).ok_or_else(|| unknown(key))?;
    (kind.1)(key, value)
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
