//! Searches of few entries and of many, and the index over changes, restarts and damage.

use std::path::Path;
use std::sync::atomic::Ordering;

use agentsvc_components::SessionId;
use agentsvc_components::proactive_memory::Level;
use agentsvc_components::proactive_memory::recall::RecallScope;
use agentsvc_components::proactive_memory::record::MemoryEntryRecord;
use rustix::fs::{CWD, FileType, Mode};

use super::super::embed::tests::write_model;
use super::super::embed::{Chunks, StaticModel, Vectors};
use super::super::testing::{Fixture, NOW, agent, id, said};
use super::*;

fn all() -> SearchScope {
    SearchScope::default()
}

fn of(number: u128) -> SearchScope {
    SearchScope { agent: Some(agent(number)), ..all() }
}

fn of_user(user: &str) -> SearchScope {
    SearchScope { user: Some(user.into()), ..all() }
}

#[test]
fn few_entries_need_no_index() {
    let fixture = Fixture::new();
    fixture.put(agent(1), [(id(1), said("I live in Leeds")), (id(2), said("my dog is called Biscuit"))]);
    fixture.put(agent(2), [(id(3), said("the dogs of Leeds"))]);
    assert_eq!(fixture.found(&of(1), "dog"), [id(2)]);
    assert_eq!(fixture.found(&all(), "Leeds"), [id(3), id(1)]);
    assert!(fixture.found(&all(), "cat").is_empty());
    assert!(!fixture.index.worker.runs());
    assert!(!fixture.dir.path().join("index").exists());
}

#[test]
fn long_entries_are_many_sooner() {
    let fixture = Fixture::new();
    let long = "word ".repeat(3_000);
    fixture.put(agent(1), (0..80).map(|n| (id(n), said(&format!("{long} zebra{n}")))));
    fixture.found(&of(1), "zebra7");
    assert!(fixture.index.worker.runs());
    fixture.index.worker.compared().unwrap();
    assert_eq!(fixture.found(&of(1), "zebra7")[0], id(7));
}

/// What is true of few entries and of many.
fn scopes_hold(fixture: &Fixture) {
    let record = |user: Option<&str>, level, confidence| {
        let user = user.map(Into::into);
        MemoryEntryRecord { user, level, confidence, ..said("a zebra crossed the street") }
    };
    let mine = [
        (id(901), record(Some("ada"), Level::User, 0.5)),
        (id(902), record(Some("bob"), Level::User, 1.0)),
        (id(903), record(None, Level::Agent, 0.7)),
        (id(904), MemoryEntryRecord { deleted_at: Some(NOW), ..record(Some("ada"), Level::User, 1.0) }),
        (id(905), MemoryEntryRecord { expires_at: Some(NOW), ..record(Some("ada"), Level::User, 1.0) }),
    ];
    fixture.put(agent(901), mine);
    fixture.put(agent(902), [(id(906), record(Some("ada"), Level::Session, 0.6))]);
    assert_eq!(fixture.found(&all(), "zebras"), [id(902), id(903), id(906), id(901)], "the surer first");
    assert_eq!(fixture.found(&of_user("ada"), "zebra"), [id(906), id(901)]);
    assert!(fixture.found(&of_user("ad"), "zebra").is_empty());
    assert_eq!(fixture.found(&of(901), "zebra"), [id(902), id(903), id(901)]);
    let both = SearchScope { agent: Some(agent(901)), user: Some("ada".into()), ..all() };
    assert_eq!(fixture.found(&both, "zebra"), [id(901)]);
    let level = SearchScope { level: Some(Level::Agent), ..all() };
    assert_eq!(fixture.found(&level, "zebra"), [id(903)]);
    fixture.world.gone.lock().insert(agent(902));
    assert_eq!(fixture.found(&of_user("ada"), "zebra"), [id(901)], "the rows of a removed agent are erased later");
    assert_eq!(fixture.found(&all(), "zebra").len(), 3);
    assert!(fixture.found(&of(902), "zebra").is_empty());
}

#[test]
fn entries_are_found_within_their_scope_only() {
    scopes_hold(&Fixture::new());
}

