//! One subscriber's queue: bounded; its oldest frames go first, ends of turns last of all. Taking one in costs the same
//! however many wait: the producer is the store's writer, which everybody waits for.

use std::collections::VecDeque;
use std::task::{Context, Poll, Waker};

use agentsvc_components::TurnId;
use agentsvc_components::kernel::limit;
use parking_lot::Mutex;

use super::{Delivery, Frame};

/// The queue of one subscriber.
#[derive(Default)]
pub(super) struct Inbox(Mutex<Queue>);

#[derive(Default)]
struct Queue {
    /// Ends of turns, by their place in the order of all frames.
    ends: VecDeque<(u64, Frame)>,
    /// Everything else, likewise.
    others: VecDeque<(u64, Frame)>,
    /// The place of the next frame.
    next: u64,
    missed: u64,
    is_broken_off: bool,
    waker: Option<Waker>,
}

impl Queue {
    fn add(&mut self, frame: Frame) {
        let queue = if frame.last { &mut self.ends } else { &mut self.others };
        queue.push_back((self.next, frame));
        self.next += 1;
    }

    /// The oldest frame.
    fn take(&mut self) -> Option<Frame> {
        let place = |queue: &VecDeque<(u64, Frame)>| queue.front().map_or(u64::MAX, |(place, _)| *place);
        let queue = if place(&self.ends) < place(&self.others) { &mut self.ends } else { &mut self.others };
        queue.pop_front().map(|(_, frame)| frame)
    }
}

impl Inbox {
    /// Begins with these frames, before which so many are missed.
    pub(super) fn begin(&self, missed: u64, frames: impl IntoIterator<Item = Frame>) {
        let mut queue = self.0.lock();
        queue.missed = missed;
        frames.into_iter().for_each(|frame| queue.add(frame));
    }

    pub(super) fn push(&self, frame: Frame) {
        let mut queue = self.0.lock();
        if queue.ends.len() + queue.others.len() >= limit::STREAM_BACKLOG_MAX {
            // Ends of turns go last: whoever missed one would wait for it.
            if queue.others.pop_front().is_none() {
                queue.ends.pop_front();
            }
            queue.missed += 1;
        }
        queue.add(frame);
        let waker = queue.waker.take();
        drop(queue);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Nothing more comes behind what waits.
    pub(super) fn break_off(&self) {
        let mut queue = self.0.lock();
        queue.is_broken_off = true;
        let waker = queue.waker.take();
        drop(queue);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Has `turn` yet to say its first word? Known only until the first frame is taken out.
    pub(super) fn awaits(&self, turn: TurnId) -> bool {
        let queue = self.0.lock();
        !queue.is_broken_off && !queue.ends.iter().chain(&queue.others).any(|(_, frame)| frame.turn == turn)
    }

    /// Forgets what other turns said.
    pub(super) fn keep_only(&self, turn: TurnId) {
        let mut queue = self.0.lock();
        queue.ends.retain(|(_, frame)| frame.turn == turn);
        queue.others.retain(|(_, frame)| frame.turn == turn);
    }

    pub(super) fn poll(&self, cx: &mut Context<'_>) -> Poll<Delivery> {
        let mut queue = self.0.lock();
        if queue.missed > 0 {
            return Poll::Ready(Delivery::Lagged(std::mem::take(&mut queue.missed)));
        }
        if let Some(frame) = queue.take() {
            return Poll::Ready(Delivery::Frame(frame));
        }
        if queue.is_broken_off {
            return Poll::Ready(Delivery::BrokenOff);
        }
        queue.waker = Some(cx.waker().clone());
        Poll::Pending
    }
}
