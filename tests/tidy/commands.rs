//! What the sources say of commands: whose they are, and that those that write are in the table of inputs.

use std::collections::BTreeSet;
use std::fs;

use agentsvc_systems::{Engine, Settings, replay};

use super::support::routes::{root, sources};

/// The texts of the sources of `systems`.
fn texts() -> impl Iterator<Item = String> {
    sources(&root().join("systems/src")).into_iter().map(|path| fs::read_to_string(path).expect("a source is text"))
}

/// The fields of a type of this name.
fn fields<'a>(file: &'a str, name: &str) -> &'a str {
    let begins = [format!("pub struct {name} {{"), format!("pub struct {name}("), format!("pub enum {name} {{")];
    let rest = begins.iter().find_map(|begin| file.split_once(begin.as_str())).map_or("", |(_, rest)| rest);
    rest.split(['}', ';']).next().unwrap_or("")
}

#[test]
fn every_command_of_an_agent_is_for_its_slot() {
    // What belongs to no agent, though an agent may ask for it.
    let of_root = ["ClaimTask", "ClaimNextTask", "HandEnvironment"];
    let (mut wrong, mut count) = (Vec::new(), 0);
    for file in texts() {
        let written = file.split("\nimpl Command for ").skip(1).map(|part| {
            let place = part.split("PLACE: Place<Self> = Place::").nth(1).unwrap().split([';', '(']).next().unwrap();
            (part.split(' ').next().unwrap(), place)
        });
        let declared = file.split("\ncommand!").skip(1).map(|part| {
            let (declared, _) = part.split_once("\" ").unwrap().1.split_once('|').unwrap();
            let place = declared.trim_end_matches([',', ' ', '\n', '(']).rsplit(' ').next().unwrap();
            (declared.split(' ').next().unwrap(), place.split('(').next().unwrap())
        });
        for (name, place) in written.chain(declared) {
            let fields = fields(&file, name);
            let owned = ["AgentId", "SessionId", "TriggerId", "ScheduleId", "ApprovalId"];
            let names_one = owned.iter().any(|id| {
                fields.contains(&format!("agent: {id},"))
                    || fields.trim() == format!("pub {id})")
                    || fields.contains("pub session: SessionId,")
                    || fields.contains(&format!("id: {id},"))
            });
            count += 1;
            if names_one && !["Id", "Name"].contains(&place) && !of_root.contains(&name) {
                wrong.push((name.to_owned(), place.to_owned()));
            }
        }
    }
    assert_eq!(wrong, []);
    assert!(count > 90, "{count} commands were found");
}

#[test]
fn every_writing_command_is_in_the_table() {
    // The engine hands over the list of domains.
    let _engine = Engine::new(Settings::default(), [7; 32]);
    let known: BTreeSet<&str> = replay::names().collect();
    let mut missing = Vec::new();
    for text in texts() {
        for part in text.split("impl Command for ").skip(1) {
            let body = part.split("\n}").next().unwrap();
            let name = body.split("NAME: &'static str = \"").nth(1).and_then(|rest| rest.split('"').next());
            missing.extend(
                name.filter(|name| body.contains("WRITES: bool = true") && !known.contains(name)).map(str::to_owned),
            );
        }
        let declared = text.split("write \"").skip(1).filter_map(|rest| rest.split('"').next());
        missing.extend(declared.filter(|name| !known.contains(name)).map(str::to_owned));
    }
    assert_eq!(missing, Vec::<String>::new(), "add them to the commands of their domain");
}
