//! External agents: their cards are fetched, messages sent, and tasks asked for (spec 3, A2A). All of it goes through the one
//! HTTP client with its rules for private hosts, follows no redirects, and reads bounded answers.
//!
//! | module | what it does |
//! |---|---|
//! | `client` | one request, one bounded answer; which header goes where |
//! | `card` | what an agent card says |
//! | `wire` | requests in each dialect |
//! | `answer` | answers of each dialect |
//! | `host` | what the API asks for |
//! | `job` | tries of the jobs |
//! | `fuzzing` | what a fuzz target does with cards and answers |
//! | `tools` | what agents call |

mod answer;
mod card;
mod client;
pub(crate) mod fuzzing;
mod host;
mod job;
pub(super) mod tools;
mod wire;

pub(super) use client::Client;
pub(super) use host::Outbound;
pub(super) use job::Sender;
