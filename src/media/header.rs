//! What a file of media says of itself: its type by its first bytes, how long it plays, and its size. What cannot be read is left
//! out; the bytes come from others.

use super::webm;

/// What a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    Image,
    Audio,
    Video,
}

/// What a file says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) class: Class,
    pub(super) content_type: &'static str,
    /// The usual ending of such a file.
    pub(super) ending: &'static str,
    /// How long it plays, in milliseconds.
    pub(super) duration_ms: Option<u64>,
    /// Samples in a second.
    pub(super) sample_rate: Option<u32>,
    /// Width and height in pixels.
    pub(super) size: Option<(u32, u32)>,
}

impl Header {
    const fn new(class: Class, content_type: &'static str, ending: &'static str) -> Self {
        Self { class, content_type, ending, duration_ms: None, sample_rate: None, size: None }
    }

    fn image(content_type: &'static str, ending: &'static str, size: Option<(u32, u32)>) -> Self {
        let size = size.filter(|(width, height)| *width > 0 && *height > 0);
        Self { size, ..Self::new(Class::Image, content_type, ending) }
    }

    /// A recording of so many samples, where that is known, at so many in a second.
    fn audio(content_type: &'static str, ending: &'static str, samples: Option<u64>, rate: Option<u32>) -> Self {
        let sample_rate = rate.filter(|rate| *rate > 0);
        let duration_ms =
            samples.zip(sample_rate).map(|(samples, rate)| samples.saturating_mul(1_000) / u64::from(rate));
        Self { duration_ms, sample_rate, ..Self::new(Class::Audio, content_type, ending) }
    }
}

/// Reads what a file says of itself; `None` when it is no file of media.
pub(super) fn read(bytes: &[u8]) -> Option<Header> {
    let starts = |with: &[u8]| bytes.starts_with(with);
    let holds = |at: usize, what: &[u8]| bytes.get(at..at + what.len()) == Some(what);
    if starts(b"\x89PNG\r\n\x1a\n") {
        let size = be32(bytes, 16).zip(be32(bytes, 20));
        return Some(Header::image("image/png", "png", size));
    }
    if starts(b"GIF87a") || starts(b"GIF89a") {
        let size = le16(bytes, 6).zip(le16(bytes, 8)).map(|(width, height)| (width.into(), height.into()));
        return Some(Header::image("image/gif", "gif", size));
    }
    if starts(b"\xff\xd8\xff") {
        return Some(Header::image("image/jpeg", "jpg", jpeg(bytes)));
    }
    if starts(b"RIFF") && holds(8, b"WEBP") {
        return Some(Header::image("image/webp", "webp", webp(bytes)));
    }
    if starts(b"RIFF") && holds(8, b"WAVE") {
        return Some(wav(bytes));
    }
    if starts(b"fLaC") {
        return Some(flac(bytes));
    }
    if starts(b"OggS") {
        return Some(ogg(bytes));
    }
    if holds(4, b"ftyp") {
        return Some(mp4(bytes));
    }
    if starts(b"\x1a\x45\xdf\xa3") {
        return Some(webm::read(bytes));
    }
    frames(bytes)
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at.checked_add(N)?)?.try_into().ok()
}

fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    array(bytes, at).map(u16::from_be_bytes)
}

fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    array(bytes, at).map(u32::from_be_bytes)
}

fn be64(bytes: &[u8], at: usize) -> Option<u64> {
    array(bytes, at).map(u64::from_be_bytes)
}

fn le16(bytes: &[u8], at: usize) -> Option<u16> {
    array(bytes, at).map(u16::from_le_bytes)
}

fn le32(bytes: &[u8], at: usize) -> Option<u32> {
    array(bytes, at).map(u32::from_le_bytes)
}

/// The size in the first frame header of a JPEG.
fn jpeg(bytes: &[u8]) -> Option<(u32, u32)> {
    let mut at = 2;
    loop {
        if *bytes.get(at)? != 0xff {
            return None;
        }
        let marker = *bytes.get(at + 1)?;
        match marker {
            // Padding, and markers without a length.
            0xff => at += 1,
            0x01 | 0xd0..=0xd8 => at += 2,
            0xc0..=0xcf if !matches!(marker, 0xc4 | 0xc8 | 0xcc) => {
                return Some((be16(bytes, at + 7)?.into(), be16(bytes, at + 5)?.into()));
            }
            _ => at += 2 + usize::from(be16(bytes, at + 2)?.max(2)),
        }
    }
}

