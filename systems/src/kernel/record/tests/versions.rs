//! Records of other releases, and broken ones.

use super::*;

#[test]
fn a_newer_version_and_broken_bytes_are_named() {
    let op = put(&agent());
    let mut value = op.value.unwrap();
    value[0] = VERSION + 1;
    assert!(matches!(Records::default().read(&op.key, &value), Err(Error::Newer { .. })));
    value[0] = VERSION;
    value.truncate(20);
    assert!(matches!(Records::default().read(&op.key, &value), Err(Error::Corrupt { .. })));
    assert!(matches!(Records::default().read(b"zz", &[1]), Err(Error::Key(_))));
    assert!(matches!(Records::default().read(&op.key, &[]), Err(Error::Corrupt { .. })));
}

#[test]
fn a_field_that_a_later_release_adds_does_not_disturb_this_one() {
    #[derive(serde::Serialize)]
    struct Later {
        #[serde(flatten)]
        record: SessionRecord,
        colour: &'static str,
    }
    let (op, value) = (put(&session()), encode(&Later { record: session(), colour: "red" }));
    comes_back(&Op { value: Some(value), ..op }, &session());
}
