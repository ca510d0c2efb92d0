//! The signal to stop, which every part of the front listens to.

use tokio::sync::watch;

/// A one-way switch: once triggered it stays so. Clones share it.
#[derive(Clone, Debug)]
pub struct Shutdown(watch::Sender<bool>);

impl Default for Shutdown {
    fn default() -> Self {
        Self::new()
    }
}

impl Shutdown {
    /// A switch that is not triggered.
    #[must_use]
    pub fn new() -> Self {
        Self(watch::Sender::new(false))
    }

    /// Asks everyone to stop.
    pub fn trigger(&self) {
        self.0.send_replace(true);
    }

    /// Has it been triggered?
    #[must_use]
    pub fn is_triggered(&self) -> bool {
        *self.0.borrow()
    }

    /// Ends when it has been triggered. The future owns its share of the switch.
    pub fn wait(&self) -> impl Future<Output = ()> + Send + Sync + use<> {
        let sender = self.clone();
        let mut receiver = self.0.subscribe();
        async move {
            // The sender is held, so the channel cannot close before it says yes.
            let _ = receiver.wait_for(|stop| *stop).await;
            drop(sender);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn waits_and_stays() {
        let shutdown = Shutdown::new();
        let waits = tokio::spawn(shutdown.wait());
        assert!(!shutdown.is_triggered());
        shutdown.clone().trigger();
        waits.await.unwrap();
        shutdown.wait().await;
        assert!(shutdown.is_triggered());
    }
}
