//! The bytes of a written step: whole numbers in as few bytes as they need, everything else behind its length.

use agentsvc_components::Timestamp;

/// Why written inputs cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// The bytes end too early.
    #[error("it is truncated")]
    Short,
    /// A mark means nothing here.
    #[error("unknown {what} {found}")]
    Unknown {
        /// What was expected.
        what: &'static str,
        /// What was found.
        found: u64,
    },
    /// A part cannot be decoded.
    #[error("{what} cannot be read: {reason}")]
    Part {
        /// Which part.
        what: String,
        /// What the decoder said.
        reason: String,
    },
}

/// Adds a number, seven bits a byte, the low ones first.
pub fn put_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Adds a number that may be negative; small ones of either sign are short.
pub(crate) fn put_signed(out: &mut Vec<u8>, number: i64) {
    put_number(out, ((number << 1) ^ (number >> 63)) as u64);
}

/// Adds bytes behind their length.
pub fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_number(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Adds what `write` writes behind its length of four bytes, so that it is written only once.
pub(crate) fn put_written(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let at = out.len();
    out.extend_from_slice(&[0; 4]);
    write(out);
    let length = u32::try_from(out.len() - at - 4).expect("an input is far shorter than four gigabytes");
    out[at..at + 4].copy_from_slice(&length.to_le_bytes());
}

/// Reads what the functions above wrote.
pub struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// One byte.
    ///
    /// # Errors
    /// [`Malformed`]: it is not what was written.
    pub fn byte(&mut self) -> Result<u8, Malformed> {
        let (first, rest) = self.0.split_first().ok_or(Malformed::Short)?;
        self.0 = rest;
        Ok(*first)
    }

    /// A number of [`put_number`].
    ///
    /// # Errors
    /// [`Malformed`]: it is not what was written.
    pub fn number(&mut self) -> Result<u64, Malformed> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(Malformed::Unknown { what: "number of more than 64 bits such as", found: number })
    }

    pub(crate) fn signed(&mut self) -> Result<i64, Malformed> {
        let number = self.number()?;
        Ok((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    pub(crate) fn time(&mut self) -> Result<Timestamp, Malformed> {
        Ok(Timestamp(self.signed()?))
    }

    /// So many bytes.
    ///
    /// # Errors
    /// [`Malformed`]: it is not what was written.
    pub fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(Malformed::Short)?;
        self.0 = rest;
        Ok(taken)
    }

    /// Bytes of [`put_bytes`].
    ///
    /// # Errors
    /// [`Malformed`]: it is not what was written.
    pub fn bytes(&mut self) -> Result<&'a [u8], Malformed> {
        let count = self.number()?;
        self.take(usize::try_from(count).map_err(|_| Malformed::Short)?)
    }

    pub(crate) fn eight(&mut self) -> Result<u64, Malformed> {
        let bytes = self.take(8)?;
        Ok(u64::from_le_bytes(bytes.try_into().map_err(|_| Malformed::Short)?))
    }

    pub(crate) fn written(&mut self) -> Result<&'a [u8], Malformed> {
        let length = self.take(4)?;
        let length = u32::from_le_bytes(length.try_into().map_err(|_| Malformed::Short)?);
        self.take(length as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back() {
        for number in [0, 1, -1, 63, 64, -64, -65, 300, i64::MAX, i64::MIN] {
            let mut bytes = Vec::new();
            put_signed(&mut bytes, number);
            put_number(&mut bytes, number as u64);
            put_written(&mut bytes, |out| put_bytes(out, b"xyz"));
            let mut reader = Reader(&bytes);
            assert_eq!(reader.signed(), Ok(number));
            assert_eq!(reader.number(), Ok(number as u64));
            assert_eq!(reader.written(), Ok(b"\x03xyz".as_slice()));
            assert!(reader.is_empty());
        }
    }

    #[test]
    fn what_is_cut_off_or_too_long_is_an_error() {
        assert_eq!(Reader(&[]).number(), Err(Malformed::Short));
        assert_eq!(Reader(&[5, 1]).bytes(), Err(Malformed::Short));
        assert_eq!(Reader(&[9, 0, 0, 0, 1]).written(), Err(Malformed::Short));
        assert!(matches!(Reader(&[0xff; 12]).number(), Err(Malformed::Unknown { .. })));
    }
}
