//! Events that clients and agents publish themselves (spec 1, Trigger event kinds, `custom`).

mod publish;

pub use publish::PublishEvent;

#[cfg(test)]
mod tests;