#[test]
fn the_index_keeps_the_same_scopes() {
    let fixture = Fixture::new();
    fixture.fill(1, 3, 1_000);
    // Agents and users with too many entries to be read.
    fixture.put(agent(901), (0..3_000).map(|n| (id(5_000 + n), said("nothing to see"))));
    fixture.put(
        agent(901),
        (0..3_000).map(|n| (id(10_000 + n), MemoryEntryRecord { user: Some("ada".into()), ..said("nothing") })),
    );
    fixture.index.worker.compared().unwrap();
    scopes_hold(&fixture);
}

#[test]
fn changes_are_found_at_once_and_nothing_else() {
    let fixture = Fixture::new();
    fixture.fill(1, 3, 1_000);
    fixture.index.worker.compared().unwrap();
    assert!(fixture.found(&all(), "giraffe").is_empty());
    for round in 0..50_u128 {
        fixture.put(agent(1), [(id(7), said(&format!("giraffe{round} in the garden")))]);
        assert_eq!(fixture.found(&all(), &format!("giraffe{round}")), [id(7)]);
        assert_eq!(fixture.found(&all(), "garden"), [id(7)], "the earlier ones are gone");
    }
    fixture.put(agent(1), [(id(7), MemoryEntryRecord { user: Some("ada".into()), ..said("giraffe in the garden") })]);
    assert_eq!(fixture.found(&of_user("ada"), "garden"), [id(7)]);
    fixture.rows.0.lock().remove(&(agent(1), id(7)));
    assert!(fixture.found(&all(), "garden").is_empty());
}

#[test]
fn a_restart_finds_what_the_index_was_not_told() {
    let fixture = Fixture::new();
    fixture.fill(1, 40, 1_000);
    assert_eq!(fixture.index.worker.compared().unwrap().docs(), 40_000);
    let before = fixture.index.worker.size();
    assert!(before.1 > 0, "most of it is in segments");
    let fixture = fixture.restarted();
    fixture.put(agent(3), [(id(7), said("a giraffe"))]);
    fixture.index.worker.compared().unwrap();
    assert_eq!(fixture.found(&all(), "giraffe"), [id(7)]);
    assert_eq!(fixture.index.worker.size().0, 40_001);
}

#[test]
fn a_damaged_index_is_built_again() {
    let fixture = Fixture::new();
    fixture.fill(1, 40, 1_000);
    fixture.put(agent(50), [(id(7), said("a giraffe"))]);
    fixture.index.worker.compared().unwrap();
    let dir = fixture.dir.path().join("index");
    let segments = || -> Vec<_> { std::fs::read_dir(&dir).unwrap().map(|file| file.unwrap().path()).collect() };
    assert!(segments().len() > 1);
    for (number, path) in segments().into_iter().enumerate() {
        let mut bytes = std::fs::read(&path).unwrap();
        match number {
            0 => bytes.truncate(100),
            _ => *bytes.last_mut().unwrap() ^= 1,
        }
        std::fs::write(&path, bytes).unwrap();
    }
    std::fs::write(dir.join("0000000099.part"), b"unfinished").unwrap();
    let fixture = fixture.restarted();
    assert_eq!(fixture.index.worker.compared().unwrap().docs(), 40_001);
    assert_eq!(fixture.found(&all(), "giraffe"), [id(7)]);
    assert!(!dir.join("0000000099.part").exists());
}

