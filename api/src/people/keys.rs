//! The keys in force at the door of the API are those of the world.

use std::sync::Arc;
use std::time::Duration;

use agentsvc_components::kernel::error_codes;
use agentsvc_components::kernel::id::KeyId;
use agentsvc_components::kernel::scope::Role;
use agentsvc_components::{Actor, Refusal, Timestamp};
use agentsvc_systems::kernel::command::Command;
use agentsvc_systems::kernel::record::hex;
use agentsvc_systems::people::{ConfiguredUser, KeyGrant, ListGrants, NoteKeyUse, SetConfiguredUsers};
use sha2::{Digest, Sha256};
use tokio::sync::{Mutex, mpsc, watch};

use crate::http::api::Api;
use crate::http::blocking;
use crate::http::bridge::Bridge;
use crate::http::call::Call;
use crate::http::error::Error;
use crate::http::error_codes::{MOVING, OUTCOME_UNKNOWN};
use crate::http::principal::Grant;

/// Held while keys change and are put in force, so that none puts older ones in force.
#[derive(Default)]
pub(crate) struct Changing(pub(crate) Mutex<()>);

/// How often the keys of the world are asked for behind a change, and how long is waited between.
const PUT_TRIES_MAX: usize = 30;
const PUT_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Makes keys.
pub trait KeyMaker: Send + Sync + 'static {
    /// So many random bytes.
    ///
    /// # Errors
    /// The system has no randomness.
    fn random(&self) -> Result<[u8; 32], String>;
}

/// Carries out a change and puts the keys in force that there are then. To its end, also when the client goes away: a key that is
/// gone from the world is refused at the door, too.
///
/// # Errors
/// Those of the change; 503 when the world cannot be asked.
pub(crate) async fn change<C: Command>(call: &Call, command: C) -> Result<C::Reply, Error> {
    carried_out(Arc::clone(&call.api), call.api.bridge.clone(), command).await
}

/// The same in the name of someone else, such as whoever asked for the code of a device.
///
/// # Errors
/// Those of the change; 503 when the world cannot be asked.
pub(crate) async fn change_as<C: Command>(call: &Call, actor: Actor, command: C) -> Result<C::Reply, Error> {
    carried_out(Arc::clone(&call.api), call.api.bridge.acting_as(actor), command).await
}

async fn carried_out<C: Command>(api: Arc<Api>, bridge: Bridge, command: C) -> Result<C::Reply, Error> {
    let work = async move {
        let changing = api.state::<Changing>();
        let _held = changing.0.lock().await;
        let done = bridge.ask(command).await?;
        for _ in 1..PUT_TRIES_MAX {
            if put_in_force(&api).await.is_ok() {
                return Ok(done);
            }
            // A busy world answers later; one that ends is followed by its next start, which puts its keys in force.
            tokio::time::sleep(PUT_AGAIN_AFTER).await;
        }
        put_in_force(&api).await.map(|()| done)
    };
    blocking::spawn(work).await.unwrap_or_else(|_| Err(Error::internal("internal error")))
}

/// A new key or token and its SHA-256. Both begin with words that scanners tell from other secrets.
///
/// # Errors
/// 500: the system has no randomness.
pub(crate) fn make(call: &Call, prefix: &str) -> Result<(String, [u8; 32]), Error> {
    let random = call.api.service::<dyn KeyMaker>()?.random();
    let random = random.map_err(|_| Error::internal("the system has no randomness for a key"))?;
    let key = format!("{prefix}{}", hex(&random));
    let hash = Sha256::digest(key.as_bytes()).into();
    Ok((key, hash))
}

/// Refuses to touch an owner, unless an owner does.
///
/// # Errors
/// 403.
pub(crate) fn check_rank(call: &Call, role: Role) -> Result<(), Error> {
    if role == Role::Owner && call.principal.role() != Some(Role::Owner) {
        return Err(Error::forbidden("only an owner may do this with an owner, or with the key of one"));
    }
    Ok(())
}

/// Puts the keys of the world in force.
///
/// # Errors
/// 503 when the world cannot be asked.
pub(crate) async fn put_in_force(api: &Api) -> Result<(), Error> {
    let grants = api.bridge.ask(ListGrants).await?;
    api.access.keys.set(grants.into_iter().map(grant).collect());
    Ok(())
}