fn webp(bytes: &[u8]) -> Option<(u32, u32)> {
    let kind = bytes.get(12..16)?;
    match kind {
        b"VP8X" => {
            let of = |at: usize| {
                Some(u32::from_le_bytes([*bytes.get(at)?, *bytes.get(at + 1)?, *bytes.get(at + 2)?, 0]) + 1)
            };
            Some((of(24)?, of(27)?))
        }
        b"VP8L" => {
            let bits = le32(bytes, 21)?;
            Some(((bits & 0x3fff) + 1, ((bits >> 14) & 0x3fff) + 1))
        }
        b"VP8 " => Some((u32::from(le16(bytes, 26)? & 0x3fff), u32::from(le16(bytes, 28)? & 0x3fff))),
        _ => None,
    }
}

fn wav(bytes: &[u8]) -> Header {
    let (mut at, mut rate, mut bytes_per_sec, mut data) = (12, None, None, None);
    while let (Some(kind), Some(size)) = (bytes.get(at..at + 4), le32(bytes, at + 4)) {
        let body = at + 8;
        match kind {
            b"fmt " => (rate, bytes_per_sec) = (le32(bytes, body + 4), le32(bytes, body + 8)),
            b"data" => {
                // A file that was streamed does not say how long it is.
                data = Some(u64::from(size).min((bytes.len() - body) as u64));
                break;
            }
            _ => {}
        }
        at = body.saturating_add(size as usize).saturating_add(size as usize & 1);
    }
    let speed = bytes_per_sec.filter(|speed| *speed > 0);
    let duration_ms = data.zip(speed).map(|(data, speed)| data.saturating_mul(1_000) / u64::from(speed));
    Header { duration_ms, ..Header::audio("audio/wav", "wav", None, rate) }
}

fn flac(bytes: &[u8]) -> Header {
    let packed = be64(bytes, 18);
    let rate = packed.map(|packed| (packed >> 44) as u32);
    let samples = packed.map(|packed| packed & 0xf_ffff_ffff).filter(|samples| *samples > 0);
    Header::audio("audio/flac", "flac", samples, rate)
}

fn ogg(bytes: &[u8]) -> Header {
    let first = 27 + usize::from(bytes.get(26).copied().unwrap_or_default());
    let head = bytes.get(first..).unwrap_or_default();
    let (rate, skipped) = if head.starts_with(b"OpusHead") {
        (Some(48_000), le16(head, 10).map_or(0, u64::from))
    } else if head.starts_with(b"\x01vorbis") {
        (le32(head, 12), 0)
    } else {
        (None, 0)
    };
    let last = bytes.windows(4).rposition(|window| window == b"OggS");
    let end = last.and_then(|at| array(bytes, at + 6)).map(u64::from_le_bytes).filter(|end| *end <= i64::MAX as u64);
    Header::audio("audio/ogg", "ogg", end.map(|end| end.saturating_sub(skipped)), rate)
}

/// The boxes of an MP4 in a range: kind, and where the content begins and ends.
fn boxes(bytes: &[u8], from: usize, to: usize) -> impl Iterator<Item = ([u8; 4], usize, usize)> + '_ {
    let mut at = from;
    std::iter::from_fn(move || {
        let (size, kind) = (be32(bytes, at)?, array::<4>(bytes, at + 4)?);
        let (head, size) = match size {
            0 => (8, to.checked_sub(at)?),
            1 => (16, usize::try_from(be64(bytes, at + 8)?).ok()?),
            size => (8, size as usize),
        };
        let end = at.checked_add(size).filter(|end| size >= head && *end <= to)?;
        let found = (kind, at + head, end);
        at = end;
        Some(found)
    })
}

