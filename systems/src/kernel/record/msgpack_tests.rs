//! What rmp-serde writes is read, and anything else as rmp-serde reads it.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde::Serialize;

use super::*;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Unit;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Wrapped(Option<u16>);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum Choice {
    Plain,
    One(i64),
    Two(u8, String),
    Named { text: Option<Box<str>>, deeper: Box<Option<Choice>> },
    Empty {},
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind")]
enum Tagged {
    Number { number: u64 },
    Text { text: String },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Everything {
    numbers: (u8, u16, u32, u64, i8, i16, i32, i64),
    floats: (f32, f64),
    flag: bool,
    letter: char,
    id: uuid::Uuid,
    hash: [u8; 32],
    unit: Unit,
    wrapped: Vec<Wrapped>,
    choices: Vec<Choice>,
    tagged: Vec<Tagged>,
    map: BTreeMap<String, u32>,
    by_number: BTreeMap<u64, Option<()>>,
    value: serde_json::Value,
    #[serde(default)]
    later: u8,
}

fn choice() -> impl Strategy<Value = Choice> {
    let leaf = prop_oneof![
        Just(Choice::Plain),
        Just(Choice::Empty {}),
        any::<i64>().prop_map(Choice::One),
        (any::<u8>(), ".{0,40}").prop_map(|(number, text)| Choice::Two(number, text)),
    ];
    leaf.prop_recursive(3, 8, 1, |inner| {
        (prop::option::of(".{0,9}"), prop::option::of(inner))
            .prop_map(|(text, deeper)| Choice::Named { text: text.map(Into::into), deeper: Box::new(deeper) })
    })
}

fn tagged() -> impl Strategy<Value = Tagged> {
    prop_oneof![
        any::<u64>().prop_map(|number| Tagged::Number { number }),
        ".{0,300}".prop_map(|text| Tagged::Text { text }),
    ]
}

fn value() -> impl Strategy<Value = serde_json::Value> {
    use serde_json::Value;
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1e9..1e9_f64).prop_map(Value::from),
        ".{0,40}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 40, 20, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..20).prop_map(Value::from),
            prop::collection::btree_map(".{0,5}", inner, 0..20).prop_map(Value::from_iter),
        ]
    })
}

prop_compose! {
    fn everything()(
        numbers in any::<(u8, u16, u32, u64, i8, i16, i32, i64)>(),
        floats in (-1e9..1e9_f32, -1e9..1e9_f64),
        (flag, letter, id, hash) in any::<(bool, char, u128, [u8; 32])>(),
        wrapped in prop::collection::vec(prop::option::of(any::<u16>()).prop_map(Wrapped), 0..20),
        choices in prop::collection::vec(choice(), 0..20),
        tagged in prop::collection::vec(tagged(), 0..5),
        map in prop::collection::btree_map(".{0,5}", any::<u32>(), 0..20),
        by_number in prop::collection::btree_map(any::<u64>(), prop::option::of(Just(())), 0..5),
        value in value(),
        later in any::<u8>(),
    ) -> Everything {
        // Some of nothing is stored as nothing.
        let by_number = by_number.into_keys().map(|key| (key, None)).collect();
        let id = uuid::Uuid::from_u128(id);
        Everything {
            numbers, floats, flag, letter, id, hash, unit: Unit, wrapped, choices, tagged, map, by_number,
            value, later,
        }
    }
}

proptest! {
    #[test]
    fn what_rmp_serde_writes_is_read(it in everything()) {
        let named = rmp_serde::to_vec_named(&it).unwrap();
        prop_assert_eq!(&from_slice::<Everything>(&named).unwrap(), &it);
        prop_assert_eq!(&from_slice::<Everything>(&rmp_serde::to_vec(&it).unwrap()).unwrap(), &it);
        let short = &named[..named.len() - 1];
        prop_assert!(from_slice::<Everything>(short).is_err());
    }

    #[test]
    fn any_bytes_are_read_as_rmp_serde_reads_them(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        let ours = from_slice::<serde_json::Value>(&bytes).ok();
        let theirs = rmp_serde::from_slice::<serde_json::Value>(&bytes).ok();
        prop_assert_eq!(ours, theirs);
    }

    #[test]
    fn a_changed_byte_is_read_as_rmp_serde_reads_it(
        it in everything(),
        (at, byte) in (any::<prop::sample::Index>(), any::<u8>()),
    ) {
        let mut bytes = rmp_serde::to_vec_named(&it).unwrap();
        let place = at.index(bytes.len());
        bytes[place] = byte;
        let theirs = rmp_serde::from_slice::<Everything>(&bytes).ok();
        let ours = from_slice::<Everything>(&bytes).ok();
        // NaN is like nothing.
        prop_assert_eq!(format!("{ours:?}"), format!("{theirs:?}"));
    }
}

#[test]
fn what_is_nested_too_deep_is_an_error() {
    assert!(from_slice::<serde_json::Value>(&[0x91; 100_000]).is_err());
}
