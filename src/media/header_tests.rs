//! What files of each type say of themselves, and what broken ones do not.

use proptest::prelude::{any, prop};
use proptest::proptest;

use super::*;

fn riff(kind: &[u8], rest: &[u8]) -> Vec<u8> {
    let size = (rest.len() as u32 + 4).to_le_bytes();
    [b"RIFF", &size[..], kind, rest].concat()
}

fn wav_of(rate: u32, data: usize, said: u32) -> Vec<u8> {
    let mut rest = b"LIST\x03\0\0\0abc\0".to_vec();
    rest.extend(b"fmt \x10\0\0\0\x01\0\x01\0");
    rest.extend(rate.to_le_bytes());
    rest.extend((rate * 2).to_le_bytes());
    rest.extend([2, 0, 16, 0]);
    rest.extend(b"data");
    rest.extend(said.to_le_bytes());
    rest.extend(vec![0; data]);
    riff(b"WAVE", &rest)
}

/// Frames of an MP3 of 128 kbit/s and 44,100 samples in a second.
fn mp3_of(frames: usize) -> Vec<u8> {
    let mut one = vec![0xff, 0xfb, 0x90, 0x00];
    one.resize(417, 0);
    one.repeat(frames)
}

fn mp4_box(kind: &[u8], content: &[u8]) -> Vec<u8> {
    [&(content.len() as u32 + 8).to_be_bytes()[..], kind, content].concat()
}

fn mp4_of(brand: &[u8], size: Option<(u32, u32)>) -> Vec<u8> {
    let mut movie = vec![0; 12];
    movie.extend(1_000_u32.to_be_bytes());
    movie.extend(6_500_u32.to_be_bytes());
    let mut track = vec![0; 76];
    let (width, height) = size.unwrap_or_default();
    track.extend((width << 16).to_be_bytes());
    track.extend((height << 16).to_be_bytes());
    let track = mp4_box(b"trak", &mp4_box(b"tkhd", &track));
    let movie = mp4_box(b"moov", &[mp4_box(b"mvhd", &movie), track].concat());
    [mp4_box(b"ftyp", &[brand, &[0; 4]].concat()), mp4_box(b"mdat", &[1; 30]), movie].concat()
}

#[test]
fn images_say_their_size() {
    let png = [b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", &640_u32.to_be_bytes()[..], &480_u32.to_be_bytes()].concat();
    let gif = b"GIF89a\x80\x02\xe0\x01".to_vec();
    let jpeg = b"\xff\xd8\xff\xe0\0\x04ab\xff\xc0\0\x11\x08\x01\xe0\x02\x80\x03".to_vec();
    let extended = riff(b"WEBP", b"VP8X\x0a\0\0\0\0\0\0\0\x7f\x02\0\xdf\x01\0");
    let bits = 639_u32 | 479 << 14;
    let lossless = riff(b"WEBP", &[b"VP8L\0\0\0\0\x2f", &bits.to_le_bytes()[..]].concat());
    let lossy = riff(b"WEBP", b"VP8 \0\0\0\0\0\0\0\x9d\x01\x2a\x80\x02\xe0\x01");
    for (file, content_type) in [
        (png, "image/png"),
        (gif, "image/gif"),
        (jpeg, "image/jpeg"),
        (extended, "image/webp"),
        (lossless, "image/webp"),
        (lossy, "image/webp"),
    ] {
        let header = read(&file).unwrap();
        assert_eq!((header.content_type, header.size), (content_type, Some((640, 480))));
        assert_eq!(header.class, Class::Image);
        let cut = read(&file[..10]);
        assert!(cut.is_none_or(|header| header.size.is_none() || content_type == "image/gif"), "{content_type}");
    }
}

#[test]
fn recordings_say_how_long_they_play() {
    let flac = [b"fLaC\0\0\0\x22", &[0; 10][..], &(44_100_u64 << 44 | 88_200).to_be_bytes()].concat();
    let page = |granule: u64, content: &[u8]| {
        [b"OggS\0\0", &granule.to_le_bytes()[..], &[0; 12], &[1, content.len() as u8], content].concat()
    };
    let opus = [page(0, b"OpusHead\x01\x01\x38\x01\x80\xbb\0\0\0\0\0"), page(96_312, b"x")].concat();
    let vorbis = [page(0, b"\x01vorbis\0\0\0\0\x01\x44\xac\0\0"), page(88_200, b"x")].concat();
    let aac = [0xff, 0xf1, 0x50, 0x80, 0x01, 0x1f, 0xfc, 0x00].repeat(50);
    let tagged = [b"ID3\x04\0\0\0\0\x01\x00", &[0; 128][..], &mp3_of(100)].concat();
    for (file, content_type, ms, rate) in [
        (wav_of(8_000, 16_000, 16_000), "audio/wav", 1_000, 8_000),
        (wav_of(8_000, 16_000, u32::MAX), "audio/wav", 1_000, 8_000),
        (wav_of(8_000, 8_000, 16_000), "audio/wav", 500, 8_000),
        (mp3_of(100), "audio/mpeg", 2_612, 44_100),
        (tagged, "audio/mpeg", 2_612, 44_100),
        (aac, "audio/aac", 1_160, 44_100),
        (flac, "audio/flac", 2_000, 44_100),
        (opus, "audio/ogg", 2_000, 48_000),
        (vorbis, "audio/ogg", 2_000, 44_100),
    ] {
        let header = read(&file).unwrap();
        assert_eq!((header.content_type, header.duration_ms, header.sample_rate), (content_type, Some(ms), Some(rate)));
    }
}

#[test]
fn videos_say_both() {
    let video = read(&mp4_of(b"isom", Some((1_280, 720)))).unwrap();
    assert_eq!((video.content_type, video.size, video.duration_ms), ("video/mp4", Some((1_280, 720)), Some(6_500)));
    let song = read(&mp4_of(b"M4A ", None)).unwrap();
    assert_eq!((song.content_type, song.class, song.duration_ms), ("audio/mp4", Class::Audio, Some(6_500)));
    assert_eq!(read(b"\x1a\x45\xdf\xa3").unwrap().content_type, "video/webm");
}

#[test]
fn what_is_no_media_is_none() {
    for text in ["", "{\"error\": \"no\"}", "<html></html>", "RIFF", "ID3", "\u{fffd}"] {
        assert_eq!(read(text.as_bytes()), None, "{text}");
    }
    assert_eq!(read(&[0xff; 64]), None);
    assert_eq!(read(&mp3_of(1)), None, "one frame may be an accident");
}

proptest! {
    #[test]
    fn no_bytes_break_it(begin in prop::sample::select(vec![
        &b""[..], b"RIFF\0\0\0\0WAVE", b"RIFF\0\0\0\0WEBP", b"fLaC", b"OggS", b"\0\0\0\x08ftyp", b"\xff\xd8\xff", b"ID3", b"\xff\xfb\x90\0",
    ]), rest in prop::collection::vec(any::<u8>(), 0..512)) {
        let _ = read(&[begin, &rest].concat());
    }
}
