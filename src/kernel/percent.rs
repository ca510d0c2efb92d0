//! Percent-encoding of what stands in a URL.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// All but the unreserved characters of RFC 3986.
pub(crate) const NOT_UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// `text` as one segment of a path, or one name or value of a query.
pub(crate) fn encoded(text: &str) -> String {
    utf8_percent_encode(text, NOT_UNRESERVED).to_string()
}
