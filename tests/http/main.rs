//! Black-box tests over HTTP against the real binary, one file per family of routes or rules.

#![allow(clippy::unwrap_used, reason = "a test that fails says where")]

#[path = "../support/mod.rs"]
mod support;

mod agents;
mod approvals;
mod attachments;
mod audit;
mod bad_input;
mod bindings;
mod budget;
mod bulk;
mod catalog;
mod catalog_remote;
mod cli;
mod compaction;
mod config;
mod config_reload;
mod config_start;
mod conventions;
mod cron_jobs;
mod doctor;
mod events;
mod files;
mod goals;
mod limits;
mod lists;
mod memory;
mod messages;
mod migrate;
mod models;
mod provider_endpoints;
mod provider_login;
mod providers;
mod schedules;
mod second_factor;
mod security;
mod sessions;
mod snapshots;
mod streams;
mod system;
mod tasks;
mod templates;
mod tools;
mod tools_invoke;
mod traces;
mod trajectory;
mod trigger_fires;
mod trigger_tasks;
mod triggers;
mod untrusted;
mod uploads;
mod usage;
mod usage_import;
mod usage_totals;
mod v1;
mod v1_stream;
mod v1_tools;
mod workflow_runs;
mod workflows;
mod ws;
mod ws_chat;
mod ws_edges;
