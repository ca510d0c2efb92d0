//! Rows files come back as they were, or not at all.

use proptest::prelude::*;

use super::*;

fn row(space: Space, key: &[u8], value: &[u8]) -> Row {
    Row { space, key: key.to_vec(), value: value.to_vec() }
}

fn some_rows() -> Vec<Row> {
    vec![
        row(Space::World, b"a1", b"one"),
        row(Space::World, b"a2", b""),
        row(Space::World, b"b", &[7; 300]),
        row(Space::Content, b"a1", b"other"),
        row(Space::Content, &[0xff; 40], &[0; 70_000]),
    ]
}

fn written(rows: &[Row]) -> (Vec<u8>, RowTotals) {
    let mut writer = RowWriter::new(Vec::new()).unwrap();
    for row in rows {
        writer.push(row.space, &row.key, &row.value).unwrap();
    }
    writer.finish().unwrap()
}

fn read(bytes: &[u8]) -> Result<Vec<Row>, RowError> {
    RowReader::new(bytes)?.collect()
}

#[test]
fn rows_come_back_as_they_were() {
    let rows = some_rows();
    let (bytes, totals) = written(&rows);
    let mut reader = RowReader::new(bytes.as_slice()).unwrap();
    assert_eq!(reader.by_ref().collect::<Result<Vec<_>, _>>().unwrap(), rows);
    assert_eq!(reader.totals(), Some(totals));
    assert_eq!((totals.world, totals.content), (3, 2));
    assert_eq!(totals.bytes, 5 + 2 + 301 + 7 + 70_040);
    assert!(reader.next().is_none());
}

#[test]
fn no_rows_are_rows_too() {
    let (bytes, totals) = written(&[]);
    assert_eq!(read(&bytes).unwrap(), []);
    assert_eq!(totals.world + totals.content + totals.bytes, 0);
}

#[test]
fn a_file_cut_off_anywhere_is_refused() {
    let (bytes, _) = written(&some_rows()[..4]);
    for length in 0..bytes.len() {
        let error = read(&bytes[..length]).unwrap_err();
        assert!(matches!(error, RowError::Truncated { .. } | RowError::Foreign), "{length}: {error}");
    }
}

#[test]
fn a_flipped_bit_anywhere_is_noticed() {
    let (bytes, _) = written(&some_rows()[..4]);
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << bit;
            assert!(read(&damaged).is_err(), "bit {bit} of byte {at}");
        }
    }
}

#[test]
fn what_follows_the_end_is_refused() {
    let (mut bytes, _) = written(&some_rows());
    bytes.push(0);
    let error = read(&bytes).unwrap_err();
    assert!(error.to_string().contains("data after the end"), "{error}");
}

#[test]
fn absurd_lengths_are_refused_before_memory_is_taken() {
    let mut key = HEADER.to_vec();
    key.extend_from_slice(&[1, 0xff, 0xff]);
    let error = read(&key).unwrap_err();
    assert!(matches!(error, RowError::Damaged { row: 1, .. }), "{error}");
    let mut value = HEADER.to_vec();
    value.extend_from_slice(&[1, 0, 1, b'a', 0xff, 0xff, 0xff, 0xff]);
    let error = read(&value).unwrap_err();
    assert!(error.to_string().contains("too long"), "{error}");
}

#[test]
fn order_is_kept_by_both_sides() {
    let mut writer = RowWriter::new(Vec::new()).unwrap();
    writer.push(Space::Content, b"b", b"").unwrap();
    for (space, key) in [(Space::Content, b"b".as_slice()), (Space::Content, b"a"), (Space::World, b"c")] {
        let error = writer.push(space, key, b"").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
    }
    assert!(writer.push(Space::Content, b"", b"").is_err());
    assert!(writer.push(Space::Content, &[b'z'; KEY_BYTES_MAX + 1], b"").is_err());
    let mut bytes = HEADER.to_vec();
    for _ in 0..2 {
        bytes.extend_from_slice(&[1, 0, 1, b'a', 0, 0, 0, 0]);
    }
    let error = read(&bytes).unwrap_err();
    assert!(error.to_string().contains("out of order"), "{error}");
}

#[test]
fn other_files_and_later_versions_are_told_apart() {
    assert!(matches!(read(b"PK\x03\x04 something else entirely"), Err(RowError::Foreign)));
    assert!(matches!(read(b""), Err(RowError::Foreign)));
    let (mut bytes, _) = written(&some_rows());
    bytes[15] = 2;
    assert!(matches!(read(&bytes), Err(RowError::Newer { found: 2 })));
}

proptest! {
    #[test]
    fn garbage_is_an_error_and_no_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let mut file = HEADER.to_vec();
        file.extend_from_slice(&bytes);
        prop_assert!(read(&file).is_err());
    }
}
