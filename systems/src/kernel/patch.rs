//! Fields of a patch: left as they are (`None`), emptied (`Some(None)`) or set. Stored as a list of none or one, for an
//! option in an option would come back as one.

use serde::de::Deserializer;
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};

/// Puts what a patch gives for a field into its place; `None` leaves it.
pub(crate) fn set<T>(place: &mut T, given: Option<impl Into<T>>) {
    if let Some(given) = given {
        *place = given.into();
    }
}

/// Writes the field.
#[allow(clippy::ref_option, clippy::option_option, reason = "serde asks for it")]
pub(crate) fn serialize<T: Serialize, S: Serializer>(
    field: &Option<Option<T>>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(field)
}

/// Reads the field.
#[allow(clippy::option_option, reason = "serde asks for it")]
pub(crate) fn deserialize<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Option<T>>, D::Error> {
    Ok(Vec::<Option<T>>::deserialize(deserializer)?.into_iter().next())
}

#[cfg(test)]
mod tests {
    use serde::{Deserialize, Serialize};

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Patch {
        #[serde(with = "super")]
        field: Option<Option<u8>>,
    }

    #[test]
    fn left_emptied_and_set_come_back_apart() {
        for field in [None, Some(None), Some(Some(7))] {
            let bytes = rmp_serde::to_vec_named(&Patch { field }).unwrap();
            assert_eq!(rmp_serde::from_slice::<Patch>(&bytes).unwrap(), Patch { field });
        }
    }
}
