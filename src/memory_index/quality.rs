//! Prints how many questions about recorded conversations find their answer, and keeps it from falling:
//! `cargo test -p agentsvc --lib memory_index::quality -- --nocapture`. With `MEMORY_MODEL=<folder>` a static model takes part.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use agentsvc_api::proactive_memory::search::{MemorySearch, SearchScope};

use super::embed::{Chunks, Hashed, Similar, StaticModel, Vectors};
use super::testing::{Fixture, agent, id, said};

/// The conversations; the form is said at their beginning.
const CONVERSATIONS: &str = include_str!("../../tests/memory_quality/conversations.txt");
/// Hits among which the answer has to be.
const HITS: usize = 5;
/// Share of the questions that find their answer by words alone. May only grow.
const LEXICAL_LEAST: f32 = 0.80;
/// The same with vectors of pieces of words.
const HASHED_LEAST: f32 = 0.79;
/// The same with a static model.
const STATIC_LEAST: f32 = 0.85;

/// A question, in which language it is, and the number of the answer.
struct Question {
    language: &'static str,
    text: &'static str,
    answer: u128,
}

/// All that was said, and the questions.
fn read() -> (Vec<&'static str>, Vec<Question>) {
    let (mut said, mut questions, mut language, mut answer) = (Vec::new(), Vec::new(), "", 0);
    for line in CONVERSATIONS.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        match line.split_once(' ') {
            Some(("-", text)) => said.push(text),
            Some(("*", text)) => {
                answer = said.len() as u128;
                said.push(text);
            }
            Some(("?", text)) => questions.push(Question { language, text, answer }),
            _ => language = line,
        }
    }
    (said, questions)
}

/// The share of the questions whose answer is among the first hits: all that was said belongs to one agent.
fn recall(mode: &str, vectors: Option<Vectors>) -> f32 {
    let (texts, questions) = read();
    let mut fixture = Fixture::new();
    fixture.put(agent(1), (0..).map(id).zip(texts.iter().map(|text| said(text))));
    let vectors = vectors.map(|vectors| Arc::new(vectors) as Arc<dyn Similar>);
    fixture.index.vectors = Box::new(move || vectors.clone());
    let scope = SearchScope { agent: Some(agent(1)), ..SearchScope::default() };
    let mut of: BTreeMap<&str, (u32, u32)> = BTreeMap::new();
    for question in &questions {
        let hits = fixture.index.search(&scope, question.text, HITS).expect("a search").hits;
        let counts = of.entry(question.language).or_default();
        counts.0 += u32::from(hits.iter().any(|hit| hit.id == id(question.answer)));
        counts.1 += 1;
    }
    let found: u32 = of.values().map(|(found, _)| found).sum();
    let share = found as f32 / questions.len() as f32;
    println!(
        "{mode}: recall@{HITS} {share:.3}, {found} of {} questions, {} entries; {of:?}",
        questions.len(),
        texts.len()
    );
    share
}

#[test]
fn answers_are_found() {
    let (_, questions) = read();
    assert!(questions.len() >= 200);
    let (lexical, hashed) =
        (recall("lexical", None), recall("hashed", Some(Vectors::new(Box::new(Hashed), Chunks::default()))));
    assert!(lexical >= LEXICAL_LEAST, "{lexical}");
    assert!(hashed >= HASHED_LEAST, "{hashed}");
    if let Some(folder) = std::env::var_os("MEMORY_MODEL") {
        let model = StaticModel::open(Path::new(&folder)).expect("a model");
        let share = recall("static", Some(Vectors::new(Box::new(model), Chunks::default())));
        assert!(share >= STATIC_LEAST, "{share}");
    }
}
