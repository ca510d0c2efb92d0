//! A value that can be replaced while others use it.

use std::sync::Arc;

use parking_lot::RwLock;

/// The value in force. Readers take it as it is and keep it as long as they need it; a replacement waits for none of
/// them, and no reader sees half of one.
#[derive(Debug, Default)]
pub struct Swap<T>(RwLock<Arc<T>>);

impl<T> Swap<T> {
    /// With `value` in force.
    pub fn new(value: T) -> Self {
        Self(RwLock::new(Arc::new(value)))
    }

    /// The value in force.
    #[must_use]
    pub fn get(&self) -> Arc<T> {
        Arc::clone(&self.0.read())
    }

    /// Puts `value` in force.
    pub fn set(&self, value: T) {
        *self.0.write() = Arc::new(value);
    }
}

#[cfg(test)]
mod tests {
    use super::Swap;

    #[test]
    fn who_has_the_old_value_keeps_it() {
        let swap = Swap::new(1);
        let old = swap.get();
        swap.set(2);
        assert_eq!((*old, *swap.get()), (1, 2));
    }
}