#[test]
fn what_is_no_file_in_place_of_a_segment_is_renamed_and_built_again() {
    let fixture = Fixture::new();
    fixture.fill(1, 40, 1_000);
    fixture.put(agent(50), [(id(7), said("a giraffe"))]);
    fixture.index.worker.compared().unwrap();
    let dir = fixture.dir.path().join("index");
    let names: Vec<_> = std::fs::read_dir(&dir).unwrap().map(|file| file.unwrap().path()).collect();
    assert!(names.len() > 1);
    let fifo = |path: &Path| rustix::fs::mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let damaged = |path: &Path| path.with_added_extension("damaged");
    for (number, path) in names.iter().enumerate() {
        std::fs::remove_file(path).unwrap();
        match number {
            0 => fifo(path),
            1 => {
                std::fs::create_dir(path).unwrap();
                std::fs::write(path.join("kept"), "x").unwrap();
                std::fs::create_dir(damaged(path)).unwrap();
            }
            _ => std::os::unix::fs::symlink("/dev/zero", path).unwrap(),
        }
    }
    fifo(&dir.join("0000000099.part"));
    let fixture = fixture.restarted();
    assert_eq!(fixture.index.worker.compared().unwrap().docs(), 40_001);
    assert_eq!(fixture.found(&all(), "giraffe"), [id(7)]);
    assert!(damaged(&names[0]).symlink_metadata().is_ok() && damaged(&dir.join("0000000099.part")).exists());
    assert!(names[1].with_added_extension("damaged-1").join("kept").exists(), "nothing of others is deleted");
}

#[test]
fn another_world_is_indexed_and_the_old_one_forgotten() {
    let fixture = Fixture::new();
    fixture.fill(1, 40, 1_000);
    fixture.index.worker.compared().unwrap();
    *fixture.rows.0.lock() = (0..3_000).map(|n| ((agent(70), id(n)), said("a zebra"))).collect();
    fixture.world.is_another.store(true, Ordering::Release);
    assert!(fixture.found(&all(), "filler").is_empty());
    fixture.index.worker.compared().unwrap();
    assert_eq!(fixture.found(&all(), "zebra").len(), 10);
    assert!(fixture.index.worker.size().0 < 10_000, "segments of what is gone are cleaned");
}

#[test]
fn more_changes_than_can_wait_are_found_by_comparing() {
    let fixture = Fixture::new();
    fixture.fill(1, 3, 1_000);
    fixture.index.worker.compared().unwrap();
    for n in 0..10_000_u128 {
        fixture.put(agent(80), [(id(100_000 + n), said("a zebra"))]);
    }
    fixture.put(agent(80), [(id(7), said("a giraffe"))]);
    fixture.index.worker.compared().unwrap();
    assert_eq!(fixture.found(&all(), "giraffe"), [id(7)]);
}

#[test]
fn what_many_entries_have_still_finds_them() {
    let fixture = Fixture::new();
    fixture.fill(1, 6, 1_000);
    fixture.index.worker.compared().unwrap();
    let hits = fixture.index.search(&all(), "filler", 100).unwrap().hits;
    assert_eq!(hits.len(), 100);
    assert!(hits.windows(2).all(|two| two[0].score >= two[1].score));
}

#[test]
fn vectors_find_other_words_among_few_and_order_many() {
    let mut fixture = Fixture::new();
    write_model(fixture.dir.path(), false);
    let model = StaticModel::open(fixture.dir.path()).unwrap();
    let vectors = Arc::new(Vectors::new(Box::new(model), Chunks::default()));
    fixture.index.vectors = Box::new(move || Some(Arc::clone(&vectors) as _));
    fixture.put(agent(1), [(id(1), said("a dog in blue")), (id(2), said("a car in blue")), (id(3), said("blue"))]);
    assert_eq!(fixture.found(&of(1), "the puppy"), [id(1)], "no word in common");
    let found = fixture.index.search(&of(1), "blue puppy", 10).unwrap();
    assert_eq!((found.mode, found.hits[0].id, found.hits.len()), (SearchMode::Hybrid, id(1), 3));
    let found = fixture.index.search(&of(1), "blue", 10).unwrap();
    assert_eq!((found.mode, found.hits.len()), (SearchMode::Lexical, 3), "the model does not know the word");
    fixture.fill(10, 3, 1_000);
    fixture.index.worker.compared().unwrap();
    let found = fixture.index.search(&all(), "blue puppy", 10).unwrap();
    assert_eq!((found.mode, found.hits[0].id, found.hits.len()), (SearchMode::Hybrid, id(1), 3));
}

