//! Which content types can be read as text.

/// What a body is, by its content type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Media {
    /// A page.
    Html,
    /// Text as it is: plain, JSON, XML, source code.
    Text,
    /// Nothing was said; the body must tell.
    Unknown,
    /// Anything else.
    Binary,
}

/// Types that are text although their name does not say so.
const TEXTUAL: &str = "application/ecmascript application/graphql application/javascript application/json \
    application/jsonl application/json-seq application/ndjson application/rtf application/sql \
    application/toml application/typescript application/x-httpd-php application/x-javascript \
    application/x-ndjson application/x-perl application/x-python application/x-ruby application/x-sh \
    application/x-tex application/x-www-form-urlencoded application/x-yaml application/xml \
    application/xml-dtd application/yaml message/rfc822";

impl Media {
    /// By the value of `Content-Type`; empty when there was none.
    pub(crate) fn of(content_type: &str) -> Self {
        let essence = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        match essence.as_str() {
            "" => Self::Unknown,
            "text/html" | "application/xhtml+xml" => Self::Html,
            _ if essence.starts_with("text/") || TEXTUAL.split(' ').any(|textual| textual == essence) => Self::Text,
            // The suffixes of RFC 6839; of images only SVG has one, and it is no text to read.
            _ if essence.starts_with("image/") => Self::Binary,
            _ if ["+json", "+xml", "+yaml"].iter().any(|suffix| essence.ends_with(suffix)) => Self::Text,
            _ => Self::Binary,
        }
    }

    /// What a body without a content type is: text, unless it begins like a page.
    pub(crate) fn sniff(text: &str) -> Self {
        let start: String = text.trim_start_matches('\u{feff}').trim_start().chars().take(14).collect();
        let start = start.to_ascii_lowercase();
        if start.starts_with("<!doctype html") || start.starts_with("<html") { Self::Html } else { Self::Text }
    }
}

#[cfg(test)]
mod tests {
    use super::Media;

    #[test]
    fn types_are_told_apart() {
        for (content_type, expected) in [
            ("", Media::Unknown),
            ("text/html; charset=utf-8", Media::Html),
            ("TEXT/HTML", Media::Html),
            ("application/xhtml+xml", Media::Html),
            ("text/markdown", Media::Text),
            ("application/json", Media::Text),
            ("application/ld+json; x=y", Media::Text),
            ("application/atom+xml", Media::Text),
            ("application/x-ndjson", Media::Text),
            ("image/png", Media::Binary),
            ("image/svg+xml", Media::Binary),
            ("application/pdf", Media::Binary),
            ("application/octet-stream", Media::Binary),
            ("video/mp4", Media::Binary),
            ("nonsense", Media::Binary),
        ] {
            assert_eq!(Media::of(content_type), expected, "{content_type}");
        }
        assert_eq!(Media::sniff("\u{feff} <!DOCTYPE HTML><p>"), Media::Html);
        assert_eq!(Media::sniff("{\"a\": 1}"), Media::Text);
    }
}
