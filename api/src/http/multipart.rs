//! Bodies of `multipart/form-data`, read part by part in bounded memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use bytes::Bytes;
use futures_util::stream;
use hyper::StatusCode;
use hyper::header::CONTENT_TYPE;
use hyper::http::request::Parts;

use crate::http::body::BodyStream;
use crate::http::error::Error;

/// Bytes that may be read in search of the end of a part's head.
const HEAD_BYTES_MAX: i64 = 64 << 10;

/// Bytes of a piece that is given to the parser meanwhile.
const HEAD_PIECE_BYTES_MAX: usize = 4 << 10;

/// A form on its way in.
pub(crate) struct Multipart {
    form: multer::Multipart<'static>,
    /// Bytes that may still be read before the head of the next part ends.
    head_left: Arc<AtomicI64>,
}

impl Multipart {
    /// The form of a request.
    ///
    /// # Errors
    /// 415 for another content type, 400 when it names no boundary.
    pub(crate) fn new(parts: &Parts, body: BodyStream) -> Result<Self, Error> {
        let value = parts.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
        let essence = value.split(';').next().unwrap_or("").trim();
        if !essence.eq_ignore_ascii_case("multipart/form-data") {
            let text = "unsupported content type; send multipart/form-data";
            return Err(Error::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, text));
        }
        let boundary = multer::parse_boundary(value)
            .map_err(|_| Error::bad_request("the content type multipart/form-data has no boundary"))?;
        let head_left = Arc::new(AtomicI64::new(HEAD_BYTES_MAX));
        let pieces = Pieces { body, rest: Bytes::new(), head_left: Arc::clone(&head_left) };
        let pieces = stream::unfold(pieces, async |mut pieces| {
            // The parser takes whatever is ready at once; one piece at a time keeps it from gathering the whole body.
            tokio::task::yield_now().await;
            let piece = pieces.next().await.transpose()?;
            Some((piece, pieces))
        });
        Ok(Self { form: multer::Multipart::new(pieces, boundary), head_left })
    }

    /// The next part; `None` after the last. The part before it must have been dropped; what was not read of it is
    /// skipped.
    ///
    /// # Errors
    /// 400 for a malformed form, and those of [`BodyStream::next`].
    pub(crate) async fn next_part(&mut self) -> Result<Option<Part>, Error> {
        self.head_left.store(HEAD_BYTES_MAX, Ordering::Relaxed);
        let field = self.form.next_field().await.map_err(explain)?;
        self.head_left.store(i64::MAX, Ordering::Relaxed);
        Ok(field.map(Part))
    }
}

/// The body, in pieces that the parser is given.
struct Pieces {
    body: BodyStream,
    /// What came with the last piece and was not given out yet.
    rest: Bytes,
    head_left: Arc<AtomicI64>,
}

impl Pieces {
    /// The next piece. A small one while the parser searches for the end of a part's head: it may take some more before
    /// it looks, and what is of the part's body already must not count for much.
    async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        let left = self.head_left.load(Ordering::Relaxed);
        if left <= 0 {
            return Err(Error::bad_request("malformed form: the headers of a part are too large"));
        }
        if self.rest.is_empty() {
            match self.body.next().await? {
                Some(piece) => self.rest = piece,
                None => return Ok(None),
            }
        }
        let is_head = left <= HEAD_BYTES_MAX;
        let size = if is_head { self.rest.len().min(HEAD_PIECE_BYTES_MAX) } else { self.rest.len() };
        let piece = self.rest.split_to(size);
        if is_head {
            self.head_left.fetch_sub(size as i64, Ordering::Relaxed);
        }
        Ok(Some(piece))
    }
}

/// One part of a form.
pub(crate) struct Part(multer::Field<'static>);

impl Part {
    /// The form's name for it.
    pub(crate) fn name(&self) -> Option<&str> {
        self.0.name()
    }

    /// The file's name, as the client wrote it.
    pub(crate) fn filename(&self) -> Option<&str> {
        self.0.file_name()
    }

    /// The declared content type without its parameters; empty when there is none.
    pub(crate) fn content_type(&self) -> &str {
        self.0.content_type().map_or("", |mime| mime.essence_str())
    }

    /// The next piece; `None` after the last.
    ///
    /// # Errors
    /// As [`Multipart::next_part`].
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        self.0.chunk().await.map_err(explain)
    }
}

/// Our own errors come back as they were; the parser's own say that the form is malformed.
fn explain(error: multer::Error) -> Error {
    let text = error.to_string();
    if let multer::Error::StreamReadFailed(cause) = error
        && let Ok(ours) = cause.downcast::<Error>()
    {
        return *ours;
    }
    Error::bad_request(format!("malformed form: {text}"))
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::time::Duration;

    use http_body_util::StreamBody;
    use hyper::Request;
    use hyper::body::Frame;

    use super::*;

    /// The form of these pieces, and whether each part was read to its end.
    async fn read(pieces: Vec<Bytes>) -> Result<Vec<usize>, Error> {
        let request = Request::builder().header(CONTENT_TYPE, "multipart/form-data; boundary=b").body(()).unwrap();
        let parts = request.into_parts().0;
        let body =
            StreamBody::new(stream::iter(pieces.into_iter().map(|piece| Ok::<_, Infallible>(Frame::data(piece)))));
        let mut form = Multipart::new(&parts, BodyStream::new(&parts, body, Duration::from_secs(1)))?;
        let mut sizes = Vec::new();
        while let Some(mut part) = form.next_part().await? {
            let mut size = 0;
            while let Some(piece) = part.next().await? {
                size += piece.len();
            }
            sizes.push(size);
        }
        Ok(sizes)
    }

    fn form(head: &str, size: usize) -> Vec<u8> {
        let head = format!("--b\r\nContent-Disposition: form-data; name=\"file\"{head}\r\n\r\n");
        [head.as_bytes(), &vec![b'x'; size], b"\r\n--b--\r\n"].concat()
    }

    #[tokio::test]
    async fn a_body_that_comes_in_large_pieces_is_not_taken_for_a_head() {
        for size in [100, 70_000, 500_000] {
            let whole = Bytes::from(form("", size));
            for cut in [1, 3, 20, 60, whole.len()] {
                let pieces = vec![whole.slice(..cut), whole.slice(cut..)];
                assert_eq!(read(pieces).await.unwrap(), [size], "cut at {cut}");
            }
        }
    }

    #[tokio::test]
    async fn a_head_without_an_end_is_refused() {
        let head = format!("; filename=\"{}\"", "n".repeat(100_000));
        let error = read(vec![Bytes::from(form(&head, 10))]).await.unwrap_err();
        assert_eq!(error.status(), 400);
        assert!(error.to_string().contains("too large"), "{error}");
    }
}
