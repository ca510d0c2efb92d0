//! Stored MCP servers: what commands take and refuse.

use agentsvc_components::Refusal;
use agentsvc_components::mcp::{McpServer, SamplingRule};

use super::*;
use crate::kernel::entities::List;
use crate::testing::TestWorld;

const STDIO: &str = r#"{"type":"stdio","command":"npx","args":["-y","server"]}"#;

fn given(values: &[(&str, Option<&str>)]) -> Option<Vec<(String, Option<String>)>> {
    Some(values.iter().map(|(name, value)| ((*name).to_owned(), value.map(str::to_owned))).collect())
}

fn create(world: &mut TestWorld, name: &str, fields: McpServerFields) -> Result<McpServer, Refusal> {
    let created = world.ask(CreateMcpServer { name: name.to_owned(), template_id: None, fields });
    created.map(|view| view.server)
}

fn update(world: &mut TestWorld, name: &str, fields: McpServerFields) -> Result<McpServer, Refusal> {
    world.ask(UpdateMcpServer { name: name.to_owned(), fields }).map(|view| view.server)
}

fn stdio() -> McpServerFields {
    McpServerFields { transport: Some(STDIO.to_owned()), ..McpServerFields::default() }
}

fn names(world: &mut TestWorld) -> Vec<String> {
    let list = List::<McpServerView> { filter: (), after: None, limit: 1_000 };
    world.ask(list).unwrap().items.into_iter().map(|view| view.server.name.to_string()).collect()
}

#[test]
fn servers_are_added_changed_and_removed() {
    let mut world = TestWorld::new();
    let env = given(&[("TOKEN", Some("sealed-1")), ("MODE", Some("sealed-2"))]);
    let server = create(&mut world, "files", McpServerFields { env, ..stdio() }).unwrap();
    assert_eq!((server.transport.as_deref(), server.env.len(), server.network), (Some(STDIO), 2, false));
    let fields = McpServerFields { network: Some(true), timeout_secs: Some(9), ..McpServerFields::default() };
    let server = update(&mut world, "files", fields).unwrap();
    assert_eq!((server.network, server.timeout_secs, server.env.len()), (true, Some(9), 2));
    // Values that are left out stay; names that are left out go.
    let env = given(&[("TOKEN", None)]);
    let server = update(&mut world, "files", McpServerFields { env, ..McpServerFields::default() }).unwrap();
    assert_eq!(server.env.iter().map(|it| (&*it.name, &*it.value)).collect::<Vec<_>>(), [("TOKEN", "sealed-1")]);
    assert_eq!(names(&mut world), ["files"]);
    world.ask(RemoveMcpServer("files".to_owned())).unwrap();
    assert!(names(&mut world).is_empty());
    assert!(world.ask(RemoveMcpServer("files".to_owned())).unwrap_err().message.contains("not found"));
    assert!(update(&mut world, "files", McpServerFields::default()).unwrap_err().message.contains("not found"));
}

#[test]
fn names_differ_as_those_of_tools_do() {
    let mut world = TestWorld::new();
    create(&mut world, "my-files", stdio()).unwrap();
    for name in ["my-files", "my_files", "MY-Files"] {
        assert_eq!(create(&mut world, name, stdio()).unwrap_err().code, Some(error_codes::MCP_SERVER_EXISTS), "{name}");
    }
    // Another spelling is not this server.
    assert!(world.ask(RemoveMcpServer("my_files".to_owned())).is_err());
    for name in ["", "a b", "ä", &"x".repeat(33)] {
        assert_eq!(create(&mut world, name, stdio()).unwrap_err().field.as_deref(), Some("name"), "{name}");
    }
    assert_eq!(names(&mut world), ["my-files"]);
}

#[test]
fn what_is_wrong_changes_nothing() {
    let mut world = TestWorld::new();
    create(&mut world, "files", McpServerFields { env: given(&[("A", Some("s"))]), ..stdio() }).unwrap();
    let wrong: [(McpServerFields, &str); 8] = [
        (McpServerFields { transport: Some("{}".to_owned()), ..McpServerFields::default() }, "transport"),
        (McpServerFields { env: given(&[("B", None)]), ..McpServerFields::default() }, "env"),
        (McpServerFields { env: given(&[("A", None), ("A", None)]), ..McpServerFields::default() }, "env"),
        (McpServerFields { timeout_secs: Some(0), ..McpServerFields::default() }, "timeout_secs"),
        (McpServerFields { timeout_secs: Some(601), ..McpServerFields::default() }, "timeout_secs"),
        (McpServerFields { oauth: Some(Some("{\"x\":1}".to_owned())), ..McpServerFields::default() }, "oauth"),
        (McpServerFields { sampling_max_tokens: Some(0), ..McpServerFields::default() }, "sampling_max_tokens"),
        (McpServerFields { sampling_max_tokens: Some(1_000_001), ..McpServerFields::default() }, "sampling_max_tokens"),
    ];
    for (fields, field) in wrong {
        let refusal = update(&mut world, "files", fields.clone()).unwrap_err();
        assert_eq!(refusal.field.as_deref(), Some(field), "{fields:?}");
    }
    let list = List::<McpServerView> { filter: (), after: None, limit: 9 };
    let kept = world.ask(list).unwrap().items.remove(0).server;
    assert_eq!((kept.transport.as_deref(), kept.env.len(), kept.timeout_secs), (Some(STDIO), 1, None));
    assert_eq!(create(&mut world, "x", McpServerFields::default()).unwrap_err().field.as_deref(), Some("transport"));
}

