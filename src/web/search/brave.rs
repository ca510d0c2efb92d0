//! Brave Search: `GET /res/v1/web/search?q=...&count=...` with the key in `X-Subscription-Token`.

use reqwest::header::HeaderName;
use serde::Deserialize;

use super::{Asked, Hit, Provider, Query, json, query};

pub(super) const PROVIDER: Provider = Provider {
    name: "brave",
    base_url: "https://api.search.brave.com",
    key_env: "BRAVE_API_KEY",
    accept: "application/json",
    ask,
    read,
};

fn ask(asked: &Query<'_>) -> Asked {
    let count = asked.count.to_string();
    let url = format!("{}/res/v1/web/search?{}", asked.base_url, query(&[("q", asked.text), ("count", &count)]));
    let header = HeaderName::from_static("x-subscription-token");
    Asked { url, header: Some((header, asked.key.to_owned())), json: None }
}

#[derive(Deserialize)]
struct Answer {
    /// Missing when nothing was found; `type` tells an answer from anything else.
    web: Option<Found>,
    #[serde(rename = "type")]
    _kind: String,
}

#[derive(Deserialize)]
struct Found {
    #[serde(default)]
    results: Vec<One>,
}

#[derive(Deserialize)]
struct One {
    title: String,
    url: String,
    description: Option<String>,
}

fn read(text: &str) -> Result<Vec<Hit>, String> {
    let answer: Answer = json(text)?;
    let results = answer.web.map(|web| web.results).unwrap_or_default();
    let hit = |one: One| Hit::new(&one.title, &one.url, &one.description.unwrap_or_default());
    Ok(results.into_iter().filter_map(hit).collect())
}

#[cfg(test)]
mod tests {
    use super::super::Query;
    use super::{ask, read};

    #[test]
    fn requests_and_answers() {
        let asked = ask(&Query { base_url: "https://b", text: "a/b", count: 5, key: "k-1" });
        assert_eq!(asked.url, "https://b/res/v1/web/search?q=a%2Fb&count=5");
        assert_eq!(asked.header.unwrap().1, "k-1");
        let sample = r#"{"type": "search", "query": {"original": "a/b", "more_results_available": true},
            "mixed": {"type": "mixed", "main": []}, "web": {"type": "search", "family_friendly": true, "results": [
            {"type": "search_result", "title": "Title", "url": "https://one.example/", "is_source_local": false,
             "description": "It&#x27;s <strong>bold</strong>", "age": "May 1, 2024", "meta_url": {"scheme": "https"}},
            {"title": "No text", "url": "https://two.example/"}]}}"#;
        let hits = read(sample).unwrap();
        assert_eq!((hits.len(), hits[0].snippet.as_str()), (2, "It's bold"));
        assert_eq!(read(r#"{"type": "search", "query": {}}"#).unwrap(), []);
        assert!(read("{}").is_err());
    }
}