fn grant(of: KeyGrant) -> Grant {
    let grant = Grant::new(of.key, of.user, of.name, of.hash, of.role, of.scopes, of.expires_at, of.used_at);
    grant.session(of.is_session)
}

/// Puts the users of the configuration and the keys of each world in force when it starts, and follows the configuration;
/// stores when keys are used. Until the API stops.
pub async fn follow(
    api: Arc<Api>,
    mut starts: watch::Receiver<()>,
    users: impl Fn() -> Vec<ConfiguredUser> + Send,
    mut settings: watch::Receiver<()>,
) {
    let (mut uses, mut in_force) = (api.access.keys.uses(), None);
    // The world could not be asked: it is tried again until one can.
    let mut is_owed = false;
    loop {
        tokio::select! {
            Ok(()) = starts.changed() => {
                api.bridge.opened().await;
                is_owed = true;
            }
            Ok(()) = settings.changed(), if in_force.is_some() => is_owed |= in_force.as_ref() != Some(&users()),
            () = tokio::time::sleep(PUT_AGAIN_AFTER), if is_owed => {}
            Some((key, at)) = next(&mut uses) => {
                note_use(&api, key, at).await;
                continue;
            }
            () = api.shutdown.wait() => return,
        }
        if is_owed {
            let wanted = users();
            is_owed = !put_users_in_force(&api, &wanted).await;
            in_force = Some(wanted);
        }
    }
}

async fn next(uses: &mut Option<mpsc::Receiver<(KeyId, Timestamp)>>) -> Option<(KeyId, Timestamp)> {
    uses.as_mut()?.recv().await
}

/// False when there was no world to ask: another one comes.
async fn put_users_in_force(api: &Api, users: &[ConfiguredUser]) -> bool {
    let changing = api.state::<Changing>();
    let _held = changing.0.lock().await;
    let set = api.bridge.acting_as(Actor::System).ask(SetConfiguredUsers(users.to_vec())).await;
    let listed = match set {
        Err(refusal) if is_without_world(&refusal) => Err(refusal),
        set => {
            if let Err(refusal) = set {
                tracing::error!(%refusal, "the users of config.toml could not be put in force; those before stay");
            }
            api.bridge.ask(ListGrants).await
        }
    };
    match listed {
        Ok(grants) => api.access.keys.set(grants.into_iter().map(grant).collect()),
        Err(refusal) if is_without_world(&refusal) => {
            tracing::debug!(%refusal, "the users and keys will be put in force when there is a world to ask");
            return false;
        }
        Err(refusal) => tracing::error!(%refusal, "the API keys could not be read; named keys are refused"),
    }
    true
}

/// Was the world not there to be asked, because it is given to another node, loads or is exchanged?
fn is_without_world(refusal: &Refusal) -> bool {
    let codes = [MOVING, OUTCOME_UNKNOWN, error_codes::LOADING, error_codes::EXCHANGING];
    refusal.code.is_some_and(|code| codes.contains(&code))
}

async fn note_use(api: &Api, key: KeyId, at: Timestamp) {
    if let Err(error) = api.bridge.acting_as(Actor::System).ask(NoteKeyUse { key, at }).await {
        tracing::debug!(%error, "the use of a key was not stored");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::settings::ApiSettings;
    use crate::testing::{loading, run};

    /// The world goes to another node in the moment in which its keys are to be read, and comes back.
    #[tokio::test(start_paused = true)]
    async fn keys_that_could_not_be_read_are_read_from_the_world_that_comes() {
        let (api, first) = loading(ApiSettings::default());
        api.bridge.share();
        api.access.keys.expect();
        first.open();
        let (starts, configured) = (watch::Sender::default(), watch::Sender::default());
        let following = follow(Arc::clone(&api), starts.subscribe(), Vec::new, configured.subscribe());
        let following = tokio::spawn(following);
        starts.send_replace(());
        // The command was taken, and the world ended before it answered.
        while api.bridge.waiting() == 0 {
            tokio::task::yield_now().await;
        }
        api.bridge.hold();
        drop(first);
        tokio::time::sleep(2 * PUT_AGAIN_AFTER).await;
        assert!(!api.access.keys.is_known(), "nobody could be asked");
        let next = api.bridge.next_world();
        next.open();
        std::thread::spawn(move || run(&next));
        while !api.access.keys.is_known() {
            tokio::time::advance(PUT_AGAIN_AFTER / 10).await;
        }
        api.shutdown.trigger();
        following.await.unwrap();
    }
}
