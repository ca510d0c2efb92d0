//! Bodies: unpacked while they arrive, never beyond a limit, and read as text.

use std::io::{self, Write};

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};
use flate2::write::MultiGzDecoder;

use super::Error;

/// Bytes at the start of a page in which it may name its own encoding.
const DECLARATION_BYTES: usize = 1_024;

/// Takes the pieces of a body; keeps at most `max` bytes of it after unpacking, however small the pieces were.
pub(super) enum Unpack {
    /// As it came.
    Plain(Kept),
    /// `Content-Encoding: gzip`.
    Gzip(Box<MultiGzDecoder<Kept>>),
}

/// The bytes that are kept.
pub(super) struct Kept {
    bytes: Vec<u8>,
    max: usize,
    full: bool,
}

impl Write for Kept {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        let room = self.max - self.bytes.len();
        self.bytes.extend_from_slice(&piece[..piece.len().min(room)]);
        if piece.len() > room {
            self.full = true;
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Unpack {
    /// For a body with this `Content-Encoding`.
    ///
    /// # Errors
    /// [`Error::Packed`] for one that was never asked for.
    pub(super) fn new(encoding: &str, max: usize) -> Result<Self, Error> {
        let kept = Kept { bytes: Vec::new(), max, full: false };
        match encoding.trim().to_ascii_lowercase().as_str() {
            "" | "identity" => Ok(Self::Plain(kept)),
            "gzip" | "x-gzip" => Ok(Self::Gzip(Box::new(MultiGzDecoder::new(kept)))),
            other => Err(Error::Packed(format!("it has the unsupported content encoding {other:?}"))),
        }
    }

    /// Takes the next piece. `false`: the limit is reached, the rest is not wanted.
    pub(super) fn push(&mut self, piece: &[u8]) -> Result<bool, Error> {
        let (written, kept) = match self {
            Self::Plain(kept) => (kept.write_all(piece), kept),
            Self::Gzip(unpack) => (unpack.write_all(piece), unpack.get_mut()),
        };
        match written {
            Ok(()) => Ok(true),
            Err(_) if kept.full => Ok(false),
            Err(error) => Err(Error::Packed(error.to_string())),
        }
    }

    /// Bytes that are kept so far.
    pub(super) fn kept(&self) -> usize {
        match self {
            Self::Plain(kept) => kept.bytes.len(),
            Self::Gzip(unpack) => unpack.get_ref().bytes.len(),
        }
    }

    /// What was kept, and whether there was more.
    pub(super) fn finish(self) -> Result<(Vec<u8>, bool), Error> {
        let kept = match self {
            Self::Plain(kept) => kept,
            Self::Gzip(mut unpack) => match unpack.try_finish() {
                // `finish` gives the bytes back; on a full one it would only fail again.
                Ok(()) => unpack.finish().map_err(|error| Error::Packed(error.to_string()))?,
                Err(_) if unpack.get_ref().full => {
                    let kept = unpack.get_mut();
                    Kept { bytes: std::mem::take(&mut kept.bytes), max: kept.max, full: true }
                }
                Err(error) => return Err(Error::Packed(error.to_string())),
            },
        };
        Ok((kept.bytes, kept.full))
    }
}

/// The bytes as text. The encoding is, in this order: what a byte order mark says, the `charset` of the content type,
/// what the page says about itself, UTF-8 when it is UTF-8, else windows-1252 as browsers do.
pub(super) fn text(bytes: &[u8], content_type: &str, cut: bool) -> String {
    let named = charset(content_type).or_else(|| declared(bytes));
    let encoding = match named {
        Some(encoding) => encoding,
        None if is_utf8(bytes, cut) => UTF_8,
        None => WINDOWS_1252,
    };
    let (text, _, _) = encoding.decode(bytes);
    text.into_owned()
}

/// True for text, false for what only pretends: text holds no zero bytes, unless two or four bytes make a character.
pub(super) fn looks_like_text(bytes: &[u8], content_type: &str) -> bool {
    let wide = |encoding: &'static Encoding| !encoding.is_ascii_compatible();
    let marked = Encoding::for_bom(bytes).is_some_and(|(encoding, _)| wide(encoding));
    marked || charset(content_type).is_some_and(wide) || !bytes[..bytes.len().min(4_096)].contains(&0)
}

fn charset(content_type: &str) -> Option<&'static Encoding> {
    let parameters = content_type.split(';').skip(1).filter_map(|parameter| parameter.split_once('='));
    let mut named = parameters.filter(|(name, _)| name.trim().eq_ignore_ascii_case("charset"));
    named.find_map(|(_, value)| Encoding::for_label(value.trim().trim_matches(['"', '\'']).as_bytes()))
}

/// `<meta charset="...">`, `<meta ... content="...; charset=...">` and `<?xml encoding="..."?>`. What is read as ASCII
/// cannot be UTF-16, whatever it says.
fn declared(bytes: &[u8]) -> Option<&'static Encoding> {
    let start = String::from_utf8_lossy(&bytes[..bytes.len().min(DECLARATION_BYTES)]).to_ascii_lowercase();
    let is_xml = start.trim_start().starts_with("<?xml");
    let (tag, word) = if is_xml { ("<?xml", "encoding") } else { ("<meta", "charset") };
    let label = start.split(tag).skip(1).find_map(|rest| {
        let rest = rest.split('>').next()?;
        let (_, value) = rest.split_once(word)?;
        let value = value.trim_start().strip_prefix('=')?.trim_start().trim_start_matches(['"', '\'']);
        value.split(['"', '\'', ';', ' ', '/']).next().map(str::to_owned)
    })?;
    let encoding = Encoding::for_label(label.as_bytes())?;
    Some(if encoding.is_ascii_compatible() { encoding } else { UTF_8 })
}

