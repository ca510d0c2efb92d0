//! Values of any type of a family: what the kernel carries from domain to domain without naming them.

use std::any::Any;
use std::fmt;

/// What a boxed value of the family can do.
pub(super) trait Erased: Any + fmt::Debug + Send + Sync {
    /// A copy of it.
    fn copy(&self) -> Box<dyn Erased>;
}

impl<T: Any + Clone + fmt::Debug + Send + Sync> Erased for T {
    fn copy(&self) -> Box<dyn Erased> {
        Box::new(self.clone())
    }
}

/// Makes the type `$name` of a value of any type that is `$family`.
macro_rules! any_of {
    ($(#[$doc:meta])* $name:ident: $family:ident) => {
        $(#[$doc])*
        pub struct $name(Box<dyn $crate::kernel::erased::Erased>);

        impl $name {
            /// The type of the value.
            #[must_use]
            pub fn kind(&self) -> std::any::TypeId {
                let value: &dyn std::any::Any = &*self.0;
                value.type_id()
            }

            /// Is it a `T`?
            #[must_use]
            pub fn is<T: $family>(&self) -> bool {
                self.kind() == std::any::TypeId::of::<T>()
            }

            /// The value, when it is a `T`.
            #[must_use]
            pub fn get<T: $family>(&self) -> Option<&T> {
                let value: &dyn std::any::Any = &*self.0;
                value.downcast_ref()
            }

            /// Takes the value out when it is a `T`.
            ///
            /// # Errors
            /// It is none; here it is again.
            pub fn take<T: $family>(self) -> Result<Box<T>, Self> {
                if !self.is::<T>() {
                    return Err(self);
                }
                let value: Box<dyn std::any::Any> = self.0;
                Ok(value.downcast().expect("its type was asked for"))
            }
        }

        impl<T: $family> From<T> for $name {
            fn from(value: T) -> Self {
                Self(Box::new(value))
            }
        }

        impl Clone for $name {
            fn clone(&self) -> Self {
                Self((*self.0).copy())
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}
pub(super) use any_of;

#[cfg(test)]
mod tests {
    use crate::kernel::attempt::Attempt;
    use crate::kernel::effect::{Abort, AnyEffect};
    use crate::kernel::id::{JobId, LogId};
    use crate::session::sweep::SweepLog;

    #[test]
    fn a_value_comes_out_as_what_it_went_in() {
        let abort = Abort(Attempt { job: JobId(uuid::Uuid::nil()), number: 3 });
        let effect = AnyEffect::from(abort);
        assert!(effect.is::<Abort>() && !effect.is::<SweepLog>());
        assert_eq!((effect.get(), effect.get::<SweepLog>()), (Some(&abort), None));
        assert_eq!(format!("{effect:?}"), format!("{abort:?}"));
        let effect = effect.clone().take::<SweepLog>().unwrap_err();
        assert_eq!(*effect.take::<Abort>().unwrap(), abort);
        assert!(AnyEffect::from(SweepLog(LogId(1))).take::<SweepLog>().is_ok());
    }
}
