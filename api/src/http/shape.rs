//! Bodies of replies: what they hold and where it comes from, said once for each field.

/// A body that is made of what the world gives: its fields, and behind each the value that it has of `$given`. Statements
/// between two pairs of braces come before that.
macro_rules! shape {
    (
        $(#[$about:meta])*
        $vis:vis struct $name:ident from $given:ident: $of:ty { $($before:tt)* } {
            $($(#[$doc:meta])* $field_vis:vis $field:ident: $type:ty = $value:expr,)*
        }
    ) => {
        $(#[$about])*
        #[derive(Serialize, JsonSchema)]
        $vis struct $name {
            $($(#[$doc])* $field_vis $field: $type,)*
        }

        impl From<$of> for $name {
            fn from($given: $of) -> Self {
                $($before)*
                Self { $($field: $value,)* }
            }
        }
    };
    ($(#[$about:meta])* $vis:vis struct $name:ident from $given:ident: $of:ty { $($fields:tt)* }) => {
        $crate::http::shape::shape! {
            $(#[$about])* $vis struct $name from $given: $of {} { $($fields)* }
        }
    };
}

/// An enum of the world as bodies and queries write it: the same variants, and the way there and back.
macro_rules! words {
    ($(#[$about:meta])* $vis:vis enum $name:ident for $of:ident { $($(#[$doc:meta])* $word:ident,)* }) => {
        $(#[$about])*
        $vis enum $name {
            $($(#[$doc])* $word,)*
        }

        impl From<$name> for $of {
            fn from(word: $name) -> Self {
                match word {
                    $($name::$word => Self::$word,)*
                }
            }
        }

        impl From<$of> for $name {
            fn from(word: $of) -> Self {
                match word {
                    $($of::$word => Self::$word,)*
                }
            }
        }
    };
}

pub(crate) use {shape, words};
