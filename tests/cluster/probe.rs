//! What a journal needs of an engine: of two appends that expect the same number, one is taken. Servers whose comparison is broken
//! in clusters, as that of NATS 2.9 is, fail here.

use std::fmt::Display;
use std::time::Duration;

use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::stream::{Config, DiscardPolicy, StorageType};
use async_nats::jetstream::{self, Context};

use super::servers::{SERVERS, Servers};
use crate::support::clients::skipped;

/// Pairs of appends.
const ROUNDS: u64 = 200;
const SUBJECT: &str = "probe.0";

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
