//! Lists: a JSON array or `{"<plural>": [...], "total": n}` whose items arrive page by page.
//!
//! The first page is awaited before the status is sent, so that its refusal is a proper error. A list that fits in
//! one page is answered whole; a longer one is sent while it is read: the next page is asked for only when the client
//! has taken the one before, so a list of a million items costs the memory of one page.

use std::fmt::Display;

use agentsvc_systems::kernel::page::Page;
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use hyper::StatusCode;
use hyper::header::{HeaderName, HeaderValue};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::http::error::Error;
use crate::http::reply::{self, BrokenOff, Response};

/// The header that carries the cursor of the next page when `limit` cut the list short.
const X_NEXT_CURSOR: HeaderName = HeaderName::from_static("x-next-cursor");

/// What stands around the items.
#[derive(Clone, Debug)]
pub enum Shape {
    /// `[...]`
    Array,
    /// `{"<key>": [...], ...}` with the given keys after the items.
    Object {
        /// The key of the items.
        key: &'static str,
        /// Further keys, such as `total`.
        after: Map<String, Value>,
    },
}

impl Shape {
    /// `{"<key>": [...], "total": total}`
    #[must_use]
    pub fn with_total(key: &'static str, total: u64) -> Self {
        Self::Object { key, after: Map::from_iter([("total".to_owned(), Value::from(total))]) }
    }

    /// An object whose items stand under `key`, with `total` behind them where it is known.
    pub(crate) fn of(key: &'static str) -> impl FnOnce(Option<u64>) -> Self {
        move |total| total.map_or_else(|| Self::Object { key, after: Map::new() }, |total| Self::with_total(key, total))
    }

    /// A bare array, whatever the total.
    pub(crate) const fn array(_: Option<u64>) -> Self {
        Self::Array
    }

    fn open(&self) -> Vec<u8> {
        match self {
            Self::Array => b"[".to_vec(),
            Self::Object { key, .. } => format!("{{{}:[", Value::from(*key)).into_bytes(),
        }
    }

    fn close(&self) -> Vec<u8> {
        match self {
            Self::Array => b"]".to_vec(),
            Self::Object { after, .. } => {
                let mut text = String::from("]");
                for (key, value) in after {
                    text.push_str(&format!(",{}:{value}", Value::from(key.as_str())));
                }
                text.push('}');
                text.into_bytes()
            }
        }
    }
}

/// Query parameters of every list.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ListQuery {
    /// Maximum number of items. The response header `x-next-cursor`, and `next_cursor` of an object, lead to the next
    /// page. Default: the whole list.
    pub limit: Option<usize>,
    /// Cursor of the previous page.
    pub cursor: Option<String>,
}

/// Answers with the whole list: `first`, then what `next` gives for each cursor.
///
/// # Errors
/// 500 when an item cannot be written as JSON. An error of a later page breaks the body off.
pub fn stream<I, C, N, F, Fut>(shape: &Shape, first: Page<I, C, N>, next: F) -> Result<Response, Error>
where
    I: Serialize + Send + 'static,
    C: Send + 'static,
    F: FnMut(C) -> Fut + Send + 'static,
    N: 'static,
    Fut: Future<Output = Result<Page<I, C, N>, Error>> + Send + 'static,
{
    let mut body = shape.open();
    write_items(&mut body, &first.items, true)?;
    let close = shape.close();
    let Some(cursor) = first.next else {
        body.extend_from_slice(&close);
        return Ok(reply::bytes(StatusCode::OK, reply::JSON, body));
    };
    let rest = Rest { written: first.items.len(), close, next, state: State::Start { body, cursor } };
    let pieces = stream::try_unfold(rest, Rest::piece);
    Ok(reply::stream(StatusCode::OK, reply::JSON, Box::pin(pieces)))
}

/// One of the lists of an object, page by page.
pub(crate) struct Section {
    key: &'static str,
    /// The items of each page as JSON, with commas between them.
    pages: BoxStream<'static, Result<Vec<u8>, Error>>,
}

