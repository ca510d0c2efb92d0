//! Other nodes (spec 3, Network peers). Their messages come in as any other message; the rest is outside the world.

pub mod limits;
mod tokens;

pub use tokens::CountPeerTokens;

use crate::kernel::domain::Domain;
use crate::kernel::reaction::on;

/// What this domain brings.
pub(crate) const DOMAIN: Domain = Domain {
    uses: &["usage"],
    install: |world| {
        world.init_resource::<tokens::PeerTokens>();
        on(world, tokens::spent);
    },
    limits: limits::ALL,
    ..Domain::named("peer")
};
