//! Deliveries are read.

use agentsvc_components::delivery::{Receipt, ReceiptId};
use agentsvc_components::kernel::id::JobId;
use agentsvc_components::{AgentId, Refusal, Timestamp};
use bevy_ecs::prelude::{Entity, World};
use uuid::Uuid;

use super::index::Receipts;
use crate::kernel::command::Place;
use crate::kernel::entities::{List, View, ViewPage};
use crate::kernel::index::id_of;
use crate::kernel::job;

/// What the world knows of a delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceiptView {
    /// Its id.
    pub id: ReceiptId,
    /// Its state.
    pub receipt: Receipt,
    /// When it is tried next, where this domain makes the tries; `None` when it has ended.
    pub next_try_at: Option<Timestamp>,
}

/// Which deliveries a list shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReceiptFilter {
    /// All, in the order of creation.
    #[default]
    All,
    /// Those of a schedule, cron job, trigger or workflow, the newest first.
    Source(Uuid),
    /// Those of an agent, the newest first.
    Agent(AgentId),
}

impl View for ReceiptView {
    type Kind = Receipt;
    type Filter = ReceiptFilter;
    const NAMES: [&'static str; 2] = ["get_receipt", "list_receipts"];
    const PLACE: Place<List<Self>> = Place::Root;

    fn of(world: &World, at: Entity) -> Option<Self> {
        let (id, receipt): (ReceiptId, _) = (id_of(world, at), world.get::<Receipt>(at)?.clone());
        Some(Self { id, receipt, next_try_at: job::due(world, JobId(id.0)) })
    }

    fn passes(&self, filter: &ReceiptFilter) -> bool {
        match filter {
            ReceiptFilter::All => true,
            ReceiptFilter::Source(id) => self.receipt.source == *id,
            ReceiptFilter::Agent(agent) => self.receipt.agent == Some(*agent),
        }
    }

    fn page(world: &World, list: &List<Self>) -> Result<ViewPage<Self>, Refusal> {
        let all = world.resource::<Receipts>();
        let found: Box<dyn Iterator<Item = ReceiptId> + '_> = match list.filter {
            ReceiptFilter::All => return Ok(list.filled(world, Some(all.len()), all.after(list.after))),
            ReceiptFilter::Source(id) => Box::new(all.of(id, list.after)),
            ReceiptFilter::Agent(agent) => Box::new(all.of_agent(agent, list.after)),
        };
        Ok(list.filled(world, None, found.filter_map(|id| Some((id, all.get(id)?)))))
    }
}