impl Section {
    /// The list under `key`: `page` gives the items behind a cursor, at first behind none.
    pub(crate) fn new<I, C, F, Fut>(key: &'static str, page: F) -> Self
    where
        I: Serialize + Send + 'static,
        C: Send + 'static,
        F: FnMut(Option<C>) -> Fut + Send + 'static,
        Fut: Future<Output = Result<Page<I, C, ()>, Error>> + Send + 'static,
    {
        let pages = stream::try_unfold((Some(None), page), |(cursor, mut page)| async move {
            let Some(cursor) = cursor else { return Ok(None) };
            let Page { items, next, .. } = page(cursor).await?;
            let mut written = Vec::new();
            write_items(&mut written, &items, true)?;
            Ok(Some((written, (next.map(Some), page))))
        });
        Self { key, pages: Box::pin(pages) }
    }

    /// The pieces of the body, up to what follows the list.
    fn pieces(self, is_first: bool) -> BoxStream<'static, Result<Bytes, BrokenOff>> {
        let open = format!("{}{}:[", if is_first { '{' } else { ',' }, Value::from(self.key));
        let mut has_items = false;
        let items = self.pages.map(move |page| {
            let mut items = page.map_err(|error| {
                tracing::warn!(%error, "a list was interrupted");
                BrokenOff(error.message().to_owned())
            })?;
            if !items.is_empty() && std::mem::replace(&mut has_items, true) {
                items.insert(0, b',');
            }
            Ok(items.into())
        });
        let piece = |text: String| stream::iter([Ok(Bytes::from(text))]);
        Box::pin(piece(open).chain(items).chain(piece("]".to_owned())))
    }
}

/// Answers with an object of several lists, which is sent while they are read, and `after` behind them.
pub(crate) fn sections(sections: Vec<Section>, after: &Map<String, Value>) -> Response {
    let mut close = String::new();
    for (key, value) in after {
        close.push_str(&format!(",{}:{value}", Value::from(key.as_str())));
    }
    close.push('}');
    let lists = sections.into_iter().enumerate().map(|(at, section)| section.pieces(at == 0));
    let pieces = stream::iter(lists).flatten().chain(stream::iter([Ok(Bytes::from(close))]));
    reply::stream(StatusCode::OK, reply::JSON, Box::pin(pieces))
}

/// Answers with one page, for a list that was asked for with `limit`.
///
/// # Errors
/// 500 when an item cannot be written as JSON.
pub fn one<I: Serialize, C: Display, N>(mut shape: Shape, page: &Page<I, C, N>) -> Result<Response, Error> {
    let cursor = page.next.as_ref().map(ToString::to_string);
    if let Shape::Object { after, .. } = &mut shape {
        after.insert("next_cursor".to_owned(), cursor.clone().into());
    }
    let mut body = shape.open();
    write_items(&mut body, &page.items, true)?;
    body.extend_from_slice(&shape.close());
    let mut response = reply::bytes(StatusCode::OK, reply::JSON, body);
    if let Some(value) = cursor.and_then(|text| HeaderValue::from_str(&text).ok()) {
        response.headers_mut().insert(X_NEXT_CURSOR, value);
    }
    Ok(response)
}

/// A list that is being sent.
struct Rest<C, F> {
    /// Items sent or about to be; says whether a comma is due.
    written: usize,
    close: Vec<u8>,
    next: F,
    state: State<C>,
}

enum State<C> {
    /// The opening and the first page wait to be sent.
    Start { body: Vec<u8>, cursor: C },
    /// The page at this cursor is next.
    Next(C),
    /// The closing has been sent.
    End,
}

impl<C, F> Rest<C, F> {
    /// The next piece of the body.
    async fn piece<I, N, Fut>(mut self) -> Result<Option<(Bytes, Self)>, BrokenOff>
    where
        I: Serialize,
        F: FnMut(C) -> Fut,
        Fut: Future<Output = Result<Page<I, C, N>, Error>>,
    {
        let cursor = match self.state {
            State::Start { body, cursor } => {
                self.state = State::Next(cursor);
                return Ok(Some((body.into(), self)));
            }
            State::End => return Ok(None),
            State::Next(cursor) => cursor,
        };
        let mut piece = Vec::new();
        let page = (self.next)(cursor).await;
        let page = page.and_then(|page| write_items(&mut piece, &page.items, self.written == 0).map(|()| page));
        let page = page.map_err(|error| {
            tracing::warn!(%error, "a list was interrupted");
            BrokenOff(error.message().to_owned())
        })?;
        self.written += page.items.len();
        self.state = match page.next {
            Some(cursor) => State::Next(cursor),
            None => {
                piece.append(&mut self.close);
                State::End
            }
        };
        Ok(Some((piece.into(), self)))
    }
}

