//! Answers of schedules, cron jobs, triggers and workflows on their way to webhooks and files. Those to chats are sends of their
//! channels.

mod file;
mod post;

use std::sync::Arc;

use agentsvc_components::delivery::{DeliveryOrder, Target};
use agentsvc_components::kernel::job::{RunJob, TryEnd};
use agentsvc_systems::delivery;

use crate::kernel::domain::Domain;
use crate::kernel::effect::performers::Performers;
use crate::tool::toolset::ToolParts;
use crate::webhook::sender::Sender;

/// What this domain brings.
pub const DOMAIN: Domain = Domain { name: "delivery", uses: &["tool", "webhook"], performers, ..Domain::EMPTY };

fn performers(performers: &mut Performers) {
    let parts: ToolParts = performers.part();
    let sender = Arc::new(Sender { web: parts.web.clone(), vault: performers.part() });
    performers.on_job(delivery::NAME, move |job| {
        let (sender, parts) = (Arc::clone(&sender), parts.clone());
        async move { deliver(&sender, &parts, job).await }
    });
}

/// Tries a delivery.
async fn deliver(sender: &Sender, parts: &ToolParts, job: RunJob) -> TryEnd {
    let Ok(order) = serde_json::from_str::<DeliveryOrder>(&job.input) else {
        return TryEnd::Failed("the stored delivery cannot be read".to_owned());
    };
    let id = job.attempt.job.0;
    match &order.target {
        Target::Webhook { url, secret, auth_header } => {
            let to = post::To { url, secret: secret.as_deref(), auth_header: auth_header.as_deref() };
            post::post(sender, id, &to, &order).await
        }
        Target::LocalFile { path, append } => {
            let (path, append) = (path.clone(), *append);
            file::write(parts, id, (path, append), order).await
        }
        Target::Channel { .. } | Target::LastChannel | Target::Email { .. } => {
            TryEnd::Failed("channels send by themselves".to_owned())
        }
    }
}
