//! The words by which the API, records and logs name the values of an enum.

/// The words of a value that is one of a few, each with what it means.
pub type Words<T> = &'static [(&'static str, T)];

/// A value that is one of a few words.
pub trait Word: Copy + PartialEq + 'static {
    /// The words, each with its value.
    const WORDS: Words<Self>;

    /// Its word.
    fn word(self) -> &'static str {
        Self::WORDS.iter().find(|(_, value)| *value == self).map_or("", |(word, _)| word)
    }
}

/// An enum with a word for each value, and what is asked for of `as_str`, `parse`, `ALL` (every value in this order) and the
/// trait `Word`.
///
/// ```
/// # use agentsvc_components::enum_words;
/// enum_words! {
///     #[derive(Clone, Copy, Debug, PartialEq)]
///     enum Light [ALL, as_str, parse] {
///         Red = "red",
///         Green = "green",
///     }
/// }
/// assert_eq!((Light::Red.as_str(), Light::parse("green"), Light::ALL.len()), ("red", Some(Light::Green), 2));
/// ```
#[macro_export]
macro_rules! enum_words {
    (@ ALL { $($value:ident = $word:literal),+ } $vis:vis $name:ident) => {
        impl $name {
            /// Every value.
            $vis const ALL: [Self; [$($word),+].len()] = [$(Self::$value),+];
        }
    };
    (@ as_str { $($value:ident = $word:literal),+ } $vis:vis $name:ident) => {
        impl $name {
            /// Its word, as the API, records and logs have it.
            #[must_use]
            $vis const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$value => $word,)+
                }
            }
        }
    };
    (@ parse { $($value:ident = $word:literal),+ } $vis:vis $name:ident) => {
        impl $name {
            /// The value that the word means; `None` for any other word.
            #[must_use]
            $vis fn parse(word: &str) -> Option<Self> {
                match word {
                    $($word => Some(Self::$value),)+
                    _ => None,
                }
            }
        }
    };
    (@ Word { $($value:ident = $word:literal),+ } $vis:vis $name:ident) => {
        impl $crate::kernel::words::Word for $name {
            const WORDS: $crate::kernel::words::Words<Self> = &[$(($word, Self::$value)),+];
        }
    };
    (@ [$($item:ident),+] $words:tt $vis:vis $name:ident) => {
        $($crate::kernel::words::enum_words! { @ $item $words $vis $name })+
    };
    (
        $(#[$about:meta])*
        $vis:vis enum $name:ident $items:tt { $($(#[$doc:meta])* $value:ident = $word:literal,)+ }
    ) => {
        $(#[$about])*
        $vis enum $name {
            $($(#[$doc])* $value,)+
        }

        $crate::kernel::words::enum_words! { @ $items { $($value = $word),+ } $vis $name }
    };
}

pub use enum_words;