fn write_items<I: Serialize>(body: &mut Vec<u8>, items: &[I], mut first: bool) -> Result<(), Error> {
    for item in items {
        if !std::mem::take(&mut first) {
            body.push(b',');
        }
        serde_json::to_writer(&mut *body, item)
            .map_err(|e| Error::internal(format!("an item cannot be written: {e}")))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use hyper::body::Body as _;

    use super::*;

    type Numbers = Page<u32, u32, ()>;

    /// Pages of the numbers below `end`, `size` at a time.
    fn page(from: u32, size: u32, end: u32) -> Numbers {
        let to = (from + size).min(end);
        Page { items: (from..to).collect(), next: (to < end).then_some(to), total: () }
    }

    async fn streamed(shape: Shape, end: u32) -> Value {
        let next = move |cursor| async move { Ok(page(cursor, 3, end)) };
        reply::collect(stream(&shape, page(0, 3, end), next).unwrap()).await
    }

    #[tokio::test]
    async fn several_lists_stand_in_one_object() {
        let section =
            |key, end| Section::new(key, move |from: Option<u32>| async move { Ok(page(from.unwrap_or(0), 3, end)) });
        let after = Map::from_iter([("version".to_owned(), Value::from(1))]);
        let lists = vec![section("a", 7), section("b", 0), section("c", 2)];
        let expected = serde_json::json!({ "a": [0, 1, 2, 3, 4, 5, 6], "b": [], "c": [0, 1], "version": 1 });
        assert_eq!(reply::collect(sections(lists, &after)).await, expected);
    }

    #[tokio::test]
    async fn pages_join_to_one_list() {
        for end in [0, 1, 3, 4, 10] {
            let all: Vec<u32> = (0..end).collect();
            assert_eq!(streamed(Shape::Array, end).await, serde_json::json!(all));
            let object = streamed(Shape::with_total("numbers", end.into()), end).await;
            assert_eq!(object, serde_json::json!({"numbers": all, "total": end}));
        }
    }

    #[tokio::test]
    async fn a_short_list_has_a_known_length_and_empty_pages_do_no_harm() {
        let next = |_| async { Ok(Numbers { items: vec![7], next: None, total: () }) };
        let whole = stream(&Shape::Array, page(0, 3, 2), next).unwrap();
        assert_eq!(whole.body().size_hint().exact(), Some(5));
        let gap = stream(&Shape::Array, Numbers { items: vec![], next: Some(1), total: () }, next).unwrap();
        assert_eq!(reply::text(gap).await, "[7]");
    }

    #[tokio::test]
    async fn a_page_is_asked_for_only_when_the_one_before_is_taken() {
        use std::sync::Arc;
        use std::sync::atomic::{AtomicU32, Ordering};

        use http_body_util::BodyExt;
        let asked = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&asked);
        let next = move |cursor| {
            count.fetch_add(1, Ordering::Relaxed);
            async move { Ok(page(cursor, 3, 100)) }
        };
        let mut body = stream(&Shape::Array, page(0, 3, 100), next).unwrap().into_body();
        for taken in 0..5 {
            body.frame().await.unwrap().unwrap();
            assert_eq!(asked.load(Ordering::Relaxed), taken);
        }
    }

    #[tokio::test]
    async fn a_late_failure_breaks_the_body_off() {
        use http_body_util::BodyExt;
        let next = |_| async { Err::<Numbers, _>(Error::internal("gone")) };
        let response = stream(&Shape::Array, page(0, 3, 10), next).unwrap();
        assert!(response.into_body().collect().await.is_err());
    }

    #[tokio::test]
    async fn one_page_says_where_the_next_begins() {
        let response = one(Shape::Array, &page(0, 2, 5)).unwrap();
        assert_eq!(response.headers()[X_NEXT_CURSOR], "2");
        assert_eq!(reply::text(response).await, "[0,1]");
        let object = one(Shape::with_total("numbers", 5), &page(4, 2, 5)).unwrap();
        assert!(!object.headers().contains_key(X_NEXT_CURSOR));
        assert_eq!(reply::collect(object).await, serde_json::json!({"numbers": [4], "total": 5, "next_cursor": null}));
    }
}
