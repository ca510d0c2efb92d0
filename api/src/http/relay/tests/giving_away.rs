//! A node that gives the world away in order: what it has begun is answered, and what it has not is not.

use tokio::sync::Notify;

use super::*;
use crate::http::reply;

/// An owner that begins what it is asked, and answers when it is told to.
async fn slow(begun: &Arc<Notify>, answers: &Arc<Notify>) -> SocketAddr {
    let (begun, answers) = (Arc::clone(begun), Arc::clone(answers));
    let does = move |_| -> Done {
        let (begun, answers) = (Arc::clone(&begun), Arc::clone(&answers));
        Box::pin(async move {
            begun.notify_one();
            answers.notified().await;
            Ok(reply::no_content())
        })
    };
    owner(does).await
}

#[tokio::test]
async fn a_change_is_waited_for_as_long_as_its_node_answers_what_it_has_begun() {
    let (begun, answers) = (Arc::<Notify>::default(), Arc::<Notify>::default());
    let address = slow(&begun, &answers).await;
    let standby = Node::at(there(address)).await;
    let change = |node: &Node| tokio::spawn(ask(node.address, Request::delete("/api/agents/x"), ""));
    let first = change(&standby);
    begun.notified().await;
    *standby.told.finishes.lock() = Some(address);
    standby.tell(Site::Nowhere);
    let refused = ask(standby.address, Request::post("/api/agents"), "{}").await;
    assert_eq!(json(refused).await["code"], "moving", "it takes no more");
    // Longer than one would wait for a node that has gone.
    tokio::time::pause();
    for _ in 0..4 * LOOKS_MAX {
        tokio::time::advance(LOOK_PERIOD).await;
    }
    tokio::time::resume();
    assert!(!first.is_finished());
    answers.notify_one();
    assert_eq!(first.await.unwrap().status(), 204);

    standby.tell(there(address));
    let second = change(&standby);
    begun.notified().await;
    standby.tell(Site::Nowhere);
    *standby.told.finishes.lock() = None;
    assert_eq!(json(second.await.unwrap()).await["code"], "outcome_unknown", "it answers no more");
}

#[tokio::test]
async fn a_stop_closes_nothing_before_the_other_nodes_know_of_it() {
    let node = Node::at(Site::Here).await;
    let standby = Node::at(there(node.address)).await;
    assert_eq!(get(standby.address, "/api/agents").await.status(), 200, "a connection is kept");
    node.api.shutdown.trigger();
    while node.api.elsewhere.site() != Site::Nowhere {
        tokio::task::yield_now().await;
    }
    for request in [Request::post("/api/agents"), Request::get("/api/agents")] {
        let answer = ask(standby.address, request, "").await;
        assert_eq!(answer.status(), 503);
        assert_eq!(json(answer).await["code"], "moving", "nothing was begun");
    }
    assert_eq!((standby.count(|counts| &counts.repeated), standby.count(|counts| &counts.unknown)), (0, 0));
    assert!(!node.served.is_finished());
    node.told.knows.trigger();
    node.served.await.unwrap();
}

#[tokio::test]
async fn changes_are_counted_from_before_it_is_asked_where_they_are_answered() {
    let node = Node::at(Site::Here).await;
    let elsewhere = &node.api.elsewhere;
    let found = |verb: Method, path: &str| match node.api.table.find(&verb, path) {
        Found::Route(route, ..) => elsewhere.begin(is_awaited(&verb, Some(route))),
        _ => panic!("{path} is a route"),
    };
    let change = found(Method::POST, "/api/agents");
    assert_eq!((change.is_some(), elsewhere.begun()), (true, 1));
    assert!(found(Method::GET, "/api/agents").is_none(), "a read may be lost");
    assert!(found(Method::POST, "/api/cluster/worlds/0/move").is_none(), "it waits for the others itself");
    drop(change);
    assert_eq!(elsewhere.begun(), 0);
    let answer = ask(node.address, Request::post("/api/agents"), "").await;
    assert_ne!(answer.status(), 503);
    assert_eq!(elsewhere.begun(), 0, "it is answered");
}
