//! SearXNG: a search engine that anyone can run. `GET {base_url}/search?q=...&format=json`; the format must be switched
//! on in its settings.

use serde::Deserialize;

use super::{Asked, Hit, Provider, Query, json, query};

pub(super) const PROVIDER: Provider =
    Provider { name: "searxng", base_url: "", key_env: "", accept: "application/json", ask, read };

fn ask(asked: &Query<'_>) -> Asked {
    let url = format!("{}/search?{}", asked.base_url, query(&[("q", asked.text), ("format", "json")]));
    Asked { url, header: None, json: None }
}

#[derive(Deserialize)]
struct Answer {
    results: Vec<Found>,
}

#[derive(Deserialize)]
struct Found {
    url: Option<String>,
    title: Option<String>,
    content: Option<String>,
}

fn read(text: &str) -> Result<Vec<Hit>, String> {
    let answer: Answer = json(text)?;
    let hit =
        |found: Found| Hit::new(&found.title.unwrap_or_default(), &found.url?, &found.content.unwrap_or_default());
    Ok(answer.results.into_iter().filter_map(hit).collect())
}

#[cfg(test)]
mod tests {
    use super::super::Query;
    use super::{ask, read};

    #[test]
    fn requests_and_answers() {
        let asked = ask(&Query { base_url: "http://s.lan/x", text: "rust ecs", count: 3, key: "" });
        assert_eq!(asked.url, "http://s.lan/x/search?q=rust+ecs&format=json");
        assert!(asked.header.is_none() && asked.json.is_none());
        let sample = r#"{"query": "rust ecs", "number_of_results": 0, "results": [
            {"url": "https://one.example/", "title": "One &amp; only", "content": "First <b>snippet</b>",
             "engine": "x", "parsed_url": ["https", "one.example", "/", "", "", ""], "score": 1.5},
            {"url": "https://two.example/a?b=c", "title": "Two", "content": null, "publishedDate": null},
            {"title": "an answer without an address"}
        ], "answers": [], "infoboxes": [], "suggestions": [], "unresponsive_engines": [["y", "timeout"]]}"#;
        let hits = read(sample).unwrap();
        assert_eq!(hits.len(), 2);
        assert_eq!((hits[0].title.as_str(), hits[0].snippet.as_str()), ("One & only", "First snippet"));
        assert_eq!((hits[1].url.as_str(), hits[1].snippet.as_str()), ("https://two.example/a?b=c", ""));
        assert_eq!(read(r#"{"results": []}"#).unwrap(), []);
    }
}
