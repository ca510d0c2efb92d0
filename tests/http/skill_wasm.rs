//! Skills in WebAssembly: what they reach of an agent, and what stops them.

use std::fs;

use serde_json::{Value, json};

use crate::skills::{reload, result, write};
use crate::support::daemon::Daemon;
use crate::support::model::Model;

/// Puts a skill whose only tool runs this body.
fn skill(daemon: &Daemon, name: &str, capabilities: &str, body: &str) {
    let toml = format!(
        "[skill]\nname = \"{name}\"\ndescription = \"Tests\"\n[runtime]\ntype = \"wasm\"\nentry = \"main.wasm\"\n\
         [[tools.provided]]\nname = \"{name}\"\ndescription = \"Tests\"\ninput_schema = {{ type = \"object\" }}\n\
         [requirements]\ncapabilities = [{capabilities}]\n"
    );
    write(daemon.home(), &format!("{name}/skill.toml"), &toml);
    let module = format!(
        "(module
            (import \"librefang\" \"host_call\" (func $host_call (param i32 i32) (result i64)))
            (memory (export \"memory\") 40)
            (global $next (mut i32) (i32.const 4096))
            (func (export \"alloc\") (param $length i32) (result i32)
                (local $at i32)
                (local.set $at (global.get $next))
                (global.set $next (i32.add (global.get $next) (local.get $length)))
                (local.get $at))
            {body})"
    );
    let module = wat::parse_str(module).expect("a module");
    fs::write(daemon.home().join(format!("skills/{name}/main.wasm")), module).expect("the module");
}

/// A body that sends this request and gives the answer.
fn asks(request: &Value) -> String {
    let text = request.to_string();
    let (data, length) = (text.replace('"', "\\\""), text.len());
    format!(
        "(data (i32.const 16) \"{data}\")
         (func (export \"execute\") (param i32 i32) (result i64) (call $host_call (i32.const 16) (i32.const {length})))"
    )
}

fn file(method: &str, path: &str) -> Value {
    json!({ "method": method, "params": { "path": path, "content": "hello from within" } })
}

#[test]
fn a_module_reaches_what_it_and_its_agent_are_granted_and_burns_out() {
    let model = Model::start();
    let daemon = Daemon::with(&model.config());
    let all = "\"FileRead(*)\", \"FileWrite(*)\", \"NetConnect(*)\", \"ShellExec(*)\"";
    skill(&daemon, "w_write", "\"FileWrite(notes/*)\"", &asks(&file("fs_write", "notes/a.txt")));
    skill(&daemon, "w_read", all, &asks(&file("fs_read", "notes/a.txt")));
    skill(&daemon, "w_bare", "\"nonsense\"", &asks(&file("fs_read", "notes/a.txt")));
    skill(&daemon, "w_out", all, &asks(&file("fs_read", "../../config.toml")));
    let fetch = json!({ "method": "net_fetch", "params": { "url": "http://127.0.0.1:8080/" } });
    skill(&daemon, "w_fetch", all, &asks(&fetch));
    let command = json!({ "method": "shell_exec", "params": { "command": "id" } });
    skill(&daemon, "w_shell", all, &asks(&command));
    let set = json!({ "method": "kv_set", "params": { "key": "k", "value": [1] } });
    skill(&daemon, "w_set", "", &asks(&set));
    skill(
        &daemon,
        "w_echo",
        "",
        "(func (export \"execute\") (param $at i32) (param $length i32) (result i64)
        (i64.or (i64.shl (i64.extend_i32_u (local.get $at)) (i64.const 32)) (i64.extend_i32_u (local.get $length))))",
    );
    skill(&daemon, "w_loop", "", "(func (export \"execute\") (param i32 i32) (result i64) (loop (br 0)) unreachable)");
    reload(&daemon);
    let agent =
        daemon.agent_with("ann", "[capabilities]\ntools = [\"w_*\", \"file_*\", \"web_fetch\"]\nnetwork = [\"*\"]\n");
    let call = |tool: &str| result(&model, &daemon, &agent, tool, &json!({ "text": "hi" }));
    assert!(call("w_echo").contains(r#""tool":"w_echo""#), "{}", call("w_echo"));
    assert!(call("w_write").contains(r#"{"ok":true}"#));
    assert!(call("w_read").contains("hello from within"));
    for (tool, part) in [
        ("w_bare", "not granted: FileRead"),
        ("w_out", "not allowed"),
        ("w_fetch", "not public"),
        ("w_shell", "not granted to the agent"),
        ("w_loop", "used up its fuel"),
    ] {
        let said = call(tool);
        assert!(said.contains(part), "{tool}: {said}");
    }
    let notes = daemon.home().join("workspaces/ann/notes");
    fs::write(daemon.home().join("workspaces/ann/secret.txt"), "not in notes").unwrap();
    fs::remove_file(notes.join("a.txt")).unwrap();
    std::os::unix::fs::symlink("../secret.txt", notes.join("a.txt")).unwrap();
    for tool in ["w_read", "w_write"] {
        let said = call(tool);
        assert!(said.contains("goes through a symbolic link"), "{tool}: {said}");
    }
    assert!(call("w_set").contains(r#"{"ok":true}"#));
    let memory = daemon.get(&format!("/api/memory/agents/{agent}/kv")).text();
    assert!(memory.contains("skill:w_set:k"), "{memory}");
}
