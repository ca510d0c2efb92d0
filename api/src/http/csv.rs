//! Comma-separated values (RFC 4180).

use hyper::header::HeaderValue;

/// `content-type` of CSV.
pub(crate) const CSV: HeaderValue = HeaderValue::from_static("text/csv; charset=utf-8");

/// A text as RFC 4180 has it, always in quotes; what a spreadsheet would take for a formula begins with a single quote.
pub(crate) fn text(out: &mut String, value: &str) {
    out.push('"');
    if value.starts_with(['=', '+', '-', '@', '\t', '\r']) {
        out.push('\'');
    }
    for character in value.chars() {
        if character == '"' {
            out.push('"');
        }
        out.push(character);
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_quoted_and_never_formulas() {
        let quoted = |value: &str| {
            let mut out = String::new();
            text(&mut out, value);
            out
        };
        assert_eq!(quoted("plain"), "\"plain\"");
        assert_eq!(quoted("a,\"b\"\r\nc"), "\"a,\"\"b\"\"\r\nc\"");
        for first in ["=", "+", "-", "@", "\t", "\r"] {
            assert_eq!(quoted(&format!("{first}1")), format!("\"'{first}1\""));
        }
        assert_eq!(quoted(" =1"), "\" =1\"");
    }
}
