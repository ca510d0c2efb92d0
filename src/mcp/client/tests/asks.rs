//! Servers that ask while they are called.

use std::sync::Arc;

use agentsvc_systems::mcp::limits::MCP_QUESTIONS_OPEN_MAX;
use futures_util::future::BoxFuture;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::super::asks::{Answers, Asked, Offers, RpcError};
use super::*;
use crate::mcp::client::wire::{Memory, memory_for};

/// Answers after a while: persons are slow.
struct Slow(Duration);

impl Answers for Slow {
    fn answer(&self, asked: Asked) -> BoxFuture<'_, Result<Value, RpcError>> {
        Box::pin(async move {
            tokio::time::sleep(self.0).await;
            match asked {
                Asked::Person(_) => Ok(json!({ "action": "decline" })),
                Asked::Model(_) => Err(RpcError::new(-1, "no")),
            }
        })
    }
}

/// A connection that lets the server ask, with a call that takes three seconds at most.
fn calling(connection: &Connection, slow: Duration) -> JoinHandle<Result<Value, Failure>> {
    connection.offer(Offers { elicitation: true, sampling: true });
    connection.agree(session::Version::V2025_11_25);
    let (connection, described) = (connection.clone(), Described { name: "t".to_owned(), ..Described::default() });
    let caller = Caller { host: Some(Arc::new(Slow(slow))), ..Caller::default() };
    tokio::spawn(async move {
        call(&connection, &described, Map::new(), caller, SECOND * 3).await.map(|answer| answer.value)
    })
}

/// A request of the server for input.
fn asked(id: u64) -> String {
    let params = json!({ "message": "m", "requestedSchema": { "type": "object", "properties": {} } });
    json!({ "jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": params }).to_string()
}

#[tokio::test(start_paused = true)]
async fn the_time_of_a_call_stands_while_the_server_waits_for_a_person() {
    let (connection, _carry, mut peer) = connected();
    let called = calling(&connection, SECOND * 3_000);
    let id = peer.next().await["id"].clone();
    tokio::time::sleep(SECOND * 2).await;
    peer.send(&asked(7)).await;
    let answer = peer.next().await;
    assert_eq!(answer, json!({ "jsonrpc": "2.0", "id": 7, "result": { "action": "decline" } }));
    // One second is left.
    tokio::time::sleep(SECOND / 2).await;
    peer.send(&json!({ "jsonrpc": "2.0", "id": id, "result": { "a": 1 } }).to_string()).await;
    assert_eq!(called.await.unwrap(), Ok(json!({ "a": 1 })));

    let called = calling(&connection, SECOND * 3_000);
    peer.next().await;
    tokio::time::sleep(SECOND * 2).await;
    peer.send(&asked(8)).await;
    peer.next().await;
    let since = tokio::time::Instant::now();
    assert_eq!(called.await.unwrap(), unanswered("it did not answer within 3 seconds"));
    assert!(since.elapsed() < SECOND * 2, "{:?}", since.elapsed());
}

#[tokio::test(start_paused = true)]
async fn what_waits_ends_with_its_call_and_with_its_request() {
    let (connection, carry, mut peer) = connected();
    let called = calling(&connection, SECOND * 3_000);
    peer.next().await;
    peer.send(&asked(1)).await;
    peer.send(
        &json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } }).to_string(),
    )
    .await;
    // The id is free again, and the first request has no answer.
    peer.send(&asked(1)).await;
    peer.send("{\"jsonrpc\": \"2.0\", \"id\": 2, \"method\": \"ping\"}").await;
    assert_eq!(peer.next().await["id"], 2);
    called.abort();
    let told = [peer.next().await, peer.next().await];
    let cancelled = json!({ "jsonrpc": "2.0", "id": 1, "result": { "action": "cancel" } });
    assert!(told.contains(&cancelled), "{told:?}");
    assert!(told.iter().any(|message| message["method"] == "notifications/cancelled"), "{told:?}");

    let called = calling(&connection, SECOND * 3_000);
    peer.next().await;
    peer.send(&asked(3)).await;
    drop(peer);
    assert_eq!(called.await.unwrap(), unanswered("it ended before it answered"));
    carry.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_answer_waits_for_a_server_that_takes_nothing_and_is_not_lost_in_silence() {
    let (connection, mut messages) = Connection::new("s");
    let fill = || (0..MCP_SERVER_REQUESTS_MAX).for_each(|id| connection.answer(json!({ "fill": id })));
    let called = calling(&connection, SECOND);
    assert_eq!(messages.recv().await.unwrap().message["method"], "tools/call");
    fill();
    let ask = |id: u64| connection.take_all(serde_json::from_str(&asked(id)).unwrap(), &Memory::default(), None);
    ask(7);
    tokio::time::sleep(SECOND * 5).await;
    let mut taken = Vec::new();
    while taken.len() <= MCP_SERVER_REQUESTS_MAX {
        taken.push(messages.recv().await.unwrap().message);
    }
    let answer = json!({ "jsonrpc": "2.0", "id": 7, "result": { "action": "decline" } });
    assert_eq!(taken.last(), Some(&answer));
    fill();
    ask(8);
    let why = "it did not take the answer to its request within 30 seconds";
    assert_eq!(called.await.unwrap(), unanswered(why));
}

