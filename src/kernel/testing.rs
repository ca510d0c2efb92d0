//! What tests of several rooms stand on.

use std::fmt::{Debug, Write};

use tracing::field::{Field, Visit};

/// The fields of a span or an event, one behind the other.
pub(crate) struct Fields(pub(crate) String);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        // Writing to a String cannot fail.
        let _ = write!(self.0, " {field}={value:?}");
    }
}