/// UTF-8, or, where the end is missing, UTF-8 up to its last character.
fn is_utf8(bytes: &[u8], cut: bool) -> bool {
    match std::str::from_utf8(bytes) {
        Ok(_) => true,
        Err(error) => cut && error.error_len().is_none(),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::{Unpack, looks_like_text, text};

    fn packed(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn unpack(encoding: &str, max: usize, bytes: &[u8]) -> Result<(Vec<u8>, bool), String> {
        let mut unpack = Unpack::new(encoding, max).map_err(|error| error.to_string())?;
        for piece in bytes.chunks(100) {
            if !unpack.push(piece).map_err(|error| error.to_string())? {
                break;
            }
        }
        unpack.finish().map_err(|error| error.to_string())
    }

    #[test]
    fn bodies_are_kept_up_to_the_limit() {
        assert_eq!(unpack("", 10, b"hello").unwrap(), (b"hello".to_vec(), false));
        assert_eq!(unpack("identity", 5, b"hello").unwrap(), (b"hello".to_vec(), false));
        assert_eq!(unpack("", 4, b"hello").unwrap(), (b"hell".to_vec(), true));
        assert_eq!(unpack("gzip", 10, &packed(b"hello")).unwrap(), (b"hello".to_vec(), false));
        assert_eq!(unpack("gzip", 4, &packed(b"hello")).unwrap(), (b"hell".to_vec(), true));
        assert_eq!(unpack("gzip", 10, &[packed(b"hel"), packed(b"lo")].concat()).unwrap().0, b"hello");
        assert!(unpack("br", 10, b"x").unwrap_err().contains("br"));
        assert!(unpack("gzip", 10, b"no gzip at all, not even close").is_err());
        let whole = packed(&[7; 5_000]);
        assert!(unpack("gzip", 10_000, &whole[..whole.len() - 9]).is_err(), "the end is missing");
    }

    #[test]
    fn a_bomb_takes_no_more_than_the_limit() {
        // 64 MiB of zeros in 64 KiB.
        let bomb = packed(&vec![0; 64 << 20]);
        assert!(bomb.len() < 100_000);
        let (bytes, more) = unpack("gzip", 10_000, &bomb).unwrap();
        assert!(more && bytes.len() == 10_000 && bytes.capacity() < 100_000);
    }

    #[test]
    fn encodings_are_found() {
        for (bytes, content_type, expected) in [
            (&b"caf\xc3\xa9"[..], "text/plain", "café"),
            (b"caf\xe9", "text/plain", "café"),
            (b"caf\xe9", "text/html; charset=ISO-8859-1", "café"),
            (b"\xef\xbb\xbfcaf\xc3\xa9", "text/plain; charset=latin1", "café"),
            (b"\xff\xfeh\0i\0", "text/plain", "hi"),
            (b"\x82\xb1", "text/plain; charset=\"Shift_JIS\"", "こ"),
            (b"<meta charset='shift_jis'>\x82\xb1", "text/html", "<meta charset='shift_jis'>こ"),
            (
                b"<META http-equiv=x content=\"text/html; charset=koi8-r\">\xc1",
                "text/html",
                "<META http-equiv=x content=\"text/html; charset=koi8-r\">а",
            ),
            (
                b"<?xml version=\"1.0\" encoding=\"iso-8859-2\"?>\xb1",
                "text/xml",
                "<?xml version=\"1.0\" encoding=\"iso-8859-2\"?>ą",
            ),
            (b"<meta charset=utf-16>\xc3\xa9", "text/html", "<meta charset=utf-16>é"),
            (b"\xe9", "text/plain; charset=nonsense", "é"),
        ] {
            assert_eq!(text(bytes, content_type, false), expected);
        }
        assert_eq!(text(b"cut in a character \xc3", "text/plain", true), "cut in a character \u{fffd}");
    }

    #[test]
    fn zero_bytes_are_not_text() {
        assert!(looks_like_text(b"hello", "") && !looks_like_text(b"he\0llo", "text/plain"));
        assert!(looks_like_text(b"\xff\xfeh\0", "") && looks_like_text(b"h\0", "text/plain; charset=utf-16le"));
    }
}
