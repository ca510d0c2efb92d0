//! What a driver asks, and how.

use agentsvc::model::images::Images;
use agentsvc_components::FileId;
use agentsvc_components::session::message::{Block, Role, text_of};
use serde_json::json;
use uuid::Uuid;

use super::asking::{Ask, ask, conversation, question, right, text, told, tool};
use super::script::Script;
use super::server::Server;
use super::speaks::{Heard, Speaks};

pub(crate) async fn what_is_asked(speaker: &dyn Speaks) {
    for streaming in [false, true] {
        let (heard, _) = told(speaker, &Script::text(&["x"]), question(streaming)).await;
        assert_eq!((heard.model.as_str(), heard.streaming), (speaker.model(), streaming));
        assert_eq!((heard.system.as_str(), heard.said), ("Be brief.", vec!["user: question".to_owned()]));
        assert_eq!((heard.tools, heard.choice, heard.temperature), (Vec::new(), None, None));
    }
    let mut silent = question(false);
    silent.prompt.system.clear();
    assert_eq!(told(speaker, &Script::text(&["x"]), silent).await.0.system, "");
}

async fn heard(speaker: &dyn Speaks, change: impl FnOnce(&mut Ask)) -> Heard {
    let mut question = question(false);
    change(&mut question);
    told(speaker, &Script::text(&["x"]), question).await.0
}

pub(crate) async fn how_it_is_asked(speaker: &dyn Speaks) {
    let parameters = |text: &str| Some(text.to_owned().into_boxed_str());
    let of = heard(speaker, |ask| {
        ask.temperature = Some(0.5);
        ask.max_tokens = Some(64);
        ask.asked.parameters = parameters(r#"{"stop":["END","STOP"]}"#);
    });
    let of = of.await;
    assert_eq!((of.temperature, of.max_tokens), (Some(0.5), Some(64)));
    let stops = |stops: &[&str]| -> Vec<String> {
        stops.iter().filter(|_| speaker.takes_stops()).map(|stop| (*stop).to_owned()).collect()
    };
    assert_eq!(of.stops, stops(&["END", "STOP"]));
    let of = heard(speaker, |ask| ask.asked.parameters = parameters(r#"{"top_p":0.25,"stop":"END"}"#)).await;
    assert_eq!((of.top_p, of.stops), (Some(0.25), stops(&["END"])));

    let named = r#"{"type":"function","function":{"name":"look"}}"#;
    for (choice, expected) in [("\"auto\"", "auto"), ("\"required\"", "any"), (named, "look")] {
        let of = heard(speaker, |ask| {
            ask.tools = vec![tool("look")];
            ask.asked.tool_choice = Some(choice.to_owned());
        });
        let expected = Some(expected).filter(|_| speaker.takes_choice());
        assert_eq!(of.await.choice.as_deref(), expected);
    }
    let of = heard(speaker, |ask| {
        ask.tools = vec![tool("look")];
        ask.asked.tool_choice = Some("\"none\"".to_owned());
    });
    let of = of.await;
    assert!(of.choice.as_deref() == Some("none") || of.tools.is_empty(), "{of:?}");

    let schema = json!({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"],
        "additionalProperties": false});
    let format = json!({"response_format": {"type": "json_schema",
        "json_schema": {"name": "n", "strict": true, "schema": schema}}});
    let of = heard(speaker, |ask| ask.asked.parameters = parameters(&format.to_string())).await;
    let got = of.schema.expect("the schema goes along");
    assert_eq!((&got["required"], &got["properties"]["a"]["type"]), (&json!(["a"]), &json!("integer")));
}

pub(crate) async fn pictures(speaker: &dyn Speaks) {
    let file = FileId(Uuid::from_u128(7));
    let gone = FileId(Uuid::from_u128(8));
    let picture = |file| Block::Image { media_type: "image/png".to_owned(), file, bytes: 3 };
    let said = vec![(Role::User, vec![text("look at"), picture(file), text("and"), picture(gone)])];
    let mut question = conversation(false, said);
    question.images = Images::of(&question.prompt, &|id, _| (id == file).then(|| b"abc".to_vec()));
    let (heard, _) = told(speaker, &Script::text(&["x"]), question).await;
    let lines = heard.said.join("\n");
    assert!(heard.said.contains(&"image image/png YWJj".to_owned()), "{lines}");
    assert_eq!(lines.matches("image image/").count(), 1, "{lines}");
    assert!(lines.contains("look at") && lines.contains("the file no longer exists"), "{lines}");
}

pub(crate) async fn one_after_the_other(speaker: &'static dyn Speaks) {
    let server = Server::answering(move |number| {
        let script = Script::text(&["number ", &number.to_string()]);
        right(speaker, &script, number % 2 == 0)
    })
    .await;
    for number in 0..6 {
        let answer = ask(speaker, &server, question(number % 2 == 0)).await.answer();
        assert_eq!(text_of(&answer.blocks), format!("number {number}"));
    }
}
