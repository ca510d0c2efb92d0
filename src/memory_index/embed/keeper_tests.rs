//! Vectors of a scripted provider: kept up to date over changes, failures, restarts and other embedders.

use std::collections::VecDeque;
use std::time::Instant;

use agentsvc_api::proactive_memory::search::{INDEX_WAIT, MemorySearch, SearchMode, SearchScope, SearchWait};
use agentsvc_components::turn::outcome::FailureCode;
use agentsvc_components::{AgentId, Refusal, RefusalKind};
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tokio::runtime::Runtime;

use super::super::remote::{AskError, Asking, By, Provider};
use super::*;
use crate::memory_index::testing::{Fixture, agent, id, said};
use crate::model::embeddings::{Embedded, Form};
use crate::model::error::CallError;
use crate::model::provider::Target;

/// How long a test waits for the thread.
const PATIENCE: Duration = Duration::from_secs(20);

fn wait(vector: Duration) -> SearchWait {
    SearchWait { vector_until: Instant::now() + vector, index: INDEX_WAIT }
}

/// A provider whose vectors tell animals from vehicles, and that says what it was asked.
#[derive(Default)]
struct Scripted {
    /// What the next calls come to; then they are answered.
    script: Mutex<VecDeque<AskError>>,
    /// A text with this word is refused.
    refused: Mutex<Option<&'static str>>,
    asked: Mutex<Vec<Vec<String>>>,
    dimensions: AtomicU64,
    is_silent: AtomicBool,
}

impl Scripted {
    fn vector(&self, text: &str) -> Vec<f32> {
        let has = |words: &[&str]| f32::from(u8::from(words.iter().any(|word| text.contains(word))));
        let mut vector = vec![has(&["dog", "puppy"]), has(&["car", "truck"]), 0.01];
        vector.resize(self.dimensions.load(Ordering::Acquire).max(3) as usize, 0.0);
        vector
    }

    fn count(&self) -> usize {
        self.asked.lock().iter().map(Vec::len).sum()
    }
}

struct Shared(Arc<Scripted>);

impl Provider for Shared {
    fn target(&self) -> Result<Target, CallError> {
        Ok(Target { context_tokens: 64, ..Target::default() })
    }

    fn texts_max(&self) -> usize {
        4
    }

    fn ask<'a>(&'a self, _: &'a Target, texts: &'a [String], _: By) -> BoxFuture<'a, Asking> {
        let scripted = &self.0;
        scripted.asked.lock().push(texts.to_vec());
        let refused = *scripted.refused.lock();
        let answer = match scripted.script.lock().pop_front() {
            Some(error) => Err(error),
            None if refused.is_some_and(|word| texts.iter().any(|text| text.contains(word))) => {
                Err(AskError::Call(CallError::last(FailureCode::ProviderRefused, "too long")))
            }
            None => {
                let vectors = texts.iter().map(|text| scripted.vector(text)).collect();
                Ok(Embedded { vectors, tokens: None })
            }
        };
        let is_silent = scripted.is_silent.load(Ordering::Acquire);
        Box::pin(async move {
            if is_silent {
                std::future::pending::<()>().await;
            }
            answer
        })
    }
}

struct Vectors {
    runtime: Runtime,
    provider: Arc<Scripted>,
    fixture: Fixture,
    stored: Option<Arc<Stored>>,
}

fn config(model: &str, chunks: Chunks) -> Remote {
    Remote { provider: "openai", form: Form::OpenAi, model: model.into(), api_key_env: None, dimensions: None, chunks }
}

impl Vectors {
    fn new() -> Self {
        let runtime = Runtime::new().expect("a runtime");
        Self { runtime, provider: Arc::default(), fixture: Fixture::new(), stored: None }
    }

    fn start(&mut self, model: &str, chunks: Chunks) -> Arc<Stored> {
        let provider = Box::new(Shared(Arc::clone(&self.provider)));
        let embedder = RemoteEmbedder::new(provider, self.runtime.handle().clone());
        let entries = Arc::clone(&self.fixture.rows) as Arc<dyn EntryStore>;
        let parts = Parts { entries, root: self.fixture.dir.path().join("vectors"), is_another: Box::new(|| false) };
        let stored = Stored::start(&config(model, chunks), embedder, parts).expect("a thread");
        let of = Arc::clone(&stored);
        self.fixture.index.vectors = Box::new(move || Some(Arc::clone(&of) as _));
        self.stored = Some(Arc::clone(&stored));
        stored
    }

