//! The domains of the daemon: one line each. A domain is a folder that no other names unless its `uses` says so.

use crate::kernel::domain::Domain;
use crate::kernel::toolset;
use crate::{
    agent, approval, audit, backup, budget, chat, compaction, config, doctor, event, goal, log, memory, migration,
    model, provider, query, rehearsal, replay, schedule, second_factor, security, session, snapshot, task, template,
    tool, trigger, turn, upload, usage, web, workflow, world,
};

/// Every domain.
pub const DOMAINS: &[Domain] = &[
    agent::DOMAIN,
    session::DOMAIN,
    usage::DOMAIN,
    turn::DOMAIN,
    model::DOMAIN,
    provider::DOMAIN,
    compaction::DOMAIN,
    budget::DOMAIN,
    audit::DOMAIN,
    approval::DOMAIN,
    template::DOMAIN,
    second_factor::DOMAIN,
    security::DOMAIN,
    event::DOMAIN,
    trigger::DOMAIN,
    schedule::DOMAIN,
    goal::DOMAIN,
    task::DOMAIN,
    workflow::DOMAIN,
    memory::DOMAIN,
    upload::DOMAIN,
    tool::DOMAIN,
    web::DOMAIN,
    chat::DOMAIN,
    config::DOMAIN,
    log::DOMAIN,
    query::DOMAIN,
    world::DOMAIN,
    snapshot::DOMAIN,
    backup::DOMAIN,
    rehearsal::DOMAIN,
    replay::DOMAIN,
    migration::DOMAIN,
    doctor::DOMAIN,
];

/// Makes what the domains bring known to the kernel. Safe to call twice.
pub fn install() {
    toolset::install(DOMAINS.iter().flat_map(|domain| domain.tools).cloned());
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn domains_have_names_of_their_own_and_use_others() {
        let names: HashSet<&str> = DOMAINS.iter().map(|domain| domain.name).collect();
        assert_eq!(names.len(), DOMAINS.len());
        for domain in DOMAINS {
            for used in domain.uses {
                assert!(names.contains(used) && *used != domain.name, "{} uses {used}", domain.name);
            }
        }
    }

    #[test]
    fn subcommands_have_names_and_places_of_their_own() {
        let commands: Vec<_> = DOMAINS.iter().flat_map(|domain| domain.commands).collect();
        let (names, places): (HashSet<_>, HashSet<_>) =
            commands.iter().map(|command| (command.name, command.order)).unzip();
        assert_eq!((names.len(), places.len()), (commands.len(), commands.len()));
    }
}
