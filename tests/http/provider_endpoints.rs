//! Where providers are asked, set over the API; and runtimes on this machine (spec 2, Providers).

use serde_json::{Value, json};

use crate::providers::{KEY, agent, config, provider, send, set_key};
use crate::support::daemon::{Daemon, text};
use crate::support::model::Model;
use crate::support::model_server::{ModelServer, Reply};

#[test]
fn an_endpoint_is_set_lasts_and_goes_back() {
    let (model, other) = (Model::start(), ModelServer::start());
    let allowed = format!("[web.fetch]\nssrf_allowed_hosts = [\"{}\"]\n", other.address());
    let mut daemon = Daemon::with(&format!("{}{allowed}", config(&model)));
    set_key(&daemon, "mine", KEY);
    let agent = agent(&daemon, "a", false);
    let put = |daemon: &Daemon, url: &Value| daemon.put("/api/providers/mine/url", &json!({ "url": url }));
    let url = other.base_url();
    let set = put(&daemon, &json!(format!("{url}/"))).expect(200);
    assert_eq!((&set["status"], &set["base_url"]), (&json!("updated"), &json!(url)));
    let refused = send(&daemon, &agent).text();
    assert!(refused.contains("was set for another base URL; set it again"), "{refused}");
    assert!(other.requests().is_empty(), "the key stays where it was meant for");
    assert!(text(&provider(&daemon, "mine")["problem"]).contains("another base URL"));
    set_key(&daemon, "mine", KEY);
    send(&daemon, &agent).expect(200);
    assert_eq!(other.requests().len(), 1, "the new place is asked");
    assert_eq!(other.requests()[0].headers["authorization"], format!("Bearer {KEY}").as_str());
    daemon.restart();
    let shown = provider(&daemon, "mine");
    assert_eq!((&shown["base_url"], &shown["base_url_override"]), (&json!(url), &json!(true)));
    send(&daemon, &agent).expect(200);
    assert_eq!((other.requests().len(), model.requests().len()), (2, 0));
    for back in [json!(null), json!("")] {
        let back = put(&daemon, &back).expect(200);
        assert_eq!((&back["status"], &back["base_url"]), (&json!("removed"), &json!(model.server.base_url())));
    }
    let refused = send(&daemon, &agent).text();
    assert!(refused.contains("was set for another base URL"), "{refused}");
    assert_eq!((other.requests().len(), model.requests().len()), (2, 0));
    set_key(&daemon, "mine", KEY);
    send(&daemon, &agent).expect(200);
    assert_eq!((other.requests().len(), model.requests().len()), (2, 1));
    let audited = daemon.get("/api/audit/recent").text();
    assert!(audited.contains("provider_url_set"), "{audited}");
    daemon.put("/api/providers/nobody/url", &json!({ "url": url })).refused(404);
    daemon.put("/api/providers/builtin/url", &json!({ "url": url })).refused(400);
}

#[test]
fn an_endpoint_over_the_api_reaches_no_private_host() {
    let daemon = Daemon::with("[web.fetch]\nssrf_allowed_hosts = [\"10.1.0.0/16\"]\n");
    let put = |name: &str, url: &str| daemon.put(&format!("/api/providers/{name}/url"), &json!({ "url": url }));
    for url in [
        "http://127.0.0.1:8080/v1",
        "http://localhost/v1",
        "http://169.254.169.254/latest/meta-data",
        "http://10.0.0.1/v1",
        "http://2130706433/v1",
        "http://[::1]:80/v1",
        "http://[::ffff:192.168.0.1]/v1",
        "http://router.local/v1",
        "ftp://93.184.216.34/v1",
        "nonsense",
        "https://user:password@93.184.216.34/v1",
        "https://93.184.216.34/v1?key=1",
        "https://93.184.216.34:25/v1",
    ] {
        put("openai", url).refused_field(400, "url");
    }
    assert_eq!(provider(&daemon, "openai")["base_url_override"], false);
    put("openai", "https://93.184.216.34/v1").expect(200);
    put("openai", "http://10.1.2.3/v1").expect(200);
    // A runtime on this machine is there by nature; elsewhere it is a host like any other.
    put("ollama", "http://127.0.0.1:11435").expect(200);
    put("ollama", "http://192.168.0.7:11434").refused_field(400, "url");
    daemon.send("PUT", "/api/providers/openai/url", &[], Some(b"{\"url\": 5}")).refused_field(400, "url");
    daemon.put("/api/providers/openai/url", &json!({ "base_url": null })).refused_field(400, "url");
    assert_eq!(provider(&daemon, "openai")["base_url_override"], true, "a body without the key changes nothing");
}