    /// Ends the thread, and waits until it has let go of the files.
    fn stop(&mut self) {
        self.fixture.index.vectors = Box::new(|| None);
        let shared = self.stored.take().map(|stored| Arc::downgrade(&stored.shared));
        until(|| shared.as_ref().is_none_or(|shared| shared.strong_count() == 0));
    }

    fn put(&self, agent: AgentId, entries: &[(u128, &str)]) {
        self.fixture.put(agent, entries.iter().map(|(number, text)| (id(*number), said(text))));
        self.tell(agent, entries.iter().map(|(number, _)| *number));
    }

    fn tell(&self, agent: AgentId, numbers: impl Iterator<Item = u128>) {
        let ids = numbers.map(id).collect();
        let changed = EntriesChanged { agent, number: 1, entries: ChangedEntries::These(ids) };
        self.stored.iter().for_each(|stored| stored.tell(&changed));
    }

    fn state(&self) -> Embeddings {
        self.stored.as_ref().expect("started").state()
    }

    fn ready(&self) {
        until(|| self.state().state == EmbeddingState::Ready);
    }

    fn search(&self, query: &str) -> (SearchMode, Vec<u128>) {
        let scope = SearchScope::default();
        let found = self.fixture.index.search_within(&scope, query, 10, wait(PATIENCE)).expect("a search");
        (found.mode, found.hits.iter().map(|hit| hit.id.0.as_u128()).collect())
    }
}

fn until(mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < end, "it did not come to it");
        std::thread::yield_now();
    }
}

fn passing(after: Duration) -> AskError {
    let error = CallError::passing(FailureCode::ProviderRateLimited, "slow down");
    AskError::Call(CallError { retry_after: Some(after), ..error })
}

#[test]
fn what_changes_is_embedded_once_and_what_is_gone_leaves_nothing() {
    let mut vectors = Vectors::new();
    vectors.put(agent(1), &[(1, "the dog sleeps"), (2, "a red car")]);
    let stored = vectors.start("m", Chunks::default());
    vectors.ready();
    assert_eq!(vectors.search("puppy"), (SearchMode::Hybrid, vec![1]));
    assert_eq!(vectors.state().embedded, Some(2));
    vectors.put(agent(2), &[(3, "an old truck")]);
    vectors.put(agent(1), &[(2, "a puppy and a dog")]);
    vectors.ready();
    assert_eq!(vectors.search("truck"), (SearchMode::Hybrid, vec![3]));
    assert_eq!(vectors.state().embedded, Some(3));
    let asked = vectors.provider.count();
    assert_eq!(vectors.search("truck").1, [3]);
    assert_eq!(vectors.provider.count(), asked, "the vector of the query is known");
    vectors.fixture.rows.0.lock().remove(&(agent(1), id(1)));
    vectors.tell(agent(1), std::iter::once(1));
    let gone = EntriesChanged { agent: agent(2), number: 2, entries: ChangedEntries::Gone };
    vectors.fixture.rows.0.lock().retain(|(of, _), _| *of != agent(2));
    stored.tell(&gone);
    until(|| vectors.state().embedded == Some(1));
    let keys = stored.shared.store.get().unwrap().keys(&[0; 32], &[], 10).unwrap();
    assert_eq!(keys, [key_of(agent(1).0.as_bytes(), id(2).0.as_bytes())]);
}

#[test]
fn a_restart_goes_on_where_it_was_and_another_model_begins_anew() {
    let mut vectors = Vectors::new();
    let all: Vec<(u128, String)> = (1..=20).map(|n| (n, format!("dog number {n}"))).collect();
    let entries: Vec<(u128, &str)> = all.iter().map(|(number, text)| (*number, text.as_str())).collect();
    vectors.put(agent(1), &entries);
    // Two calls are answered; then the provider says nothing, and the process ends.
    vectors.start("m", Chunks::default());
    until(|| vectors.state().embedded >= Some(8));
    vectors.provider.is_silent.store(true, Ordering::Release);
    let before = vectors.state().embedded.unwrap();
    vectors.runtime = Runtime::new().expect("a runtime");
    vectors.stop();
    vectors.provider.is_silent.store(false, Ordering::Release);
    vectors.provider.asked.lock().clear();
    vectors.start("m", Chunks::default());
    vectors.ready();
    assert_eq!(vectors.state().embedded, Some(20));
    assert!(vectors.provider.count() <= 20 - before as usize, "what was stored is not asked for again");
    vectors.stop();
    vectors.provider.asked.lock().clear();
    vectors.provider.dimensions.store(5, Ordering::Release);
    vectors.start("other", Chunks::default());
    vectors.ready();
    let state = vectors.state();
    assert_eq!((&*state.model, state.dimensions, state.embedded), ("openai/other", Some(5), Some(20)));
    assert_eq!(vectors.provider.count(), 20);
    until(|| std::fs::read_dir(vectors.fixture.dir.path().join("vectors")).unwrap().count() == 1);
}

