//! Requests and answers of each form, and answers that are none.

use proptest::prelude::*;

use super::*;
use crate::model::testing;

const FORMS: [Form; 3] = [Form::OpenAi, Form::Cohere, Form::Titan];

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

fn target(base_url: &str, driver: DriverKind) -> Target {
    testing::target(driver, base_url)
}

fn json_of(form: Form, asked: Asked<'_>) -> Value {
    serde_json::from_slice(&body(form, "m", asked)).unwrap()
}

#[test]
fn each_form_has_its_request() {
    let two = texts(&["a", "b"]);
    let asked = Asked { texts: &two, is_query: false, dimensions: None };
    assert_eq!(json_of(Form::OpenAi, asked), json!({ "model": "m", "input": ["a", "b"] }));
    let of_cohere =
        |kind: &str| json!({ "model": "m", "texts": ["a", "b"], "input_type": kind, "embedding_types": ["float"] });
    assert_eq!(json_of(Form::Cohere, asked), of_cohere("search_document"));
    assert_eq!(json_of(Form::Cohere, Asked { is_query: true, ..asked }), of_cohere("search_query"));
    assert_eq!(json_of(Form::Titan, asked), json!({ "inputText": "a" }));
    let small = Asked { dimensions: Some(256), ..asked };
    assert_eq!(json_of(Form::OpenAi, small)["dimensions"], 256);
    assert_eq!(json_of(Form::Cohere, small)["output_dimension"], 256);
    assert_eq!(json_of(Form::Titan, small)["dimensions"], 256);
}

#[test]
fn each_form_has_its_place() {
    let open_ai = |base: &str, driver| open_ai_url(&target(base, driver)).unwrap().to_string();
    assert_eq!(open_ai("https://h/v1", DriverKind::OpenAi), "https://h/v1/embeddings");
    assert_eq!(open_ai("http://127.0.0.1:11434", DriverKind::Ollama), "http://127.0.0.1:11434/v1/embeddings");
    assert_eq!(open_ai("http://127.0.0.1:11434/v1/", DriverKind::Ollama), "http://127.0.0.1:11434/v1/embeddings");
    let cohere = |base: &str| cohere_url(&target(base, DriverKind::OpenAi)).unwrap().to_string();
    for base in ["https://api.cohere.ai/compatibility/v1", "https://api.cohere.ai/v2/", "https://api.cohere.ai"] {
        assert_eq!(cohere(base), "https://api.cohere.ai/v2/embed");
    }
    assert!(cohere_url(&target("ftp://h", DriverKind::OpenAi)).is_err());
    let one = texts(&["a"]);
    let asked = Asked { texts: &one, is_query: false, dimensions: None };
    let embeddings = Embeddings::new(Timeouts::default());
    let bedrock = Target {
        model: "amazon.titan-embed-text-v2:0".into(),
        key: Some(crate::model::provider::Secret::new("id:secret")),
        ..target("http://127.0.0.1:9", DriverKind::Bedrock)
    };
    let post = embeddings.post(Form::Titan, &bedrock, asked).unwrap();
    assert_eq!(post.url.path(), "/model/amazon.titan-embed-text-v2%3A0/invoke");
    assert!(post.headers[header::AUTHORIZATION].to_str().unwrap().starts_with("AWS4-HMAC-SHA256 Credential=id/"));
    let post = embeddings.post(Form::OpenAi, &target("https://h/v1", DriverKind::OpenAi), asked).unwrap();
    assert_eq!(post.headers[header::AUTHORIZATION], "Bearer secret-key");
    assert!(post.headers[header::AUTHORIZATION].is_sensitive());
}

/// Reads an answer for so many texts.
fn answer(form: Form, count: usize, dimensions: Option<u32>, body: &str) -> Result<Embedded, String> {
    let texts = vec![String::new(); count];
    let embedded = read(form, body.as_bytes())?;
    check(&embedded, Asked { texts: &texts, is_query: false, dimensions }).map(|()| embedded)
}

