//! Sessions are read and listed, and let people in.

use agentsvc_components::Refusal;
use agentsvc_components::kernel::id::{KeyId, UserId};
use agentsvc_components::sign_in::{SignInId, SignInSession};
use bevy_ecs::prelude::{Entity, World};

use super::index::SignIns;
use crate::kernel::command::Place;
use crate::kernel::entities::{List, View, ViewPage};
use crate::kernel::index::id_of;
use crate::people::{self, KeyGrant};

/// A session as readers see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignInView {
    /// Its id.
    pub id: SignInId,
    /// Its state.
    pub session: SignInSession,
    /// The name of its user.
    pub user_name: Box<str>,
}

impl View for SignInView {
    type Kind = SignInSession;
    /// Those of this user; `None` lists all.
    type Filter = Option<UserId>;
    const NAMES: [&'static str; 2] = ["get_sign_in", "list_sign_ins"];
    const PLACE: Place<List<Self>> = Place::Root;

    fn of(world: &World, at: Entity) -> Option<Self> {
        let session = world.get::<SignInSession>(at)?.clone();
        let user = session.user.and_then(|user| people::seen_user(world, user));
        let user_name = user.map(|user| user.name.clone()).unwrap_or_default();
        Some(Self { id: id_of(world, at), session, user_name })
    }

    fn passes(&self, filter: &Option<UserId>) -> bool {
        filter.is_none() || self.session.user == *filter
    }

    fn page(world: &World, list: &List<Self>) -> Result<ViewPage<Self>, Refusal> {
        let all = world.resource::<SignIns>();
        let total = list.filter.map_or_else(|| all.len(), |user| all.of(user).len());
        Ok(list.filled(world, Some(total), all.after(list.after)))
    }
}

/// What sessions let people in with. Their ids stand for those of keys.
pub(super) fn grants(world: &World) -> Vec<KeyGrant> {
    let all =
        world.resource::<SignIns>().after(None).filter_map(|(id, at)| Some((id, world.get::<SignInSession>(at)?)));
    let grant = |(id, it): (SignInId, &SignInSession)| {
        let user = people::seen_user(world, it.user?)?;
        Some(KeyGrant {
            key: KeyId(id.0),
            hash: it.hash,
            user: it.user,
            name: user.name.clone(),
            role: user.role,
            scopes: Vec::new(),
            expires_at: Some(it.expires_at),
            used_at: it.used_at,
            is_session: true,
        })
    };
    all.filter_map(grant).collect()
}