fn mp4(bytes: &[u8]) -> Header {
    let (mut duration_ms, mut size) = (None, None);
    let movie = boxes(bytes, 0, bytes.len()).find(|(kind, ..)| kind == b"moov");
    for (kind, from, to) in movie.into_iter().flat_map(|(_, from, to)| boxes(bytes, from, to)) {
        if &kind == b"mvhd" {
            duration_ms = movie_ms(bytes, from);
        } else if &kind == b"trak" && size.is_none() {
            let head = boxes(bytes, from, to).find(|(kind, ..)| kind == b"tkhd");
            size = head.and_then(|(_, from, to)| {
                let at = to.checked_sub(8).filter(|at| *at >= from)?;
                let pair = (be32(bytes, at)? >> 16, be32(bytes, at + 4)? >> 16);
                (pair.0 > 0 && pair.1 > 0).then_some(pair)
            });
        }
    }
    let is_audio = size.is_none() && bytes.get(8..11) == Some(b"M4A");
    let header = if is_audio {
        Header::new(Class::Audio, "audio/mp4", "m4a")
    } else {
        Header::new(Class::Video, "video/mp4", "mp4")
    };
    Header { duration_ms, size, ..header }
}

/// How long a movie header says that the movie plays.
fn movie_ms(bytes: &[u8], at: usize) -> Option<u64> {
    let (scale, length) = match bytes.get(at)? {
        1 => (be32(bytes, at + 20)?, be64(bytes, at + 24)?),
        _ => (be32(bytes, at + 12)?, be32(bytes, at + 16)?.into()),
    };
    (scale > 0).then(|| (u128::from(length) * 1_000 / u128::from(scale)).try_into().ok())?
}

/// One frame of MPEG audio: its bytes, its samples, samples in a second, and whether it is AAC.
struct Frame {
    bytes: usize,
    samples: u64,
    rate: u32,
    is_aac: bool,
}

/// Kilobits in a second of MPEG 1 and of MPEG 2, layer III.
const MP3_KBITS: [[u16; 15]; 2] = [
    [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320],
    [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
];
const MP3_RATES: [u32; 3] = [44_100, 48_000, 32_000];
const AAC_RATES: [u32; 13] =
    [96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8_000, 7_350];

fn frame(bytes: &[u8], at: usize) -> Option<Frame> {
    let head = be32(bytes, at)?;
    if head >> 20 != 0xfff && head >> 21 != 0x7ff {
        return None;
    }
    if head >> 17 & 3 == 0 {
        // AAC: no layer.
        let rate = *AAC_RATES.get((head >> 10 & 15) as usize)?;
        // 13 bits, from the end of the fourth byte to the beginning of the sixth.
        let bytes = (be32(bytes, at + 3)? >> 13 & 0x1fff) as usize;
        return (bytes >= 7).then_some(Frame { bytes, samples: 1_024, rate, is_aac: true });
    }
    if head >> 17 & 3 != 1 {
        return None;
    }
    let version = head >> 19 & 3;
    let (is_first, slower) = match version {
        3 => (true, 1),
        2 => (false, 2),
        0 => (false, 4),
        _ => return None,
    };
    let kbits = *MP3_KBITS[usize::from(!is_first)].get((head >> 12 & 15) as usize)?;
    let rate = MP3_RATES.get((head >> 10 & 3) as usize)? / slower;
    let factor = if is_first { 144_000 } else { 72_000 };
    let bytes = (factor * u32::from(kbits) / rate + (head >> 9 & 1)) as usize;
    (bytes >= 4).then_some(Frame { bytes, samples: if is_first { 1_152 } else { 576 }, rate, is_aac: false })
}

/// MP3 and AAC: each frame says how long it is. Two in a row are no accident.
fn frames(bytes: &[u8]) -> Option<Header> {
    let mut at = 0;
    if bytes.starts_with(b"ID3") {
        let size = bytes.get(6..10)?.iter().fold(0, |size, byte| size << 7 | usize::from(byte & 0x7f));
        at = 10 + size;
    }
    let (mut samples, mut count, mut first) = (0, 0_u32, None);
    while let Some(found) = frame(bytes, at) {
        let (rate, is_aac) = *first.get_or_insert((found.rate, found.is_aac));
        if (rate, is_aac) != (found.rate, found.is_aac) {
            break;
        }
        samples += found.samples;
        count += 1;
        at += found.bytes;
    }
    let (rate, is_aac) = first.filter(|_| count >= 2)?;
    let (content_type, ending) = if is_aac { ("audio/aac", "aac") } else { ("audio/mpeg", "mp3") };
    Some(Header::audio(content_type, ending, Some(samples), Some(rate)))
}

#[cfg(test)]
#[path = "header_tests.rs"]
mod tests;
