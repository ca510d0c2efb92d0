//! DuckDuckGo's page for browsers without scripts: `GET /html/?q=...`. It needs no key, has no promise of stability,
//! and asks too eager clients to prove that they are people; that is told apart from finding nothing.

use html5gum::{StartTag, Token};
use reqwest::Url;

use super::{Asked, Hit, Provider, Query, query};
use crate::web::html::{attribute, tokens};

pub(super) const PROVIDER: Provider = Provider {
    name: "duckduckgo",
    base_url: "https://html.duckduckgo.com",
    key_env: "",
    accept: "text/html",
    ask,
    read,
};

fn ask(asked: &Query<'_>) -> Asked {
    Asked { url: format!("{}/html/?{}", asked.base_url, query(&[("q", asked.text)])), header: None, json: None }
}

/// What the text that comes now belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Title,
    Snippet,
}

/// What is read of one result.
#[derive(Default)]
struct Found {
    title: String,
    url: String,
    snippet: String,
}

fn read(text: &str) -> Result<Vec<Hit>, String> {
    let mut found: Vec<Found> = Vec::new();
    // The part, and the name of the element that ends it.
    let mut part: Option<(Part, Vec<u8>)> = None;
    let (mut is_page, mut is_challenge) = (false, false);
    for token in tokens(text) {
        match token {
            Token::StartTag(tag) => {
                let class = attribute(&tag, "class");
                is_page |= has_class(&class, &["results", "result", "no-results", "serp__results"]);
                is_challenge |= class.contains("anomaly");
                // The first names are those of `/html/`, the second those of `/lite/`.
                if has_class(&class, &["result__a", "result-link"]) {
                    is_page = true;
                    found.push(Found { url: target(&tag), ..Found::default() });
                    part = Some((Part::Title, tag.name.0.clone()));
                } else if has_class(&class, &["result__snippet", "result-snippet"]) && !found.is_empty() {
                    part = Some((Part::Snippet, tag.name.0.clone()));
                }
            }
            Token::String(text) => {
                if let (Some((part, _)), Some(last)) = (&part, found.last_mut()) {
                    let into = if *part == Part::Title { &mut last.title } else { &mut last.snippet };
                    // What is plain text already must survive being read as HTML once more.
                    into.push_str(&String::from_utf8_lossy(&text).replace('&', "&amp;").replace('<', "&lt;"));
                }
            }
            Token::EndTag(tag) if part.as_ref().is_some_and(|(_, ends)| *ends == tag.name.0) => part = None,
            _ => {}
        }
    }
    if is_challenge && found.is_empty() {
        return Err("It asks this client to solve a CAPTCHA".to_owned());
    }
    if !is_page {
        return Err("Its response is not a result page".to_owned());
    }
    Ok(found.iter().filter_map(|found| Hit::new(&found.title, &found.url, &found.snippet)).collect())
}

fn has_class(class: &str, names: &[&str]) -> bool {
    class.split_ascii_whitespace().any(|word| names.contains(&word))
}

/// Where a result leads: links go through a counter, `//duckduckgo.com/l/?uddg=<url>`. Empty for advertisements, whose
/// links go through `/y.js`.
fn target(tag: &StartTag<()>) -> String {
    let href = attribute(tag, "href");
    let base = Url::parse("https://duckduckgo.com/").ok();
    let Some(url) = base.and_then(|base| base.join(href.trim()).ok()) else { return String::new() };
    let own = url.host_str().is_some_and(|host| host == "duckduckgo.com" || host.ends_with(".duckduckgo.com"));
    match url.path() {
        "/l/" if own => {
            let led_to = url.query_pairs().find(|(name, _)| name == "uddg");
            let led_to = led_to.map(|(_, value)| value.into_owned()).unwrap_or_default();
            if led_to.contains("duckduckgo.com/y.js") { String::new() } else { led_to }
        }
        "/y.js" if own => String::new(),
        _ => url.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Query;
    use super::{ask, read};

    #[test]
    fn html_results() {
        let asked = ask(&Query { base_url: "https://d", text: "rust & ecs", count: 2, key: "" });
        assert_eq!(asked.url, "https://d/html/?q=rust+%26+ecs");
        let sample = r#"<!DOCTYPE html><html><head><title>x at DuckDuckGo</title></head><body>
            <div id="links" class="results">
            <div class="result results_links result--ad"><h2 class="result__title"><a rel="nofollow" class="result__a"
              href="https://duckduckgo.com/y.js?ad_domain=ad.example&amp;u3=z">Buy</a></h2>
              <a class="result__snippet" href="y">An advertisement</a></div>
            <div class="result results_links web-result"><div class="links_main result__body">
              <h2 class="result__title"><a rel="nofollow" class="result__a"
               href="//duckduckgo.com/l/?uddg=https%3A%2F%2Fone.example%2Fa%3Fb%3Dc&amp;rut=0f">One &amp; <b>two</b> &lt;T&gt;</a></h2>
              <a class="result__url" href="z"> one.example/a </a>
              <a class="result__snippet" href="z">First <b>bold</b> snippet.</a></div></div>
            <div class="result"><a class="result__a" href="https://direct.example/">Direct</a></div>
            </div></body></html>"#;
        let hits = read(sample).unwrap();
        assert_eq!(hits.len(), 2);
        assert_eq!((hits[0].title.as_str(), hits[0].url.as_str()), ("One & two <T>", "https://one.example/a?b=c"));
        assert_eq!(hits[0].snippet, "First bold snippet.");
        assert_eq!((hits[1].url.as_str(), hits[1].snippet.as_str()), ("https://direct.example/", ""));
    }

    #[test]
    fn lite_results_and_no_results() {
        let sample = r#"<table><tr><td>1.</td><td><a rel="nofollow" href="//duckduckgo.com/l/?uddg=https%3A%2F%2Fx.example%2F"
            class='result-link'>X</a></td></tr><tr><td class='result-snippet'>Says <b>x</b></td></tr></table>"#;
        let hits = read(sample).unwrap();
        assert_eq!((hits[0].url.as_str(), hits[0].snippet.as_str()), ("https://x.example/", "Says x"));
        assert_eq!(read(r#"<div class="no-results">None</div>"#).unwrap(), []);
    }

    #[test]
    fn a_challenge_is_not_an_empty_result() {
        let error = read(r#"<div class="anomaly-modal__title">Are you a person?</div>"#).unwrap_err();
        assert!(error.contains("CAPTCHA"), "{error}");
        assert!(read("<html><body>Down for maintenance</body></html>").is_err());
    }
}
