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
        let pieces = stream::unfold((body, Arc::clone(&head_left)), async |(mut body, head_left)| {
            // The parser takes whatever is ready at once; one piece at a time keeps it from gathering the whole body.
            tokio::task::yield_now().await;
            let piece = next(&mut body, &head_left).await.transpose()?;
            Some((piece, (body, head_left)))
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

async fn next(body: &mut BodyStream, head_left: &AtomicI64) -> Result<Option<Bytes>, Error> {
    if head_left.load(Ordering::Relaxed) <= 0 {
        return Err(Error::bad_request("malformed form: the headers of a part are too large"));
    }
    let piece = body.next().await?;
    head_left.fetch_sub(piece.as_ref().map_or(0, |piece| piece.len() as i64), Ordering::Relaxed);
    Ok(piece)
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
