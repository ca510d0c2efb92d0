//! A task as server-sent events: the task, the answer as it is written, and the end.

use std::collections::VecDeque;

use agentsvc_components::Refusal;
use agentsvc_components::turn::stream::StreamEvent;
use agentsvc_systems::a2a::{A2aTaskView, AwaitA2aTask};
use agentsvc_systems::kernel::entities::Get;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::{Stream, stream};
use serde_json::{Value, json};

use super::gate::{self, Waiting};
use super::message;
use super::render::Dialect;
use super::rpc::{Request, failure};
use crate::http::bridge::Bridge;
use crate::http::reply::Response;
use crate::http::sse;
use crate::mcp::message::{Failure, answer};
use crate::turn::hub::{Delivery, StreamHub, Subscription};

/// Sends a message, and streams its task.
pub(super) async fn send(request: &Request<'_>, id: &Value) -> Result<Response, Failure> {
    let call = request.call;
    let names_task = request.params.contains_key("sessionId") || request.params.contains_key("id");
    let incoming = request.incoming(names_task).await?;
    let of_error = |error| failure(&error);
    let waiting = gate::enter(call).map_err(of_error)?;
    let push = request.push().await?;
    let command = message::command(call, (request.host, request.policy), incoming, push).await.map_err(of_error)?;
    // First the ears, then the message.
    let subscription = call.api.state::<StreamHub>().subscribe(command.session);
    let view = call.ask(command).await.map_err(of_error)?;
    Ok(respond(request, id, view, subscription, waiting))
}

/// Streams a task that was sent before.
pub(super) async fn resume(request: &Request<'_>, id: &Value) -> Result<Response, Failure> {
    let view = request.task().await?;
    if !view.task.state.is_open() && request.dialect == Dialect::V1 {
        let text = "the task has ended; get it for its result";
        return Err(Failure::new(super::rpc::UNSUPPORTED, text));
    }
    let waiting = gate::enter(request.call).map_err(|error| failure(&error))?;
    let subscription = request.call.api.state::<StreamHub>().subscribe_from_start(view.task.session);
    Ok(respond(request, id, view, subscription, waiting))
}

fn respond(
    request: &Request<'_>,
    id: &Value,
    view: A2aTaskView,
    subscription: Subscription,
    waiting: Waiting,
) -> Response {
    let bridge = request.call.api.bridge.clone();
    let gone = Failure::new(Failure::BUSY, "the daemon is shutting down; subscribe to the task again later");
    let farewell = sse::data(&answer(id, Err(gone)));
    let turn = view.task.turn;
    let ended: Ended = Box::pin({
        let (bridge, task) = (bridge.clone(), view.id);
        async move { bridge.ask(AwaitA2aTask(task)).await }
    });
    let follower = Follower {
        dialect: request.dialect,
        id: id.clone(),
        subscription: subscription.only(turn),
        bridge,
        ended: Some(ended),
        ready: VecDeque::new(),
        has_text: false,
        is_over: false,
        view,
        _waiting: waiting,
    };
    sse::response(&request.call.api.shutdown, follower.events(), Some(farewell))
}

/// Resolves when the task has ended.
type Ended = BoxFuture<'static, Result<A2aTaskView, Refusal>>;

/// Who follows one task.
struct Follower {
    dialect: Dialect,
    /// Of the request.
    id: Value,
    subscription: Subscription,
    bridge: Bridge,
    ended: Option<Ended>,
    /// What is to be sent.
    ready: VecDeque<Bytes>,
    /// A piece of the answer was sent.
    has_text: bool,
    is_over: bool,
    view: A2aTaskView,
    /// Counted as long as the stream lasts.
    _waiting: Waiting,
}

impl Follower {
    fn events(mut self) -> impl Stream<Item = Bytes> + Send {
        let task = self.dialect.task_event(&self.view);
        self.say(&task);
        if !self.view.task.state.is_open() {
            self.finish_with(self.view.clone());
        }
        stream::unfold(self, async |mut follower| {
            let next = follower.next().await?;
            Some((next, follower))
        })
    }

    fn say(&mut self, result: &Value) {
        self.ready.push_back(sse::data(&json!({ "jsonrpc": "2.0", "id": self.id, "result": result })));
    }

    fn fail(&mut self, text: &str) {
        self.ready.push_back(sse::data(&answer(&self.id, Err(Failure::new(Failure::BUSY, text)))));
        self.is_over = true;
    }

    /// The next event; `None` after the last. May be cancelled without loss.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            if self.is_over {
                return None;
            }
            let Some(ended) = &mut self.ended else {
                let delivery = self.subscription.next().await;
                self.take(delivery).await;
                continue;
            };
            tokio::select! {
                // What was said before the end comes before it.
                biased;
                delivery = self.subscription.next() => self.take(delivery).await,
                ended = ended => {
                    self.ended = None;
                    match ended {
                        Ok(view) if view.task.state.is_open() => {}
                        Ok(view) => self.finish_with(view),
                        Err(refusal) => self.fail(&refusal.message),
                    }
                }
            }
        }
    }

    /// Tools and notes are the owner's: clients hear the text alone.
    async fn take(&mut self, delivery: Delivery) {
        let frame = match delivery {
            Delivery::Frame(frame) => frame,
            // The whole answer follows at the end.
            Delivery::Lagged(_) => return,
            Delivery::BrokenOff => return self.fail("the daemon was restored from a backup; send the message again"),
        };
        if let StreamEvent::Chunk { content } = &frame.event {
            let event = self.dialect.artifact_event(&self.view, content, self.has_text, false);
            self.has_text = true;
            self.say(&event);
        }
        if frame.last && self.ended.is_none() {
            match self.bridge.ask(Get::<A2aTaskView>(self.view.id)).await {
                Ok(view) => self.finish_with(view),
                Err(refusal) => self.fail(&refusal.message),
            }
        }
    }

    /// The whole answer takes the place of its pieces, and the last state ends the stream.
    fn finish_with(&mut self, view: A2aTaskView) {
        if let Some(text) = view.task.result.as_deref().filter(|_| self.dialect.is_answered(&view)) {
            let event = self.dialect.artifact_event(&view, text, false, true);
            self.say(&event);
        }
        let event = self.dialect.status_event(&view);
        self.say(&event);
        (self.view, self.is_over) = (view, true);
    }
}