#[tokio::test(start_paused = true)]
async fn requests_of_a_server_are_bounded_and_belong_to_a_call() {
    let (connection, _carry, mut peer) = connected();
    connection.offer(Offers { elicitation: true, sampling: false });
    connection.agree(session::Version::V2025_11_25);
    peer.send(&asked(1)).await;
    assert_eq!(peer.next().await["error"]["code"], -32_000, "no call is under way");
    let _called = calling(&connection, SECOND * 3_000);
    peer.next().await;
    peer.send("{\"jsonrpc\": \"2.0\", \"id\": 2, \"method\": \"sampling/createMessage\"}").await;
    assert_eq!(peer.next().await["error"]["code"], -32_601, "it is not offered");
    for id in 0..MCP_QUESTIONS_OPEN_MAX as u64 {
        peer.send(&asked(10 + id)).await;
    }
    peer.send(&asked(99)).await;
    assert_eq!((peer.next().await["id"].clone()), json!(99), "those before wait");
}

/// A person before whom other servers send large messages.
struct Busy(mpsc::Sender<bool>);

impl Answers for Busy {
    fn answer(&self, _asked: Asked) -> BoxFuture<'_, Result<Value, RpcError>> {
        Box::pin(async move {
            let others = async { (memory_for(48 << 20).await, memory_for(40 << 20).await) };
            let is_free = timeout(SECOND * 10, others).await.is_ok_and(|(one, two)| one.is_ok() && two.is_ok());
            self.0.send(is_free).await.expect("the test listens");
            Ok(json!({ "action": "decline" }))
        })
    }
}

/// What a server of the newest version wants to know, and a text beside it.
fn input_required(pad: usize, beside: usize) -> Value {
    let params = json!({ "message": "m", "requestedSchema": { "type": "object", "properties": {} } });
    let params = json!({ "method": "elicitation/create", "params": params, "pad": "x".repeat(pad) });
    json!({
        "resultType": "input_required", "inputRequests": { "a": params }, "requestState": "s1", "pad": "x".repeat(beside),
    })
}

#[tokio::test]
async fn a_request_for_input_holds_no_memory_of_others_while_a_person_answers() {
    let (connection, _carry, mut peer) = connected();
    connection.offer(Offers { elicitation: true, sampling: false });
    connection.agree(session::Version::V2026_07_28);
    let (told, mut free) = mpsc::channel(1);
    let asking = |told: mpsc::Sender<bool>| {
        let (connection, described) = (connection.clone(), Described { name: "t".to_owned(), ..Described::default() });
        let caller = Caller { host: Some(Arc::new(Busy(told))), ..Caller::default() };
        tokio::spawn(async move {
            call(&connection, &described, Map::new(), caller, SECOND * 60).await.map(|answer| answer.value)
        })
    };
    let called = asking(told.clone());
    peer.answer("tools/call", input_required(0, 14 << 20)).await;
    assert_eq!(free.recv().await, Some(true), "the memory of the result is held");
    let again = peer.answer("tools/call", json!({ "done": true })).await;
    assert_eq!(
        (&again["requestState"], &again["inputResponses"]["a"]),
        (&json!("s1"), &json!({ "action": "decline" }))
    );
    assert_eq!(called.await.unwrap().unwrap()["done"], true);
    // What must be kept until then is small.
    let called = asking(told);
    peer.answer("tools/call", input_required(100_000, 0)).await;
    let refused = called.await.unwrap();
    assert_eq!(refused, unanswered("its request for input takes more than 65536 bytes of memory"));
}