#[test]
fn who_tells_of_a_change_waits_for_no_search_and_no_writing() {
    let fixture = Fixture::new();
    fixture.fill(1, 3, 1_000);
    let index = fixture.index.worker.compared().unwrap();
    let (told, was_told) = crossbeam_channel::bounded(1);
    std::thread::scope(|scope| {
        let state = index.state.write();
        // The thread takes it, and waits for the state; the search waits for the thread.
        fixture.put(agent(1), [(id(7), said("a giraffe"))]);
        let search = scope.spawn(|| fixture.index.worker.index(Duration::from_secs(60)).is_some());
        scope.spawn(|| {
            for _ in 0..2_000 {
                fixture.put(agent(1), [(id(8), said("a zebra"))]);
                std::thread::yield_now();
            }
            told.send(())
        });
        let told = was_told.recv_timeout(Duration::from_secs(30));
        let has_answered = search.is_finished();
        drop(state);
        assert!(told.is_ok(), "telling waited");
        assert!(!has_answered, "the search waits for what was told before");
        assert!(search.join().unwrap());
    });
    assert_eq!(fixture.found(&all(), "giraffe"), [id(7)]);
}

#[test]
fn a_turn_of_a_user_finds_the_own_among_very_many_of_others() {
    let fixture = Fixture::new();
    let of = |user: &str, text: &str| MemoryEntryRecord { user: Some(user.into()), ..said(text) };
    fixture.put(agent(1), (0..5_000).map(|n| (id(n), of(&format!("u{}", n % 50), "zebra"))));
    fixture.put(agent(1), [(id(9_000), of("ana", "one zebra and a lot of other words that count less"))]);
    fixture.index.worker.compared().unwrap();
    let turn = RecallScope { user: Some("ana".into()), session: SessionId(uuid::Uuid::nil()) };
    let scope = SearchScope { agent: Some(agent(1)), turn: Some(turn), ..all() };
    assert_eq!(fixture.found(&scope, "zebra"), [id(9_000)]);
}

#[test]
fn a_search_finds_what_changes_while_segments_merge() {
    let fixture = Fixture::new();
    fixture.fill(1, 3, 1_000);
    fixture.index.worker.compared().unwrap();
    // The first has the others of before with it; of the small ones that follow, eight are merged.
    for n in 0..8 {
        fixture.put(agent(80), [(id(100 + n), said("a zebra"))]);
        fixture.index.worker.seal();
        fixture.index.worker.compared().unwrap();
    }
    let (release, merges) = fixture.hold(id(101));
    fixture.put(agent(80), [(id(200), said("a lion"))]);
    fixture.index.worker.seal();
    merges.recv_timeout(Duration::from_secs(60)).expect("a merge");
    fixture.put(agent(80), [(id(7), said("a giraffe"))]);
    assert_eq!(fixture.found(&all(), "giraffe"), [id(7)]);
    fixture.fill(10, 20, 1_000);
    fixture.put(agent(80), [(id(8), said("an antelope"))]);
    fixture.index.worker.index(Duration::from_secs(60)).unwrap();
    assert_eq!(fixture.found(&all(), "antelope"), [id(8)], "also when a tail is full");
    drop(release);
    fixture.index.worker.compared().unwrap();
    assert_eq!(fixture.found(&all(), "giraffe"), [id(7)]);
    assert_eq!(fixture.found(&all(), "zebra").len(), 8);
}

#[test]
fn a_turn_waits_neither_for_the_index_nor_for_the_world() {
    let fixture = Fixture::new();
    fixture.fill(1, 1, 3_000);
    fixture.put(agent(1), [(id(6), said("a zebra"))]);
    fixture.index.worker.compared().unwrap();
    let (release, reads) = fixture.hold(id(7));
    fixture.put(agent(1), [(id(7), said("a giraffe"))]);
    reads.recv_timeout(Duration::from_secs(60)).expect("the index hears of the change");
    let begun = Instant::now();
    let wait = SearchWait { vector_until: begun, index: Duration::ZERO };
    let hits = |query| fixture.index.search_within(&of(1), query, 10, wait).unwrap().hits;
    assert_eq!((hits("zebra").len(), hits("giraffe").len()), (1, 0), "what the index has now");
    assert_eq!(fixture.world.settled.load(Ordering::Acquire), 0);
    drop(release);
    assert_eq!(fixture.found(&of(1), "giraffe"), [id(7)]);
    assert_eq!(fixture.world.settled.load(Ordering::Acquire), 1);
}

