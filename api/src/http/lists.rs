//! What the list routes share: whole lists and single pages from the same source, totals, cursors and limits.

use std::fmt::Display;
use std::str::FromStr;

use agentsvc_components::kernel::limit::PAGE_ITEMS_MAX;
use hyper::header::{HeaderName, HeaderValue};
use serde::Serialize;

use crate::http::error::Error;
use crate::http::pages;
use crate::http::pages::{Page, Shape};
use crate::http::reply::Response;

/// How many items there are in all, where that is known.
const X_TOTAL_COUNT: HeaderName = HeaderName::from_static("x-total-count");

/// A page as the world gives it: it may be short, even empty, and still have a next one.
pub(crate) struct Counted<I, C> {
    pub(crate) page: Page<I, C>,
    /// Items in all; `None` where counting would cost too much.
    pub(crate) total: Option<u64>,
}

/// Answers a list: whole and streamed, or one page when `limit` is given. `page` asks the world for the page after
/// a cursor, of at most so many items; `shape` makes what stands around the items from the total.
pub(crate) async fn answer<I, C, F, Fut>(
    limit: Option<usize>,
    after: Option<C>,
    shape: impl FnOnce(Option<u64>) -> Shape,
    mut page: F,
) -> Result<Response, Error>
where
    I: Serialize + Send + 'static,
    C: Display + Send + 'static,
    F: FnMut(Option<C>, usize) -> Fut + Send + 'static,
    Fut: Future<Output = Result<Counted<I, C>, Error>> + Send + 'static,
{
    let (mut response, total) = if let Some(limit) = limit {
        let filled = fill(limit, after, page).await?;
        (pages::one(shape(filled.total), &filled.page)?, filled.total)
    } else {
        let first = page(after, PAGE_ITEMS_MAX).await?;
        let next = move |cursor| {
            let asked = page(Some(cursor), PAGE_ITEMS_MAX);
            async move { Ok(asked.await?.page) }
        };
        (pages::stream(&shape(first.total), first.page, next)?, first.total)
    };
    if let Some(total) = total {
        response.headers_mut().insert(X_TOTAL_COUNT, HeaderValue::from(total));
    }
    Ok(response)
}

/// One page of `limit` items out of as many short pages as it takes; only the last page of a list is shorter.
async fn fill<I, C, F, Fut>(limit: usize, after: Option<C>, mut page: F) -> Result<Counted<I, C>, Error>
where
    F: FnMut(Option<C>, usize) -> Fut,
    Fut: Future<Output = Result<Counted<I, C>, Error>>,
{
    let mut filled = page(after, limit).await?;
    while filled.page.items.len() < limit
        && let Some(cursor) = filled.page.next.take()
    {
        let more = page(Some(cursor), limit - filled.page.items.len()).await?;
        filled.page.items.extend(more.page.items);
        filled.page.next = more.page.next;
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
    let wrong = |_| Error::bad_field("cursor", "query parameter 'cursor' is not a cursor of this list");
    cursor.map(|text| text.parse().map_err(wrong)).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::reply;

    /// The even numbers below 20, of which a page looks at three numbers at a time.
    async fn evens(after: Option<u32>, limit: usize) -> Result<Counted<u32, u32>, Error> {
        let from = after.map_or(0, |n| n + 1);
        let mut page = Page { items: Vec::new(), next: None };
        for number in from..20 {
            if page.items.len() == limit || number == from + 3 {
                return Ok(Counted { page, total: Some(20) });
            }
            page.next = Some(number);
            page.items.extend((number % 2 == 0).then_some(number));
        }
        page.next = None;
        Ok(Counted { page, total: Some(20) })
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