#[test]
fn while_the_provider_is_down_words_are_searched_and_the_state_says_so() {
    let mut vectors = Vectors::new();
    vectors.put(agent(1), &[(1, "the dog sleeps")]);
    vectors.provider.script.lock().push_back(passing(Duration::from_secs(2)));
    vectors.start("m", Chunks::default());
    until(|| vectors.state().error.is_some());
    let state = vectors.state();
    assert_eq!((state.state, state.error.as_deref()), (EmbeddingState::Waiting, Some("slow down")));
    assert_eq!(vectors.search("dog"), (SearchMode::Lexical, vec![1]));
    assert_eq!(vectors.provider.count(), 1, "it is left alone");
    vectors.ready();
    assert_eq!(vectors.search("puppy"), (SearchMode::Hybrid, vec![1]));
    // The budget of an agent has no room for a query about it; others go on.
    let no_money = || AskError::World(Refusal::new(RefusalKind::TooMany, "no money"));
    vectors.provider.script.lock().push_back(no_money());
    assert_eq!(vectors.search("truck").0, SearchMode::Lexical);
    assert_eq!((vectors.state().state, vectors.search("a dog").0), (EmbeddingState::Ready, SearchMode::Hybrid));
    // Nor has that of all for one about several.
    vectors.put(agent(2), &[(2, "the truck stops")]);
    vectors.ready();
    vectors.provider.script.lock().push_back(no_money());
    assert_eq!(vectors.fixture.index.search(&SearchScope::default(), "truck", 10).unwrap().mode, SearchMode::Lexical);
    until(|| vectors.state().error.as_deref() == Some("no money"));
    assert_eq!(vectors.search("dogs").0, SearchMode::Lexical);
}

#[test]
fn a_search_waits_no_longer_than_it_may() {
    let mut vectors = Vectors::new();
    vectors.put(agent(1), &[(1, "the dog sleeps")]);
    vectors.start("m", Chunks::default());
    vectors.ready();
    vectors.provider.is_silent.store(true, Ordering::Release);
    let begun = Instant::now();
    let found =
        vectors.fixture.index.search_within(&SearchScope::default(), "dog", 10, wait(Duration::from_millis(50)));
    assert_eq!(found.unwrap().mode, SearchMode::Lexical);
    assert!(begun.elapsed() < PATIENCE / 4);
    for n in 0..20 {
        let text = format!("dog {n}");
        let found =
            vectors.fixture.index.search_within(&SearchScope::default(), &text, 10, wait(Duration::from_millis(1)));
        assert_eq!(found.unwrap().mode, SearchMode::Lexical);
    }
    assert!(vectors.provider.asked.lock().iter().filter(|texts| texts[0].starts_with("dog")).count() <= 8);
}

#[test]
fn a_text_that_the_model_refuses_does_not_hold_up_the_others() {
    let mut vectors = Vectors::new();
    *vectors.provider.refused.lock() = Some("poison");
    vectors.put(agent(1), &[(1, "a dog"), (2, "poison"), (3, "a car"), (4, "a puppy")]);
    vectors.start("m", Chunks::default());
    vectors.ready();
    assert_eq!(vectors.state().embedded, Some(4));
    let (mode, mut found) = vectors.search("dog");
    found.sort_unstable();
    assert_eq!((mode, found), (SearchMode::Hybrid, vec![1, 4]));
    // Where every text is refused it is no text's fault.
    *vectors.provider.refused.lock() = Some("");
    vectors.put(agent(1), &[(5, "a truck")]);
    until(|| vectors.state().state == EmbeddingState::Waiting);
    assert_eq!(vectors.state().embedded, Some(4));
}

#[test]
fn vectors_of_other_dimensions_are_not_stored() {
    let mut vectors = Vectors::new();
    vectors.put(agent(1), &[(1, "a dog")]);
    vectors.start("m", Chunks::default());
    vectors.ready();
    vectors.provider.dimensions.store(4, Ordering::Release);
    vectors.put(agent(1), &[(2, "a car")]);
    until(|| vectors.state().error.is_some());
    assert!(vectors.state().error.unwrap().contains("4 dimensions"));
    let asked = vectors.provider.count();
    assert_eq!(vectors.search("dog").0, SearchMode::Lexical);
    assert_eq!(vectors.provider.count(), asked, "nothing is paid that cannot be used");
}