/// What each runtime answers, by path.
fn runtime(name: &'static str) -> ModelServer {
    let server = ModelServer::start();
    server.respond(move |request| {
        let answer = match (name, request.path.as_str()) {
            ("ollama", "/api/tags") => json!({"models": [
                {"name": "qwen3:8b", "size": 5_000_000_000_u64}, {"name": "llama3.2:latest", "size": 2_000_000_000_u64}]}),
            ("ollama", "/api/version") => json!({"version": "0.12.3"}),
            ("ollama", "/api/ps") => json!({"models": [{"name": "qwen3:8b"}]}),
            ("ollama", "/api/show") if request.body["model"] == "qwen3:8b" => {
                json!({"model_info": {"general.architecture": "qwen3", "qwen3.context_length": 40_960}})
            }
            ("lmstudio", "/api/v0/models") => json!({"data": [
                {"id": "qwen2.5-7b", "type": "llm", "state": "loaded", "max_context_length": 32_768, "loaded_context_length": 4_096},
                {"id": "nomic-embed", "type": "embeddings"}, {"id": "phi-4", "type": "llm", "state": "not-loaded", "max_context_length": 16_384}]}),
            ("llamacpp", "/v1/models") => json!({"data": [{"id": "gemma.gguf", "meta": {"n_ctx_train": 131_072, "size": 3_000_000_000_u64}}]}),
            ("llamacpp", "/props") => json!({"default_generation_settings": {"n_ctx": 8_192}, "build_info": "b6000"}),
            ("vllm", "/v1/models") => json!({"data": [{"id": "Qwen/Qwen3-8B", "max_model_len": 32_768}]}),
            ("vllm", "/version") => json!({"version": "0.11.0"}),
            ("odd", _) => return Reply::raw(200, &[("content-type", "text/html")], "<html>"),
            _ => return Reply::error(404, "unknown path"),
        };
        Reply::raw(200, &[("content-type", "application/json")], &answer.to_string())
    });
    server
}

#[test]
fn runtimes_on_this_machine_are_found_with_their_models() {
    let daemon = Daemon::start();
    let detect = |name: &str| daemon.get(&format!("/api/providers/{name}/detect")).expect(200);
    let at = |name: &str, server: &ModelServer, path: &str| {
        let url = format!("http://{}{path}", server.address());
        daemon.put(&format!("/api/providers/{name}/url"), &json!({ "url": url })).expect(200);
    };
    let model = |found: &Value, id: &str| {
        found["models"]
            .as_array()
            .unwrap()
            .iter()
            .find(|model| model["id"] == id)
            .unwrap_or_else(|| panic!("{id} in {found}"))
            .clone()
    };
    let servers = ["ollama", "lmstudio", "llamacpp", "vllm"].map(|name| (name, runtime(name)));
    for (name, server) in &servers {
        at(name, server, if *name == "ollama" { "" } else { "/v1" });
    }
    let ollama = detect("ollama");
    assert_eq!(
        (&ollama["available"], &ollama["version"], &ollama["total"]),
        (&json!(true), &json!("0.12.3"), &json!(2))
    );
    let qwen = model(&ollama, "qwen3:8b");
    assert_eq!(
        (&qwen["context_window"], &qwen["loaded"], &qwen["size_bytes"]),
        (&json!(40_960), &json!(true), &json!(5_000_000_000_u64))
    );
    assert_eq!(model(&ollama, "llama3.2:latest")["context_window"], Value::Null);
    let lmstudio = detect("lmstudio");
    assert_eq!(lmstudio["total"], 2, "no model for texts alone: {lmstudio}");
    assert_eq!(model(&lmstudio, "qwen2.5-7b")["context_window"], 4_096);
    assert_eq!(model(&detect("llamacpp"), "gemma.gguf")["context_window"], 8_192);
    let vllm = detect("vllm");
    assert_eq!(
        (&vllm["version"], &model(&vllm, "Qwen/Qwen3-8B")["context_window"]),
        (&json!("0.11.0"), &json!(32_768))
    );

    // Something else at that port, nobody there, and one that is no runtime.
    at("vllm", &runtime("odd"), "/v1");
    let odd = detect("vllm");
    assert_eq!((&odd["available"], &odd["models"]), (&json!(false), &json!([])));
    drop(servers);
    let gone = detect("llamacpp");
    assert_eq!((&gone["available"], &gone["reason"]), (&json!(false), &json!("no program responds at this address")));
    assert_eq!(daemon.get("/api/providers/openai/detect").expect(400)["code"], "wrong_provider");
    daemon.get("/api/providers/nobody/detect").refused(404);
}

#[test]
fn the_query_of_an_endpoint_says_what_its_driver_reads_there_and_nothing_else() {
    let server = ModelServer::start();
    server.respond(|request| {
        let answer = match request.path.as_str() {
            "/api/chat" => json!({"model": "m", "message": {"role": "assistant", "content": "hi"}, "done": true,
                "done_reason": "stop", "prompt_eval_count": 3, "eval_count": 1}),
            "/api/tags" => json!({"models": [{"name": "m"}]}),
            _ => return Reply::error(404, "unknown path"),
        };
        Reply::raw(200, &[("content-type", "application/json")], &answer.to_string())
    });
    let url = |query: &str| format!("http://{}/{query}", server.address());
    let daemon = Daemon::with(&format!("[providers.ollama]\nbase_url = \"{}\"\n", url("?keep_alive=30m")));
    let agent = daemon.agent_with("a", "[model]\nprovider = \"ollama\"\nmodel = \"m\"\n");
    let kept = || {
        send(&daemon, &agent).expect(200);
        let chat = server.requests().into_iter().rfind(|request| request.path == "/api/chat");
        chat.map(|request| request.body["keep_alive"].clone())
    };
    assert_eq!(kept(), Some(json!("30m")), "as the configuration says");
    let put = |url: &str| daemon.put("/api/providers/ollama/url", &json!({ "url": url }));
    put(&url("api?keep_alive=-1")).expect(200);
    assert_eq!(kept(), Some(json!(-1)), "as was set over the API");
    let found = daemon.get("/api/providers/ollama/detect").expect(200);
    assert_eq!((&found["available"], &found["models"][0]["id"]), (&json!(true), &json!("m")), "{found}");
    put(&url("?keep_alive=1&key=x")).refused_field(400, "url");
}
