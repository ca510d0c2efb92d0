//! How long a WebM file plays, and whether it has pictures. What browsers record names no duration: the time of its last block is
//! read instead.

use super::header::{Class, Header};

const INFO: u32 = 0x1549_a966;
const TIMESTAMP_SCALE: u32 = 0x2a_d7b1;
const DURATION: u32 = 0x4489;
const SEGMENT: u32 = 0x1853_8067;
const TRACKS: u32 = 0x1654_ae6b;
const TRACK_ENTRY: u32 = 0xae;
const TRACK_TYPE: u32 = 0x83;
const CLUSTER: u32 = 0x1f43_b675;
const TIMESTAMP: u32 = 0xe7;
const SIMPLE_BLOCK: u32 = 0xa3;
const BLOCK_GROUP: u32 = 0xa0;
const BLOCK: u32 = 0xa1;
/// Nanoseconds of a tick where the file says nothing.
const SCALE_DEFAULT: u64 = 1_000_000;
/// The type of a track with pictures.
const VIDEO: u64 = 1;

/// What the file says. Elements follow one another; those that hold others are entered, and the others passed over.
pub(super) fn read(bytes: &[u8]) -> Header {
    let (mut at, mut scale, mut cluster) = (0, SCALE_DEFAULT, 0_u64);
    let (mut told, mut last): (Option<f64>, Option<u64>) = (None, None);
    let (mut has_tracks, mut has_pictures) = (false, false);
    while let Some((id, size, content)) = element(bytes, at) {
        if matches!(id, SEGMENT | INFO | TRACKS | TRACK_ENTRY | CLUSTER | BLOCK_GROUP) {
            at = content;
            continue;
        }
        // Only those that are entered may have no size.
        let Some(end) = size.and_then(|size| content.checked_add(usize::try_from(size).ok()?)) else { break };
        let data = bytes.get(content..end.min(bytes.len())).unwrap_or_default();
        match id {
            TIMESTAMP_SCALE => scale = number(data).filter(|scale| *scale > 0).unwrap_or(scale),
            DURATION => told = float(data),
            TRACK_TYPE => (has_tracks, has_pictures) = (true, has_pictures || number(data) == Some(VIDEO)),
            TIMESTAMP => cluster = number(data).unwrap_or(cluster),
            SIMPLE_BLOCK | BLOCK => last = block(data).map(|time| cluster.saturating_add_signed(time.into())).max(last),
            _ => {}
        }
        at = end;
    }
    // The greater one: what a file says is paid for, and a client can say anything.
    let told = told.filter(|ticks| ticks.is_finite() && *ticks > 0.0);
    let ticks = told.into_iter().chain(last.map(|last| last as f64)).reduce(f64::max);
    let duration_ms = ticks.map(|ticks| (ticks * scale as f64 / 1_000_000.0).round() as u64).filter(|ms| *ms > 0);
    let (class, content_type) =
        if has_tracks && !has_pictures { (Class::Audio, "audio/webm") } else { (Class::Video, "video/webm") };
    Header { class, content_type, ending: "webm", duration_ms, sample_rate: None, size: None }
}

/// The element at `at`: its id, its size where it has one, and where its content begins.
fn element(bytes: &[u8], at: usize) -> Option<(u32, Option<u64>, usize)> {
    let length = bytes.get(at)?.leading_zeros() as usize + 1;
    let id = number(bytes.get(at..at.checked_add(length).filter(|_| length <= 4)?)?)?;
    let at = at + length;
    let length = bytes.get(at)?.leading_zeros() as usize + 1;
    let size = number(bytes.get(at..at.checked_add(length).filter(|_| length <= 8)?)?)?;
    let most = (1_u64 << (7 * length)) - 1;
    let size = Some(size & most).filter(|size| *size != most);
    Some((u32::try_from(id).ok()?, size, at + length))
}

fn number(bytes: &[u8]) -> Option<u64> {
    (bytes.len() <= 8).then(|| bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

fn float(bytes: &[u8]) -> Option<f64> {
    match bytes.len() {
        4 => bytes.try_into().ok().map(|bytes| f32::from_be_bytes(bytes).into()),
        8 => bytes.try_into().ok().map(f64::from_be_bytes),
        _ => None,
    }
}

/// The time of a block within its cluster, which follows the number of its track.
fn block(data: &[u8]) -> Option<i16> {
    let track = data.first()?.leading_zeros() as usize + 1;
    Some(i16::from_be_bytes(data.get(track..track + 2)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(id: &[u8], content: &[u8]) -> Vec<u8> {
        [id, &[0x08, 0, 0, 0, content.len() as u8], content].concat()
    }

    /// A file as a browser records it: sizes are open, and no duration is told.
    fn file(track: u8, info: &[u8]) -> Vec<u8> {
        let open = [0x01, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];
        let head = of(b"\x1a\x45\xdf\xa3", b"\x42\x82\x84webm");
        let tracks = of(b"\x16\x54\xae\x6b", &of(b"\xae", &of(b"\x83", &[track])));
        let first = [&of(b"\xe7", &[0])[..], &of(b"\xa3", b"\x81\0\0\x80a"), &of(b"\xa3", b"\x81\0\x3c\x80b")].concat();
        let second = [&of(b"\xe7", &[0x13, 0x88])[..], &of(b"\xa0", &of(b"\xa1", b"\x81\xff\xec\0c"))].concat();
        let parts: [&[u8]; 9] = [
            &head,
            b"\x18\x53\x80\x67",
            &open,
            &of(b"\x15\x49\xa9\x66", info),
            &tracks,
            b"\x1f\x43\xb6\x75",
            &open,
            &first,
            b"",
        ];
        [parts.concat(), [b"\x1f\x43\xb6\x75", &open[..], &second].concat()].concat()
    }

    #[test]
    fn a_recording_of_a_browser_lasts_until_its_last_block() {
        let header = read(&file(2, b""));
        assert_eq!((header.class, header.content_type), (Class::Audio, "audio/webm"));
        assert_eq!(header.duration_ms, Some(4_980));
        assert_eq!(read(&file(1, b"")).class, Class::Video);
        let slow = of(b"\x2a\xd7\xb1", &[0x1e, 0x84, 0x80]);
        assert_eq!(read(&file(2, &slow)).duration_ms, Some(9_960), "a tick of two milliseconds");
        let told = |ticks: f64| read(&file(2, &of(b"\x44\x89", &ticks.to_be_bytes()))).duration_ms;
        assert_eq!((told(9_000.0), told(2_500.0)), (Some(9_000), Some(4_980)), "the greater one counts");
    }

    #[test]
    fn what_is_cut_off_or_nonsense_ends_the_reading() {
        let whole = file(2, &of(b"\x44\x89", &f64::INFINITY.to_be_bytes()));
        for cut in 0..whole.len() {
            read(&whole[..cut]);
        }
        let mut bytes = whole.clone();
        for at in 0..bytes.len() {
            for wrong in [0, 0xff] {
                let right = std::mem::replace(&mut bytes[at], wrong);
                read(&bytes);
                bytes[at] = right;
            }
        }
        assert_eq!(read(&whole).duration_ms, Some(4_980), "no duration that is no number");
        assert_eq!(read(b"\x1a\x45\xdf\xa3").duration_ms, None);
    }
}