#[test]
fn each_form_has_its_answer() {
    let ordered =
        r#"{"data":[{"index":1,"embedding":[0,1]},{"index":0,"embedding":[1,0.5]}],"usage":{"prompt_tokens":7}}"#;
    let found = answer(Form::OpenAi, 2, None, ordered).unwrap();
    assert_eq!((found.vectors, found.tokens), (vec![vec![1.0, 0.5], vec![0.0, 1.0]], Some(7)));
    let bare = r#"{"data":[{"embedding":[1]},{"embedding":[2]}],"usage":{"total_tokens":3}}"#;
    let found = answer(Form::OpenAi, 2, None, bare).unwrap();
    assert_eq!((found.vectors, found.tokens), (vec![vec![1.0], vec![2.0]], Some(3)));
    let cohere = r#"{"id":"x","embeddings":{"float":[[1,2],[3,4]]},"meta":{"billed_units":{"input_tokens":5}}}"#;
    let found = answer(Form::Cohere, 2, None, cohere).unwrap();
    assert_eq!((found.vectors, found.tokens), (vec![vec![1.0, 2.0], vec![3.0, 4.0]], Some(5)));
    let found = answer(Form::Titan, 1, Some(2), r#"{"embedding":[1,2],"inputTextTokenCount":4}"#).unwrap();
    assert_eq!((found.vectors, found.tokens), (vec![vec![1.0, 2.0]], Some(4)));
}

#[test]
fn an_answer_is_whole_or_none() {
    for (body, why) in [
        (r#"{"data":[{"index":0,"embedding":[1]},{"index":0,"embedding":[1]}]}"#, "repeated"),
        (r#"{"data":[{"index":0,"embedding":[1]},{"index":2,"embedding":[1]}]}"#, "too large"),
        (r#"{"data":[{"index":0,"embedding":[1]},{"embedding":[1]}]}"#, "missing"),
        (r#"{"data":[{"index":0,"embedding":[1]}]}"#, "1 vectors for 2 texts"),
        (r#"{"data":[{"index":0,"embedding":[1]},{"index":1,"embedding":[1,2]}]}"#, "2 dimensions instead of 1"),
        (r#"{"data":[{"index":0,"embedding":[]},{"index":1,"embedding":[]}]}"#, "0 dimensions"),
        (r#"{"data":[{"index":0,"embedding":[1]},{"index":1,"embedding":[null]}]}"#, "cannot be read"),
        (r#"{"data":[{"index":0,"embedding":[1]},{"index":1,"embedding":[NaN]}]}"#, "cannot be read"),
        (r#"{"data":[{"index":0,"embedding":[1]},{"index":1,"embedding":[1e39]}]}"#, "cannot be read"),
        (r#"{"data":[{"index":0,"embedding":[1]},{"index":1,"embedding":"AACAPw=="}]}"#, "cannot be read"),
        (r#"{"error":"secret words of a provider"}"#, "cannot be read"),
        ("", "cannot be read"),
    ] {
        let error = answer(Form::OpenAi, 2, None, body).unwrap_err();
        assert!(error.contains(why) && !error.contains("secret"), "{body}: {error}");
    }
    let error = answer(Form::OpenAi, 1, Some(3), r#"{"data":[{"embedding":[1,2]}]}"#).unwrap_err();
    assert!(error.contains("2 dimensions instead of 3"), "{error}");
    let long = format!(r#"{{"embedding":[{}1]}}"#, "1,".repeat(DIMENSIONS_MAX));
    assert!(answer(Form::Titan, 1, None, &long).unwrap_err().contains("8193 dimensions"));
}

proptest! {
    #[test]
    fn any_bytes_are_an_answer_or_an_error(bytes: Vec<u8>) {
        for form in FORMS {
            let _ = read(form, &bytes);
        }
    }

    #[test]
    fn indexes_order_the_vectors(order in Just((0..8_usize).collect::<Vec<_>>()).prop_shuffle()) {
        let items = order.iter().map(|index| Item { embedding: vec![*index as f32], index: Some(*index) }).collect();
        let vectors = in_order(items).unwrap();
        prop_assert_eq!(vectors, (0..8).map(|index| vec![index as f32]).collect::<Vec<_>>());
    }

    #[test]
    fn what_is_read_was_asked_for(
        vectors in proptest::collection::vec(proptest::collection::vec(-1e3_f32..1e3, 0..4), 0..4), count in 0_usize..4,
    ) {
        let data: Vec<Value> =
            vectors.iter().enumerate().map(|(index, vector)| json!({ "index": index, "embedding": vector })).collect();
        if let Ok(found) = answer(Form::OpenAi, count, None, &json!({ "data": data }).to_string()) {
            prop_assert_eq!(found.vectors.len(), count);
            prop_assert!(found.vectors.iter().all(|vector| vector.len() == found.vectors[0].len() && !vector.is_empty()));
        }
    }
}
