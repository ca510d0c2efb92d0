//! A table of the file as a struct: each key is written once, as a field with its default, its text and its rules.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;

use super::key::{Applies, Key};
use super::reader::Reader;
use super::secret::Secret;

/// A table of the file; made by [`table!`].
pub trait Table: Clone + Default + PartialEq + Serialize {
    /// Its keys.
    const KEYS: &'static [Key];

    /// Takes the values out of `reader`; what is wrong is noted there and replaced by the default.
    fn read(reader: &mut Reader<'_, '_>) -> Self;

    /// Takes over from `started` what only a start can change.
    fn keep(&mut self, started: &Self);

    /// The secrets in it, each under its path.
    fn secrets(&self) -> Vec<(Vec<String>, &Secret)>;

    /// True when a new value of the key takes effect with the next start only.
    fn waits(name: &str) -> bool {
        Self::KEYS.iter().any(|key| key.name == name && key.applies == Applies::Restart)
    }
}

/// One of which there can be hundreds: copies of a configuration share it.
impl<T: Table> Table for Arc<T> {
    const KEYS: &'static [Key] = T::KEYS;

    fn read(reader: &mut Reader<'_, '_>) -> Self {
        Self::new(T::read(reader))
    }

    fn keep(&mut self, started: &Self) {
        let mut kept = T::clone(self);
        kept.keep(started);
        if kept != **self {
            *self = Self::new(kept);
        }
    }

    fn secrets(&self) -> Vec<(Vec<String>, &Secret)> {
        T::secrets(self)
    }
}

/// [`Table::keep`] for tables under free names. One that has nothing but what waits is not there until then.
pub fn keep_named<T: Table>(ours: &mut BTreeMap<Box<str>, T>, started: &BTreeMap<Box<str>, T>) {
    let absent = T::default();
    ours.retain(|name, table| {
        let written = table.clone();
        table.keep(started.get(name).unwrap_or(&absent));
        started.contains_key(name) || *table == written || *table != absent
    });
}

/// Declares a table of `config.toml`.
///
/// ```text
/// table! {
///     /// `[uploads]`: files that clients send.
///     pub struct Uploads {
///         /// Bytes that one file may have, 1 to 67108864.
///         max_bytes: u64 = 25 << 20 => integer(1..=67_108_864).writable(),
///     }
/// }
/// ```
///
/// A field has its text, its type, its default (else that of the type) and its rule: a method of
/// [`Field`](super::key::Field) and, behind it, those of [`Key`]. The text stands in the first file, in the schema and
/// in the documentation. `#[check(f)]` before `struct` names an `fn(&Self, &mut Reader)` for what concerns several keys.
/// Each table in it can be borrowed by its type ([`AsRef`]), so that who reads one need not know the whole.
macro_rules! table {
    (
        $(#[doc = $doc:literal])+
        $(#[check($check:expr)])?
        $vis:vis struct $table:ident {
            $(
                $(#[doc = $about:literal])+
                $(#[serde($($serde:tt)+)])?
                $field:ident: $type:ty $(= $default:expr)? => $rule:ident($($with:expr),*) $(.$more:ident($($word:expr),*))*
            ),+ $(,)?
        }
    ) => {
        $(#[doc = $doc])+
        #[derive(Clone, Debug, PartialEq, serde::Serialize)]
        #[allow(rustdoc::bare_urls, rustdoc::invalid_html_tags, rustdoc::broken_intra_doc_links)]
        $vis struct $table {
            $($(#[doc = $about])+ $(#[serde($($serde)+)])? $vis $field: $type,)+
        }

        impl Default for $table {
            fn default() -> Self {
                Self { $($field: $crate::kernel::config::table!(@default $($default)?),)+ }
            }
        }

        impl $crate::kernel::config::Table for $table {
            const KEYS: &'static [$crate::kernel::config::Key] = &[$(
                $crate::kernel::config::Field::<$type>::new(
                    stringify!($field),
                    concat!($($about),+),
                    || $crate::kernel::config::default_of::<$table>(stringify!($field)),
                )
                .$rule($($with),*)
                $(.$more($($word),*))*,
            )+];

            fn read(reader: &mut $crate::kernel::config::Reader<'_, '_>) -> Self {
                let mut table = Self::default();
                $(reader.$rule(stringify!($field), &mut table.$field $(, $with)*);)+
                $($check(&table, reader);)?
                table
            }

            fn keep(&mut self, started: &Self) {
                $($crate::kernel::config::table!(
                    @keep $rule, Self::waits(stringify!($field)), &mut self.$field, &started.$field
                );)+
            }

            #[allow(unused_mut)]
            #[allow(clippy::vec_init_then_push, reason = "a table has any number of secrets")]
            fn secrets(&self) -> Vec<(Vec<String>, &$crate::kernel::config::Secret)> {
                let mut found = Vec::new();
                $($crate::kernel::config::table!(@secrets $rule, found, stringify!($field), &self.$field);)+
                found
            }
        }

        $($crate::kernel::config::table!(@part $rule, $table, $field, $type);)+
    };
    (@default) => { Default::default() };
    (@default $default:expr) => { $default };
    (@keep table, $waits:expr, $ours:expr, $started:expr) => { $crate::kernel::config::Table::keep($ours, $started) };
    (@keep named, $waits:expr, $ours:expr, $started:expr) => { $crate::kernel::config::keep_named($ours, $started) };
    (@keep $rule:ident, $waits:expr, $ours:expr, $started:expr) => {
        if $waits {
            Clone::clone_from($ours, $started);
        }
    };
    (@secrets secret, $found:ident, $name:expr, $value:expr) => { $found.push((vec![$name.to_owned()], $value)) };
    (@secrets table, $found:ident, $name:expr, $value:expr) => {
        let inner = $crate::kernel::config::Table::secrets($value).into_iter();
        $found.extend(inner.map(|(path, secret)| ([vec![$name.to_owned()], path].concat(), secret)))
    };
    (@secrets $rule:ident, $found:ident, $name:expr, $value:expr) => {};
    (@part table, $table:ident, $field:ident, $type:ty) => {
        impl AsRef<$type> for $table {
            fn as_ref(&self) -> &$type {
                &self.$field
            }
        }
    };
    (@part $rule:ident, $table:ident, $field:ident, $type:ty) => {};
}

pub(crate) use table;
