//! What the list routes share: whole lists and single pages from the same source, totals, cursors and limits.

use std::fmt::Display;
use std::str::FromStr;

use agentsvc_components::kernel::limit::{LIST_READS_MAX, PAGE_ITEMS_MAX};
use agentsvc_systems::Command;
use agentsvc_systems::kernel::page::Page;
use agentsvc_systems::kernel::record::{hex, unhex};
use hyper::header::{HeaderName, HeaderValue};
use serde::Serialize;

use crate::http::call::Call;
use crate::http::error::Error;
use crate::http::pages::{self, ListQuery, Shape};
use crate::http::reply::Response;

/// How many items there are in all, where that is known.
const X_TOTAL_COUNT: HeaderName = HeaderName::from_static("x-total-count");

/// How many items a list has in all, as far as that is known.
pub(crate) trait Total {
    /// The number; `None` where counting would cost too much.
    fn known(self) -> Option<u64>;
}

impl Total for usize {
    fn known(self) -> Option<u64> {
        Some(self as u64)
    }
}

impl Total for Option<usize> {
    fn known(self) -> Option<u64> {
        self.map(|total| total as u64)
    }
}

impl Total for () {
    fn known(self) -> Option<u64> {
        None
    }
}

/// The shape of a list in JSON, which is only a schema: the list itself is written item by item.
macro_rules! list_schema {
    ($(#[$about:meta])* $name:ident { $key:ident: $item:ty, $(#[$of:meta])* total: $total:ty $(, $(#[$doc:meta])* $more:ident: $type:ty)* }) => {
        $(#[$about])*
        #[derive(JsonSchema)]
        #[expect(dead_code, reason = "only its schema is used")]
        pub(crate) struct $name {
            $key: Vec<$item>,
            $(#[$of])*
            total: $total,
            $($(#[$doc])* $more: $type,)*
            /// Cursor of the next page if `limit` was given.
            next_cursor: Option<String>,
        }
    };
}

pub(crate) use list_schema;

/// Answers a list of the world, from the query's `limit` and `cursor` on: `command` asks for the page after a cursor, of at
/// most so many items, and `item` shows one.
pub(crate) async fn of_world<C, V, K, N, I>(
    call: &Call,
    query: ListQuery,
    shape: impl FnOnce(Option<u64>) -> Shape,
    command: impl Fn(Option<K>, usize) -> C + Send + 'static,
    item: fn(V) -> I,
) -> Result<Response, Error>
where
    C: Command<Reply = Page<V, K, N>>,
    V: Send + 'static,
    K: Display + FromStr + Send + 'static,
    N: Total + Send + 'static,
    I: Serialize + Send + 'static,
{
    // Later pages of a streamed list are asked for outside of the call.
    let bridge = call.api.bridge.acting_as(call.actor());
    let (limit, after) = (limit(query.limit)?, cursor(query.cursor.as_deref())?);
    answer(limit, after, shape, move |after, limit| {
        let (bridge, command) = (bridge.clone(), command(after, limit));
        async move {
            let Page { items, next, total } = bridge.ask(command).await?;
            Ok(Page { items: items.into_iter().map(item).collect(), next, total: total.known() })
        }
    })
    .await
}

/// Answers a list: whole and streamed, or one page when `limit` is given. `page` asks the world for the page after
/// a cursor, of at most so many items; `shape` makes what stands around the items from the total.
pub(crate) async fn answer<I, C, F, Fut>(
    limit: Option<usize>,
    after: Option<C>,
    shape: impl FnOnce(Option<u64>) -> Shape,
    page: F,
) -> Result<Response, Error>
where
    I: Serialize + Send + 'static,
    C: Display + Send + 'static,
    F: FnMut(Option<C>, usize) -> Fut + Send + 'static,
    Fut: Future<Output = Result<Page<I, C, Option<u64>>, Error>> + Send + 'static,
{
    match limit {
        Some(limit) => single(shape, &fill(limit, after, page).await?),
        None => whole(after, shape, page).await,
    }
}

/// [`answer`] for lists of what may be large: `page` gives fewer items than it was asked for when they have many bytes, and
/// a page that was asked for with `limit` is as short.
pub(crate) async fn answer_short<I, C, F, Fut>(
    limit: Option<usize>,
    after: Option<C>,
    shape: impl FnOnce(Option<u64>) -> Shape,
    mut page: F,
) -> Result<Response, Error>
where
    I: Serialize + Send + 'static,
    C: Display + Send + 'static,
    F: FnMut(Option<C>, usize) -> Fut + Send + 'static,
    Fut: Future<Output = Result<Page<I, C, Option<u64>>, Error>> + Send + 'static,
{
    match limit {
        Some(limit) => single(shape, &page(after, limit).await?),
        None => whole(after, shape, page).await,
    }
}

fn single<I: Serialize, C: Display>(
    shape: impl FnOnce(Option<u64>) -> Shape,
    page: &Page<I, C, Option<u64>>,
) -> Result<Response, Error> {
    Ok(with_total(pages::one(shape(page.total), page)?, page.total))
}

async fn whole<I, C, F, Fut>(
    after: Option<C>,
    shape: impl FnOnce(Option<u64>) -> Shape,
    mut page: F,
) -> Result<Response, Error>
where
    I: Serialize + Send + 'static,
    C: Display + Send + 'static,
    F: FnMut(Option<C>, usize) -> Fut + Send + 'static,
    Fut: Future<Output = Result<Page<I, C, Option<u64>>, Error>> + Send + 'static,
{
    let first = page(after, PAGE_ITEMS_MAX).await?;
    let next = move |cursor| page(Some(cursor), PAGE_ITEMS_MAX);
    let total = first.total;
    Ok(with_total(pages::stream(&shape(total), first, next)?, total))
}

fn with_total(mut response: Response, total: Option<u64>) -> Response {
    if let Some(total) = total {
        response.headers_mut().insert(X_TOTAL_COUNT, HeaderValue::from(total));
    }
    response
}

/// One page of `limit` items out of several short pages, at most [`LIST_READS_MAX`] of them: then the page is short itself, even
/// empty, and its cursor leads on. A filter that few items pass must not make the world look at everything for one request.
async fn fill<I, C, F, Fut>(limit: usize, after: Option<C>, mut page: F) -> Result<Page<I, C, Option<u64>>, Error>
where
    F: FnMut(Option<C>, usize) -> Fut,
    Fut: Future<Output = Result<Page<I, C, Option<u64>>, Error>>,
{
    let mut filled = page(after, limit).await?;
    for _ in 1..LIST_READS_MAX {
        if filled.items.len() == limit {
            break;
        }
        let Some(cursor) = filled.next.take() else { break };
        let more = page(Some(cursor), limit - filled.items.len()).await?;
        filled.items.extend(more.items);
        filled.next = more.next;
    }
    Ok(filled)
}

/// The query's `limit`: at least 1, cut to [`PAGE_ITEMS_MAX`].
///
/// # Errors
/// 400 naming `limit` when it is 0.
pub(crate) fn limit(limit: Option<usize>) -> Result<Option<usize>, Error> {
    match limit {
        Some(0) => Err(Error::bad_field("limit", "query parameter 'limit' must be at least 1")),
        other => Ok(other.map(|limit| limit.min(PAGE_ITEMS_MAX))),
    }
}

/// The query's `cursor`.
///
/// # Errors
/// 400 naming `cursor` when it is not one of ours.
pub(crate) fn cursor<C: FromStr>(cursor: Option<&str>) -> Result<Option<C>, Error> {
    let wrong = |_| Error::bad_field("cursor", "query parameter 'cursor' is not a valid cursor of this list");
    cursor.map(|text| text.parse().map_err(wrong)).transpose()
}

/// A text as a cursor: in hex, so that it fits a header whatever it holds.
pub(crate) struct TextCursor(pub(crate) Box<str>);

impl std::fmt::Display for TextCursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&hex(self.0.as_bytes()))
    }
}

impl std::str::FromStr for TextCursor {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let bytes = unhex(text.as_bytes()).ok_or(())?;
        String::from_utf8(bytes).map(|key| Self(key.into())).map_err(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::reply;

    /// The even numbers below 20, of which a page looks at three numbers at a time.
    async fn evens(after: Option<u32>, limit: usize) -> Result<Page<u32, u32, Option<u64>>, Error> {
        let from = after.map_or(0, |n| n + 1);
        let mut page = Page { items: Vec::new(), next: None, total: Some(20) };
        for number in from..20 {
            if page.items.len() == limit || number == from + 3 {
                return Ok(page);
            }
            page.next = Some(number);
            page.items.extend((number % 2 == 0).then_some(number));
        }
        page.next = None;
        Ok(page)
    }

    #[tokio::test]
    async fn a_limited_list_is_filled_from_short_pages() {
        let response = answer(Some(4), None, |_| Shape::Array, evens).await.unwrap();
        assert_eq!(response.headers()["x-next-cursor"], "6");
        assert_eq!(response.headers()["x-total-count"], "20");
        assert_eq!(reply::text(response).await, "[0,2,4,6]");
        let last = answer(Some(4), Some(15), |_| Shape::Array, evens).await.unwrap();
        assert!(!last.headers().contains_key("x-next-cursor"));
        assert_eq!(reply::text(last).await, "[16,18]");
    }

    #[tokio::test]
    async fn a_limited_list_of_what_few_items_pass_is_not_looked_through_to_its_end() {
        // Each page looks at three of a thousand rows, and shows none.
        let none = |after: Option<usize>, _| {
            let looked = after.unwrap_or_default() + 3;
            std::future::ready(Ok(Page {
                items: Vec::<u32>::new(),
                next: (looked < 1_000).then_some(looked),
                total: None,
            }))
        };
        let response = answer(Some(4), None, |_| Shape::Array, none).await.unwrap();
        let looked = (3 * LIST_READS_MAX).to_string();
        assert_eq!(response.headers()["x-next-cursor"], looked.as_str(), "the next request goes on there");
        assert_eq!(reply::text(response).await, "[]");
    }

    #[tokio::test]
    async fn without_a_limit_the_whole_list_is_sent() {
        let response = answer(None, Some(9), |_| Shape::Array, evens).await.unwrap();
        assert_eq!(reply::text(response).await, "[10,12,14,16,18]");
    }

    #[test]
    fn limits_and_cursors_are_checked() {
        assert_eq!(limit(Some(0)).unwrap_err().status().as_u16(), 400);
        assert_eq!(limit(Some(1 << 40)).unwrap(), Some(PAGE_ITEMS_MAX));
        assert_eq!(limit(None).unwrap(), None);
        assert_eq!(cursor::<u32>(Some("x")).unwrap_err().status().as_u16(), 400);
        assert_eq!(cursor::<u32>(Some("7")).unwrap(), Some(7));
    }
}
