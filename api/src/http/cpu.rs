//! Work that keeps a processor busy for long, such as scanning a long text or comparing two. It runs on threads that may wait, few
//! works at a time: the world and the threads of the runtime have processors left, whatever is asked for. Each holder has a
//! quarter of the places; what is beyond waits behind the other works of that holder, and keeps nobody else waiting.

use std::sync::LazyLock;

use agentsvc_components::AgentId;
use agentsvc_components::kernel::holder::Holder as Share;
use agentsvc_components::kernel::limit;
use tokio::task::JoinError;

use crate::http::blocking::spawn_blocking;
use crate::http::peer::Holder;
use crate::http::places::Places;

/// The places of this process.
static PLACES: LazyLock<Places<Asker>> =
    LazyLock::new(|| Places::new(limit::CPU_WORKS_MAX, limit::CPU_WORKS_MAX / limit::POOL_SHARES));

/// Whose places a work takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Asker(Who);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Who {
    Client(Holder),
    Family(AgentId),
    /// A part of the daemon that works on its own, for nobody in particular.
    Daemon(&'static str),
}

impl Asker {
    /// The client of a request.
    pub(crate) const fn client(holder: Holder) -> Self {
        Self(Who::Client(holder))
    }

    /// An agent with this share. Those of a user with a limited role take the places of that user's requests.
    #[must_use]
    pub const fn agent(share: Share) -> Self {
        match share {
            Share::User(user) => Self(Who::Client(Holder::Limited(user.0))),
            Share::Family(top) => Self(Who::Family(top)),
        }
    }

    /// A part of the daemon, such as the inbox.
    #[must_use]
    pub const fn daemon(part: &'static str) -> Self {
        Self(Who::Daemon(part))
    }
}

/// Does `work` when it has a place, and gives its result. It is done to its end even when nobody waits for it any more, and keeps
/// its place until then.
///
/// # Errors
/// It panicked.
pub async fn run<T: Send + 'static>(asker: Asker, work: impl FnOnce() -> T + Send + 'static) -> Result<T, JoinError> {
    let place = PLACES.place(asker).await;
    let done = spawn_blocking(move || {
        let done = work();
        drop(place);
        done
    });
    done.await
}

#[cfg(test)]
mod tests {
    use agentsvc_components::kernel::id::UserId;
    use uuid::Uuid;

    use super::*;

    fn user(id: u128) -> Asker {
        Asker::client(Holder::Limited(Uuid::from_u128(id)))
    }

    #[test]
    fn agents_of_a_user_take_the_places_of_the_user() {
        let id = Uuid::from_u128(7);
        assert_eq!(Asker::agent(Share::User(UserId(id))), user(7));
        assert_ne!(Asker::agent(Share::Family(AgentId(id))), user(7));
    }

    #[tokio::test]
    async fn a_work_gives_its_result_and_its_place_back() {
        for at in 0..100 {
            assert_eq!(run(user(70), move || at).await.unwrap(), at);
        }
        assert!(run(user(70), || assert!(std::hint::black_box(false), "as the test wants it")).await.is_err());
        assert_eq!(run(user(70), || 1).await.unwrap(), 1);
    }
}
