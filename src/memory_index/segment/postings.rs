//! Postings: which entries have a term, and how often. Each is the distance from the entry before, seven bits a byte, doubled;
//! odd ones have the number of occurrences, 2 to 255, in the byte behind.

/// Adds a posting behind one of the entry `before`; `None` for the first.
pub(crate) fn push(bytes: &mut Vec<u8>, before: Option<u32>, doc: u32, times: u8) {
    let distance = before.map_or(u64::from(doc), |before| u64::from(doc - before) - 1);
    let mut number = distance << 1 | u64::from(times > 1);
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
    if times > 1 {
        bytes.push(times);
    }
}

/// Reads postings: the entry's number and the occurrences. Ends early where the bytes make no sense.
#[derive(Clone, Debug)]
pub(crate) struct Postings<'b> {
    bytes: &'b [u8],
    /// The least number that the next entry can have.
    next: u64,
}

impl<'b> Postings<'b> {
    /// Those in `bytes`.
    pub(crate) const fn new(bytes: &'b [u8]) -> Self {
        Self { bytes, next: 0 }
    }

    fn number(&mut self) -> Option<u64> {
        let (mut number, mut shift) = (0_u64, 0);
        loop {
            let (byte, rest) = self.bytes.split_first()?;
            self.bytes = rest;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
            shift += 7;
            if shift > 35 {
                return None;
            }
        }
    }
}

impl Iterator for Postings<'_> {
    type Item = (u32, u8);

    fn next(&mut self) -> Option<(u32, u8)> {
        let number = self.number()?;
        let doc = self.next + (number >> 1);
        let times = if number & 1 == 0 {
            1
        } else {
            let (times, rest) = self.bytes.split_first()?;
            self.bytes = rest;
            *times
        };
        self.next = doc + 1;
        Some((u32::try_from(doc).ok()?, times))
    }
}
