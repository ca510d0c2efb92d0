//! An output of any length in bounded memory: its beginning and its end, the middle cut out.

use std::collections::VecDeque;

use tokio::io::{AsyncRead, AsyncReadExt};

/// Bytes read at once.
const READ_BYTES: usize = 16 << 10;

/// What was kept of an output.
#[derive(Debug)]
pub(super) struct Clip {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    /// Bytes that each of the two may hold.
    half: usize,
    total: u64,
}

impl Clip {
    /// Keeps at most `bytes_max` bytes.
    pub(super) fn new(bytes_max: usize) -> Self {
        Self { head: Vec::new(), tail: VecDeque::new(), half: (bytes_max / 2).max(1), total: 0 }
    }

    /// Takes everything that comes, until it ends or breaks.
    pub(super) async fn fill(&mut self, from: Option<impl AsyncRead + Unpin>) {
        let Some(mut from) = from else { return };
        let mut buffer = vec![0; READ_BYTES];
        while let Ok(count) = from.read(&mut buffer).await {
            if count == 0 {
                return;
            }
            self.push(&buffer[..count]);
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let (first, rest) = bytes.split_at(bytes.len().min(self.half - self.head.len()));
        self.head.extend_from_slice(first);
        self.tail.extend(rest);
        let over = self.tail.len().saturating_sub(self.half);
        self.tail.drain(..over);
    }

    /// The text; what is not UTF-8 is replaced, and a cut says how much is missing.
    pub(super) fn into_text(self) -> String {
        let kept = self.head.len() + self.tail.len();
        let cut = self.total - kept as u64;
        let (mut head, tail) = (self.head, Vec::from(self.tail));
        if cut == 0 {
            // One text: a character may lie on the seam.
            head.extend(tail);
            return String::from_utf8_lossy(&head).into_owned();
        }
        let (head, tail) = (String::from_utf8_lossy(&head), String::from_utf8_lossy(&tail));
        format!("{head}\n[{cut} bytes cut out]\n{tail}")
    }
}

#[cfg(test)]
mod tests {
    use super::Clip;

    fn kept(max: usize, pieces: &[&[u8]]) -> String {
        let mut clip = Clip::new(max);
        pieces.iter().for_each(|piece| clip.push(piece));
        clip.into_text()
    }

    #[test]
    fn the_middle_is_cut() {
        assert_eq!(kept(8, &[]), "");
        assert_eq!(kept(8, &[b"abcd", b"efgh"]), "abcdefgh");
        assert_eq!(kept(8, &[b"abcdefghi"]), "abcd\n[1 bytes cut out]\nfghi");
        assert_eq!(kept(8, &[b"ab", b"c", b"defghijk", b"lm"]), "abcd\n[5 bytes cut out]\njklm");
        assert_eq!(kept(8, &["xyzä5678".as_bytes()]), "xyz\u{fffd}\n[1 bytes cut out]\n5678");
        assert_eq!(kept(8, &["xyzä567".as_bytes()]), "xyzä567");
        let many = kept(1_000, &[&[b'x'; 100_000]]);
        assert!(many.len() < 1_100 && many.contains("99000 bytes cut out"));
    }
}
