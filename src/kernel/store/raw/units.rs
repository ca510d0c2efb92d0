//! The readable units of a file that may be damaged: batches of a journal, blocks of a data table.
//!
//! Units follow each other without a gap, and each has a checksum. After damage, the file is searched for the next unit. A
//! value that a client stored may contain what looks like one, so only two runs of units count: the one from the
//! beginning of the file, and the last one. What such a value can imitate ends before the unit that holds the value.

use std::ops::Range;

/// The units of a file.
pub(super) struct Units<U> {
    /// Those from the beginning of the file.
    pub(super) head: Vec<U>,
    /// The damage after them; empty when there is no tail, or when the first unit of the tail is damaged but readable.
    pub(super) gap: Range<usize>,
    /// Those after the damage.
    pub(super) tail: Vec<U>,
    /// Where the last unit ends.
    pub(super) end: usize,
}

/// Finds the units in `length` bytes. `read` reads the unit at an offset and gives it with its end; `resume` does the same
/// after damage and may be more tolerant.
pub(super) fn units<U>(
    length: usize,
    read: impl Fn(usize) -> Option<(U, usize)>,
    resume: impl Fn(usize) -> Option<(U, usize)>,
) -> Units<U> {
    let run = |mut units: Vec<U>, mut at: usize| {
        while let Some((unit, end)) = read(at) {
            units.push(unit);
            at = end;
        }
        (units, at)
    };
    let (head, end) = run(Vec::new(), 0);
    let mut found = Units { head, gap: end..end, tail: Vec::new(), end };
    let mut at = end;
    while at < length {
        let Some((unit, end)) = resume(at) else {
            at += 1;
            continue;
        };
        found.gap.end = at;
        (found.tail, found.end) = run(vec![unit], end);
        at = found.end;
    }
    found
}

/// Reads numbers and slices of a file one after another.
pub(super) struct Cursor<'b> {
    pub(super) bytes: &'b [u8],
    pub(super) at: usize,
}

impl<'b> Cursor<'b> {
    pub(super) fn take(&mut self, length: usize) -> Option<&'b [u8]> {
        let taken = self.bytes.get(self.at..)?.get(..length)?;
        self.at += length;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    pub(super) fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_le_bytes)
    }

    pub(super) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    pub(super) fn u128(&mut self) -> Option<u128> {
        self.array().map(u128::from_le_bytes)
    }
}
