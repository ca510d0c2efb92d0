//! What a journal needs of an engine: of two appends that expect the same number, one is taken. Servers whose comparison is broken
//! in clusters, as that of NATS 2.9 is, fail here. And what every journal must do, asked of the one that they keep.

use std::fmt::Display;
use std::fs;
use std::time::Duration;

use agentsvc::cluster::JournalServers;
use agentsvc::kernel::store::Store;
use agentsvc::kernel::store::writer::CommitQueue;
use agentsvc_components::kernel::record::{Op, Space};
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::stream::{Config, DiscardPolicy, StorageType};
use async_nats::jetstream::{self, Context};

use super::conformance::{conforms, one_of_two_is_taken};
use super::nodes::STREAM;
use super::servers::{PASSWORD, SERVERS, Servers, USER};
use crate::support::clients::skipped;

/// Pairs of appends.
const ROUNDS: u64 = 200;
const SUBJECT: &str = "probe.0";
/// Opens that two nodes try at the same moment: each reads the whole journal.
const RACES: u8 = 10;
/// Rows that are erased, more than one entry takes.
const ROWS: u32 = 6_000;

/// Appends what must become `number`; gives the number that it got.
async fn append(context: &Context, number: u64) -> Result<u64, String> {
    let text = |error: &dyn Display| error.to_string();
    let message = PublishMessage::build().payload(number.to_string().into()).expected_last_sequence(number - 1);
    let answer = context.send_publish(SUBJECT, message).await.map_err(|error| text(&error))?;
    answer.await.map(|answer| answer.sequence).map_err(|error| text(&error))
}

async fn context(servers: &Servers, at: usize) -> Context {
    let mut context = jetstream::new(servers.connect(at).await);
    context.set_timeout(Duration::from_secs(20));
    context
}

#[test]
fn of_two_appends_that_expect_the_same_number_one_is_taken() {
    if skipped() {
        return;
    }
    let servers = Servers::start();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime starts");
    runtime.block_on(async {
        let (one, other) = (context(&servers, 0).await, context(&servers, 1).await);
        let config = Config {
            name: "probe".to_owned(),
            subjects: vec![SUBJECT.to_owned()],
            storage: StorageType::File,
            num_replicas: SERVERS,
            discard: DiscardPolicy::New,
            ..Config::default()
        };
        one.create_stream(config).await.expect("a stream can be created");
        for number in 1..=ROUNDS {
            let both: [Result<u64, String>; 2] = tokio::join!(append(&one, number), append(&other, number)).into();
            let taken: Vec<&u64> = both.iter().flatten().collect();
            assert_eq!(taken, [&number], "{both:?}");
        }
        let late = append(&one, ROUNDS).await;
        assert!(late.is_err(), "a number that is taken: {late:?}");
        let early = append(&one, ROUNDS + 2).await;
        assert!(early.is_err(), "one before which another is missing: {early:?}");
    });
}

/// Rows of content, and who erases most of them.
fn rows() -> Vec<Op> {
    (0..ROWS).map(|row| Op { space: Space::Content, key: key(row), value: Some(vec![7; 200]) }).collect()
}

fn key(row: u32) -> Vec<u8> {
    [&b"k"[..], &row.to_be_bytes()].concat()
}

fn erase(_: &Store, queue: CommitQueue) {
    for rows in (0..ROWS - 10).collect::<Vec<_>>().chunks(500) {
        queue.erase(rows.iter().map(|row| key(*row)).collect()).expect("the writer goes on");
    }
}

#[test]
fn the_journal_of_the_servers_does_what_every_journal_must() {
    if skipped() {
        return;
    }
    let servers = Servers::start();
    let home = tempfile::tempdir().expect("a temporary directory");
    let credentials = home.path().join("nats.user");
    fs::write(&credentials, format!("{USER}:{PASSWORD}")).expect("a file can be written");
    let urls: Vec<String> = (0..SERVERS).map(|at| format!("nats://{}", servers.address(at))).collect();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime starts");
    let connect = || {
        JournalServers::connect(&urls, credentials.clone(), &[7; 32], runtime.handle()).expect("the servers are fit")
    };
    let nodes = connect();
    conforms(&|| nodes.journal(), rows(), ROWS as usize - 100, &erase);
    // In a stream of its own: the readers of these count what is in it.
    servers.remove(STREAM);
    let nodes = connect();
    one_of_two_is_taken(&|| nodes.journal(), RACES, true);
}
