//! Pages for people whose browsers another site sends here: they say how it went, and run nothing.

use hyper::header::{ACCEPT, CONTENT_SECURITY_POLICY, HeaderValue};
use hyper::{HeaderMap, StatusCode};

use crate::http::reply::{self, Response};

const HTML: HeaderValue = HeaderValue::from_static("text/html; charset=utf-8");
const NOTHING_ELSE: HeaderValue =
    HeaderValue::from_static("default-src 'none'; base-uri 'none'; frame-ancestors 'none'");

/// Does a client ask for a page?
pub(crate) fn is_wanted(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    accepted.flat_map(|list| list.split(',')).any(|kind| kind.trim_start().starts_with("text/html"))
}

/// A page that only says how it went, and where to go on: the address and the words of a link. The text may be the message of an
/// error, which begins with a small letter and has no full stop: people get a sentence.
pub(crate) fn page(status: StatusCode, title: &str, text: &str, link: Option<(&str, &str)>) -> Response {
    let link = link.map(|(to, words)| format!("<p><a href=\"{}\">{}</a></p>", escaped(to), escaped(words)));
    let body = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <meta name=\"color-scheme\" content=\"light dark\"><title>{title}</title></head>\n\
         <body><main><h1>{title}</h1><p>{}</p>{}</main></body></html>\n",
        escaped(&sentence(text)),
        link.unwrap_or_default()
    );
    let mut response = reply::bytes(status, HTML, body);
    response.headers_mut().insert(CONTENT_SECURITY_POLICY, NOTHING_ELSE);
    response
}

fn sentence(text: &str) -> String {
    let mut rest = text.chars();
    let first = rest.next().into_iter().flat_map(char::to_uppercase);
    let end = if text.ends_with(['.', '!', '?']) { "" } else { "." };
    first.chain(rest).chain(end.chars()).collect()
}

fn escaped(text: &str) -> String {
    let mut done = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => done.push_str("&amp;"),
            '<' => done.push_str("&lt;"),
            '>' => done.push_str("&gt;"),
            '"' => done.push_str("&quot;"),
            '\'' => done.push_str("&#39;"),
            c => done.push(c),
        }
    }
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_get_sentences() {
        assert_eq!(sentence("the code was used; start again"), "The code was used; start again.");
        assert_eq!(sentence("Close this page."), "Close this page.");
        assert_eq!(sentence("\u{e9}tat"), "\u{c9}tat.");
    }

    #[tokio::test]
    async fn pages_show_text_and_run_nothing() {
        let response =
            page(StatusCode::BAD_REQUEST, "Not signed in", "<script src='x'>&\"</script>", Some(("../../", "Back")));
        assert_eq!(response.headers()[CONTENT_SECURITY_POLICY], NOTHING_ELSE);
        let text = reply::text(response).await;
        assert!(text.contains("&lt;script src=&#39;x&#39;&gt;&amp;&quot;&lt;/script&gt;"), "{text}");
    }
}
