//! Files on their way out, with headers that keep a browser from running what is in them.

use std::io::Read;

use bytes::Bytes;
use futures_util::stream;
use hyper::header::{
    ACCEPT_RANGES, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, HeaderValue,
};
use hyper::{Method, StatusCode};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::http::call::Call;
use crate::http::error::Error;
use crate::http::files::{FileReader, FilesError};
use crate::http::receive::blocking;
use crate::http::reply::{self, BrokenOff, Response};

/// Bytes of a file that are read and sent at once; smaller files are sent whole.
const PIECE_BYTES: u64 = 256 << 10;

/// The file is a document of its own that may do and load nothing.
const CSP: HeaderValue = HeaderValue::from_static("default-src 'none'; sandbox");
/// Kept by the client alone, and asked for again.
const PRIVATE: HeaderValue = HeaderValue::from_static("private, no-cache");
const NO_RANGES: HeaderValue = HeaderValue::from_static("none");
const OCTETS: HeaderValue = HeaderValue::from_static("application/octet-stream");

/// A file to send.
pub(crate) struct Served<'a> {
    /// The name to keep it under.
    pub(crate) filename: &'a str,
    /// Its type.
    pub(crate) content_type: &'a str,
    /// Bytes.
    pub(crate) size: u64,
    /// A browser may show it instead of offering to keep it.
    pub(crate) in_place: bool,
    /// Its bytes.
    pub(crate) content: FileReader,
}

/// Answers with the file; to `HEAD` without reading it.
///
/// # Errors
/// 500 when it cannot be read. A later failure breaks the body off.
pub(crate) async fn response(call: &Call, file: Served<'_>) -> Result<Response, Error> {
    let Served { filename, content_type, size, in_place, content } = file;
    let content_type = HeaderValue::try_from(content_type).ok().filter(|v| !v.is_empty()).unwrap_or(OCTETS);
    let is_head = call.parts.method == Method::HEAD;
    let mut response = if !is_head && size <= PIECE_BYTES {
        let (bytes, _) = blocking(move || read(content, size)).await?;
        reply::bytes(StatusCode::OK, content_type, bytes)
    } else {
        let left = if is_head { 0 } else { size };
        let pieces = stream::try_unfold((content, left), async |(content, left)| {
            if left == 0 {
                return Ok(None);
            }
            let (bytes, content) = blocking(move || read(content, left.min(PIECE_BYTES)))
                .await
                .map_err(|error| BrokenOff(error.to_string()))?;
            let left = left - bytes.len() as u64;
            Ok(Some((bytes, (content, left))))
        });
        let mut response = reply::stream(StatusCode::OK, content_type, Box::pin(pieces));
        response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(size));
        response
    };
    let headers = response.headers_mut();
    headers.insert(CONTENT_DISPOSITION, disposition(filename, in_place));
    headers.insert(CONTENT_SECURITY_POLICY, CSP);
    headers.insert(CACHE_CONTROL, PRIVATE);
    headers.insert(ACCEPT_RANGES, NO_RANGES);
    Ok(response)
}

/// The next `size` bytes, and the rest.
fn read(mut content: FileReader, size: u64) -> Result<(Bytes, FileReader), FilesError> {
    let mut bytes = Vec::with_capacity(size as usize);
    let read = (&mut content).take(size).read_to_end(&mut bytes);
    match read {
        Ok(_) if bytes.len() as u64 == size => Ok((Bytes::from(bytes), content)),
        // Somebody cut it while it was read: half a file must not look like a whole one.
        Ok(_) => Err(FilesError::Failed),
        Err(error) => Err(FilesError::of_read(error)),
    }
}

/// All but `attr-char` of RFC 8187.
const NOT_ATTR_CHAR: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'!')
    .remove(b'#')
    .remove(b'$')
    .remove(b'&')
    .remove(b'+')
    .remove(b'-')
    .remove(b'.')
    .remove(b'^')
    .remove(b'_')
    .remove(b'`')
    .remove(b'|')
    .remove(b'~');

/// `Content-Disposition` with the name in plain ASCII for old clients, and whole (RFC 6266, RFC 8187).
fn disposition(filename: &str, in_place: bool) -> HeaderValue {
    let kind = if in_place { "inline" } else { "attachment" };
    let plain = |c: char| if c.is_ascii_graphic() && !"\"\\%;/".contains(c) || c == ' ' { c } else { '_' };
    let ascii: String = filename.chars().map(plain).collect();
    let whole = utf8_percent_encode(filename, NOT_ATTR_CHAR);
    HeaderValue::try_from(format!("{kind}; filename=\"{ascii}\"; filename*=UTF-8''{whole}"))
        .unwrap_or(HeaderValue::from_static("attachment"))
}

#[cfg(test)]
mod tests {
    use super::disposition;

    #[test]
    fn names_survive_and_break_nothing_out() {
        let of = |name, in_place| disposition(name, in_place).to_str().unwrap().to_owned();
        assert_eq!(of("a b.png", true), "inline; filename=\"a b.png\"; filename*=UTF-8''a%20b.png");
        assert_eq!(
            of("ü\".txt\r\nx: y", false),
            "attachment; filename=\"__.txt__x: y\"; filename*=UTF-8''%C3%BC%22.txt%0D%0Ax%3A%20y"
        );
    }
}
