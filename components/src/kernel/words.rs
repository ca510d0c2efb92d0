//! The words by which the API, records and logs name the values of an enum.

/// Gives an enum its words: `as_str`, and where they are asked for `ALL`, every value in this order, and `parse`.
///
/// ```
/// # use agentsvc_components::enum_words;
/// #[derive(Clone, Copy, Debug, PartialEq)]
/// enum Light {
///     Red,
///     Green,
/// }
/// enum_words! { Light [ALL, as_str, parse] { Red = "red", Green = "green" } }
/// assert_eq!((Light::Red.as_str(), Light::parse("green"), Light::ALL.len()), ("red", Some(Light::Green), 2));
/// ```
#[macro_export]
macro_rules! enum_words {
    (@ ALL { $($value:ident = $word:literal),+ $(,)? } $vis:vis) => {
        /// Every value.
        $vis const ALL: [Self; [$($word),+].len()] = [$(Self::$value),+];
    };
    (@ as_str { $($value:ident = $word:literal),+ $(,)? } $vis:vis) => {
        /// Its word, as the API, records and logs have it.
        #[must_use]
        $vis const fn as_str(self) -> &'static str {
            match self {
                $(Self::$value => $word,)+
            }
        }
    };
    (@ parse { $($value:ident = $word:literal),+ $(,)? } $vis:vis) => {
        /// The value that the word means; `None` for any other word.
        #[must_use]
        $vis fn parse(word: &str) -> Option<Self> {
            match word {
                $($word => Some(Self::$value),)+
                _ => None,
            }
        }
    };
    ($vis:vis $name:ident [$($item:ident),+] $words:tt) => {
        impl $name {
            $($crate::kernel::words::enum_words! { @ $item $words $vis })+
        }
    };
}

pub use enum_words;