#[test]
fn another_server_does_not_get_the_grant_to_ask_models() {
    let mut world = TestWorld::new();
    let fields = McpServerFields { sampling: Some(SamplingRule::On), sampling_max_tokens: Some(7), ..stdio() };
    assert_eq!(create(&mut world, "files", stdio()).unwrap().sampling.rule, SamplingRule::Off);
    assert_eq!(update(&mut world, "files", fields).unwrap().sampling.rule, SamplingRule::On);
    let later = McpServerFields { timeout_secs: Some(9), ..stdio() };
    let kept = update(&mut world, "files", later).unwrap().sampling;
    assert_eq!((kept.rule, kept.max_tokens), (SamplingRule::On, Some(7)), "the same transport");
    world.restart();
    let other = McpServerFields { transport: Some(STDIO.replace("stdio\"", "stdio\" ")), ..McpServerFields::default() };
    assert_eq!(update(&mut world, "files", other).unwrap().sampling.rule, SamplingRule::Off);
    let log = world.store.values().filter_map(|value| crate::audit::decode(value));
    let noted = log.filter(|entry| entry.details.to_string().contains("\"sampling\":\"on\"")).count();
    assert_eq!(noted, 2);
}

#[test]
fn a_server_of_a_template_that_gets_its_own_transport_loses_the_grant_to_ask_models() {
    let mut world = TestWorld::new();
    let fields = McpServerFields { sampling: Some(SamplingRule::On), ..McpServerFields::default() };
    let created = CreateMcpServer { name: "git".to_owned(), template_id: Some("git".to_owned()), fields };
    assert_eq!(world.ask(created).unwrap().server.sampling.rule, SamplingRule::On);
    let later = McpServerFields { timeout_secs: Some(9), ..McpServerFields::default() };
    assert_eq!(update(&mut world, "git", later).unwrap().sampling.rule, SamplingRule::On, "the same server");
    assert_eq!(update(&mut world, "git", stdio()).unwrap().sampling.rule, SamplingRule::Off);
    // A grant that comes with the transport is meant for it.
    let fields = McpServerFields { sampling: Some(SamplingRule::Approve), ..stdio() };
    let created = CreateMcpServer { name: "own".to_owned(), template_id: Some("git".to_owned()), fields };
    assert_eq!(world.ask(created).unwrap().server.sampling.rule, SamplingRule::Approve);
}

#[test]
fn another_host_does_not_get_the_headers() {
    let mut world = TestWorld::new();
    let at = |url: &str| Some(format!("{{\"type\":\"http\",\"url\":\"{url}\"}}"));
    let headers = given(&[("X-Key", Some("sealed"))]);
    let fields = McpServerFields { transport: at("https://a/mcp"), headers, ..McpServerFields::default() };
    create(&mut world, "web", fields).unwrap();
    let moved = |url: &str| McpServerFields { transport: at(url), ..McpServerFields::default() };
    assert_eq!(update(&mut world, "web", moved("https://a/other")).unwrap().headers.len(), 1);
    assert_eq!(update(&mut world, "web", moved("https://b/mcp")).unwrap_err().field.as_deref(), Some("headers"));
    let kept = McpServerFields { headers: given(&[("X-Key", None)]), ..moved("https://b/mcp") };
    assert!(update(&mut world, "web", kept).unwrap_err().message.contains("needs a value"));
    let anew = McpServerFields { headers: given(&[("X-Key", Some("other"))]), ..moved("https://b/mcp") };
    assert_eq!(&*update(&mut world, "web", anew).unwrap().headers[0].value, "other");
}

#[test]
fn there_are_so_many_servers() {
    let mut world = TestWorld::new();
    for at in 0..limits::MCP_SERVERS_MAX {
        create(&mut world, &format!("s{at}"), stdio()).unwrap();
    }
    let refusal = create(&mut world, "more", stdio()).unwrap_err();
    assert_eq!(refusal.code, Some(error_codes::MCP_SERVERS_FULL));
    world.ask(RemoveMcpServer("s0".to_owned())).unwrap();
    create(&mut world, "more", stdio()).unwrap();
}
