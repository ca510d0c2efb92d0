//! Bytes of a file as they travel: an array of numbers. Bounded, because each byte takes up to four on the wire.

use std::fmt;

use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Bytes of one file that an adapter may send inline, or be sent.
pub(crate) const FILE_BYTES_MAX: usize = 16 << 20;
/// Bytes for which memory is taken before they have come: the sender's word for the length is not believed.
const TAKEN_AHEAD: usize = 64 << 10;

/// The bytes of a file.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct FileBytes(pub(crate) Vec<u8>);

impl fmt::Debug for FileBytes {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{} bytes", self.0.len())
    }
}

impl Serialize for FileBytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(&self.0)
    }
}

impl<'de> Deserialize<'de> for FileBytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(Numbers)
    }
}

struct Numbers;

impl<'de> Visitor<'de> for Numbers {
    type Value = FileBytes;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "an array of at most {FILE_BYTES_MAX} numbers from 0 to 255")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut numbers: A) -> Result<FileBytes, A::Error> {
        let mut bytes = Vec::with_capacity(numbers.size_hint().unwrap_or_default().min(TAKEN_AHEAD));
        while let Some(byte) = numbers.next_element::<u8>()? {
            if bytes.len() == FILE_BYTES_MAX {
                return Err(serde::de::Error::invalid_length(bytes.len() + 1, &self));
            }
            bytes.push(byte);
        }
        Ok(FileBytes(bytes))
    }
}