#[test]
fn a_model_that_answers_queries_with_other_dimensions_is_left_alone() {
    let mut vectors = Vectors::new();
    vectors.put(agent(1), &[(1, "a dog")]);
    vectors.start("m", Chunks::default());
    vectors.ready();
    vectors.provider.dimensions.store(4, Ordering::Release);
    let asked = vectors.provider.count();
    for query in ["dog", "a puppy", "a truck"] {
        assert_eq!(vectors.search(query).0, SearchMode::Lexical);
    }
    assert_eq!(vectors.provider.count(), asked + 1);
    let state = vectors.state();
    assert_eq!(state.state, EmbeddingState::Waiting);
    assert!(state.error.unwrap().contains("set another embedding_model"));
}

#[test]
fn a_query_is_not_paid_that_has_nothing_to_be_compared_with() {
    let mut vectors = Vectors::new();
    *vectors.provider.refused.lock() = Some("poison");
    vectors.put(agent(1), &[(1, "poison")]);
    vectors.put(agent(2), &[(2, "a dog")]);
    vectors.start("m", Chunks::default());
    vectors.ready();
    let (asked, of) = (vectors.provider.count(), |n| SearchScope { agent: Some(agent(n)), ..SearchScope::default() });
    let mode = |scope: &SearchScope| vectors.fixture.index.search(scope, "puppy", 10).unwrap().mode;
    assert_eq!((mode(&of(1)), vectors.provider.count()), (SearchMode::Lexical, asked));
    assert_eq!((mode(&of(2)), vectors.provider.count()), (SearchMode::Hybrid, asked + 1));
}

#[test]
fn a_provider_that_would_answer_too_late_is_asked_rarely() {
    let vectors = Vectors::new();
    let embedder =
        RemoteEmbedder::new(Box::new(Shared(Arc::clone(&vectors.provider))), vectors.runtime.handle().clone());
    let (short, long) = (Duration::from_millis(500), Duration::from_secs(1));
    assert!(!embedder.is_too_slow(short), "nothing is known yet");
    embedder.took(Duration::from_millis(900));
    assert!(embedder.is_too_slow(short) && !embedder.is_too_slow(long));
    let asked = (0..100).find(|_| !embedder.is_too_slow(short));
    assert!(asked.is_some_and(|skipped| skipped > 3), "it is tried again after some: {asked:?}");
    (0..5).for_each(|_| embedder.took(Duration::from_millis(50)));
    assert!(!embedder.is_too_slow(short));
}

#[test]
fn the_piece_that_matches_best_counts() {
    let mut vectors = Vectors::new();
    let long = format!("{} puppy {}", "some words ".repeat(30), "other words ".repeat(30));
    vectors.put(agent(1), &[(1, long.as_str()), (2, "a red car")]);
    let stored = vectors.start("m", Chunks(Some((100, 10))));
    vectors.ready();
    assert_eq!(vectors.search("dog"), (SearchMode::Hybrid, vec![1]));
    let row = stored.shared.store.get().unwrap().get(&key_of(agent(1).0.as_bytes(), id(1).0.as_bytes()));
    assert!(row.unwrap().unwrap().vectors.len() > 5);
    assert!(vectors.provider.asked.lock().iter().all(|texts| texts.len() == 1 || texts.concat().len() <= 64));
}

#[test]
fn texts_must_be_more_similar_than_usual() {
    let near: Vec<Option<f32>> = (0..40).map(|n| Some(if n == 3 { 0.9 } else { 0.8 })).chain([None]).collect();
    let above = above_usual(&near);
    assert_eq!(above.iter().filter(|near| **near > 0.0).count(), 1);
    assert!(above[3] > 0.8);
    assert!(above_usual(&[Some(0.9); 50]).iter().all(|near| *near > 0.0), "all alike");
    assert_eq!(above_usual(&[Some(0.1), Some(0.3), None]), [0.0, 0.3, 0.0]);
}

#[test]
fn keys_have_a_next_one() {
    assert_eq!(next([0xff; 32]), None);
    let mut key = [0; 32];
    (key[30], key[31]) = (1, 0xff);
    assert_eq!(next(key).map(|next| (next[30], next[31])), Some((2, 0)));
}
