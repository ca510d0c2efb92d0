//! Tavily: `POST /search` with the query as JSON and the key as a bearer token.

use reqwest::header::AUTHORIZATION;
use serde::Deserialize;
use serde_json::json;

use super::{Asked, Hit, Provider, Query};

pub(super) const PROVIDER: Provider = Provider {
    name: "tavily",
    base_url: "https://api.tavily.com",
    key_env: "TAVILY_API_KEY",
    accept: "application/json",
    ask,
    read,
};

fn ask(asked: &Query<'_>) -> Asked {
    let body = json!({"query": asked.text, "max_results": asked.count, "search_depth": "basic"});
    let header = Some((AUTHORIZATION, format!("Bearer {}", asked.key)));
    Asked { url: format!("{}/search", asked.base_url), header, json: Some(body.to_string()) }
}

#[derive(Deserialize)]
struct Answer {
    results: Vec<Found>,
}

#[derive(Deserialize)]
struct Found {
    #[serde(default)]
    title: String,
    url: String,
    #[serde(default)]
    content: String,
}

fn read(text: &str) -> Result<Vec<Hit>, String> {
    let answer: Answer = super::json(text)?;
    Ok(answer.results.into_iter().filter_map(|found| Hit::new(&found.title, &found.url, &found.content)).collect())
}

#[cfg(test)]
mod tests {
    use super::super::Query;
    use super::{ask, read};

    #[test]
    fn requests_and_answers() {
        let asked = ask(&Query { base_url: "https://t", text: "say \"hi\"", count: 2, key: "tvly-1" });
        assert_eq!(asked.url, "https://t/search");
        assert_eq!(asked.header.unwrap().1, "Bearer tvly-1");
        let body: serde_json::Value = serde_json::from_str(&asked.json.unwrap()).unwrap();
        assert_eq!((&body["query"], &body["max_results"]), (&"say \"hi\"".into(), &2.into()));
        let sample = r#"{"query": "x", "follow_up_questions": null, "answer": null, "images": [], "results": [
            {"url": "https://one.example/", "title": "One", "content": "Text", "score": 0.99, "raw_content": null}],
            "response_time": 0.67, "request_id": "r"}"#;
        let hits = read(sample).unwrap();
        assert_eq!((hits[0].title.as_str(), hits[0].snippet.as_str()), ("One", "Text"));
    }
}