#[test]
fn a_turn_is_late_before_there_is_an_index_and_what_is_memorised_needs_all_of_it() {
    let fixture = Fixture::new();
    fixture.fill(1, 1, 3_000);
    let turn = RecallScope { user: None, session: SessionId(uuid::Uuid::nil()) };
    let scope = SearchScope { turn: Some(turn), ..of(1) };
    let search = |index| {
        let wait = SearchWait { vector_until: Instant::now(), index };
        fixture.index.search_within(&scope, "filler", 10, wait)
    };
    let dir = fixture.dir.path().join("index");
    std::fs::write(&dir, b"a file").unwrap();
    assert!(search(Duration::ZERO).is_err(), "it cannot be opened");
    std::fs::remove_file(&dir).unwrap();
    fixture.index.worker.compared().unwrap();
    assert_eq!(search(Duration::ZERO).unwrap().hits.len(), 10);
    assert_eq!(search(Duration::from_secs(60)).unwrap().hits.len(), 10);
    // What reads the rows is held up.
    let (release, reads) = fixture.hold(id(7));
    fixture.put(agent(1), [(id(7), said("a giraffe"))]);
    reads.recv_timeout(Duration::from_secs(60)).expect("the index hears of the change");
    fixture.index.worker.mark_stale();
    assert!(matches!(search(Duration::from_millis(1)), Err(ContentError::Failed(_))), "it is not complete");
    assert_eq!(search(Duration::ZERO).unwrap().hits.len(), 10, "a turn recalls what there is");
    drop(release);
    fixture.index.worker.compared().unwrap();
    assert_eq!(search(Duration::from_secs(60)).unwrap().hits.len(), 10);
}

#[test]
fn an_index_begins_with_the_daemon_where_there_was_one_or_entries_are_many() {
    let fixture = Fixture::new();
    fixture.fill(1, 1, 2_000);
    fixture.index.begin();
    assert!(!fixture.index.worker.runs());
    fixture.fill(2, 1, 1);
    fixture.index.begin();
    fixture.index.worker.compared().unwrap();
    let fixture = fixture.restarted();
    fixture.rows.0.lock().clear();
    fixture.index.begin();
    assert!(fixture.index.worker.runs(), "the folder is there");
}

#[test]
fn what_the_disk_did_not_take_is_added_later() {
    let fixture = Fixture::new();
    fixture.fill(1, 3, 1_000);
    fixture.index.worker.compared().unwrap();
    let dir = fixture.dir.path().join("index");
    std::fs::remove_dir_all(&dir).unwrap();
    fixture.put(agent(80), [(id(7), said("a giraffe"))]);
    assert_eq!(fixture.found(&all(), "giraffe"), [id(7)], "in memory");
    // More than is kept in memory.
    fixture.fill(10, 70, 1_000);
    let index = fixture.index.worker.index(Duration::from_secs(60)).unwrap();
    assert!(index.docs() < 70_000, "some were given up");
    std::fs::create_dir(&dir).unwrap();
    fixture.index.worker.compared().unwrap();
    assert_eq!(fixture.found(&all(), "giraffe"), [id(7)]);
    assert_eq!(fixture.found(&all(), "filler entry 999 number 79").len(), 10);
    assert!(fixture.index.worker.size().1 > 0);
}

#[test]
fn a_folder_that_cannot_be_opened_is_an_error_until_it_can_be() {
    let fixture = Fixture::new();
    fixture.fill(1, 3, 1_000);
    let dir = fixture.dir.path().join("index");
    std::fs::write(&dir, b"a file").unwrap();
    assert!(fixture.index.search(&all(), "filler", 10).is_err());
    fixture.put(agent(80), [(id(7), said("a giraffe"))]);
    std::fs::remove_file(&dir).unwrap();
    fixture.index.worker.compared().unwrap();
    assert_eq!(fixture.found(&all(), "giraffe"), [id(7)]);
}
