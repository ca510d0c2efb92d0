//! Tests of the way of a request.

use std::time::Duration;

use hyper::Request;
use hyper::header::{
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_REQUEST_METHOD, AUTHORIZATION, CONTENT_TYPE, HOST, ORIGIN, RETRY_AFTER,
    VARY, WWW_AUTHENTICATE,
};
use serde_json::json;

use super::*;
use crate::DOMAINS;
use crate::http::metrics::{MetricsText, Probe};
use crate::http::route::Verb;
use crate::http::settings::{ApiSettings, Limits};
use crate::log::hub::LogHub;
use crate::model::catalog::DefaultModel;
use crate::testing::{CLIENT, front, get, loading, send};

fn keyed() -> ApiSettings {
    ApiSettings { api_key: "secret".to_owned(), ..ApiSettings::default() }
}

fn assert_sealed(response: &Response) {
    let headers = response.headers();
    assert!(uuid::Uuid::parse_str(headers["x-request-id"].to_str().unwrap()).is_ok());
    assert!(headers["content-security-policy"].to_str().unwrap().starts_with("default-src 'self'"));
    assert_eq!(headers["x-frame-options"], "DENY");
    assert_eq!(headers["x-content-type-options"], "nosniff");
    assert_eq!(headers["strict-transport-security"], "max-age=63072000; includeSubDomains");
    assert_eq!(headers[VARY], "Origin");
}

#[tokio::test]
async fn every_error_is_json_and_sealed() {
    let settings = ApiSettings {
        rate_limit_per_second: 6,
        limits: Limits { header_bytes_max: 200, uri_bytes_max: 100, ..Limits::default() },
        ..keyed()
    };
    let api = front(settings);
    let long = "x".repeat(300);
    let cases = [
        (Request::get("/api/nothing"), 404),
        (Request::put("/api/health"), 405),
        (Request::get("/api/status"), 401),
        (Request::get(format!("/{long}")), 414),
        (Request::get("/api/health").header("x-long", &long), 431),
        (Request::get("/api/health").method("BREW"), 405),
    ];
    for (request, status) in cases {
        let response = send(&api, request, "").await;
        assert_eq!(response.status(), status);
        assert_sealed(&response);
        assert!(reply::collect(response).await["error"].is_string());
    }
    let mut last = get(&api, "/api/health").await;
    for _ in 0..100 {
        last = get(&api, "/api/health").await;
    }
    assert_eq!(last.status(), 429);
    assert_eq!(last.headers()[RETRY_AFTER], "1");
    assert_sealed(&last);
}

/// Makes `/api/metrics` an answer of more than a megabyte.
struct Large;

impl Probe for Large {
    fn gather(&self, out: &mut MetricsText) {
        out.family("large", &"x".repeat(1 << 20), "gauge");
    }
}

#[tokio::test]
async fn a_large_answer_costs_more_than_a_small_one_and_a_shared_or_streamed_one_does_not() {
    let status = async |first: &'static str| {
        let api = front(ApiSettings { rate_limit_per_second: 1, ..ApiSettings::default() });
        api.add_probe(Arc::new(Large));
        assert_eq!(get(&api, first).await.status(), 200, "{first}");
        // The bucket holds two units.
        get(&api, "/api/health").await.status().as_u16()
    };
    assert_eq!(status("/api/metrics").await, 429);
    for first in ["/api/health", "/api/openapi.json", "/api/logs/stream"] {
        assert_eq!(status(first).await, 200, "{first}");
    }
}

#[tokio::test]
async fn a_success_is_sealed_too_and_keeps_the_clients_id() {
    let api = front(ApiSettings::default());
    let id = "018f0000-0000-7000-8000-000000000001";
    let response = send(&api, Request::get("/api/health").header("x-request-id", id), "").await;
    assert_sealed(&response);
    assert_eq!(response.headers()["x-request-id"], id);
    assert_eq!(response.headers()[CONTENT_TYPE], "application/json");
    let body = reply::collect(response).await;
    assert_eq!(body["status"], "ok");
    assert_eq!(body["panic_count"], 0);
}

#[tokio::test(start_paused = true)]
async fn health_answers_while_the_world_is_loading_and_the_rest_says_so() {
    let (api, _intake) = loading(ApiSettings::default());
    let started = tokio::time::Instant::now();
    assert_eq!(get(&api, "/api/health").await.status(), 200);
    assert_eq!(get(&api, "/api/ready").await.status(), 503);
    assert_eq!(started.elapsed(), Duration::ZERO);
    let detail = reply::collect(get(&api, "/api/health/detail").await).await;
    assert_eq!(detail["database"], "loading");
    let status = get(&api, "/api/status").await;
    assert_eq!(status.status(), 503);
    assert!(status.headers().contains_key(RETRY_AFTER));
    api.health.set_store_up(false);
    assert_eq!(reply::collect(get(&api, "/api/health").await).await["status"], "degraded");
}

#[tokio::test(start_paused = true)]
async fn requests_wait_for_a_world_that_loads() {
    let (api, intake) = loading(ApiSettings::default());
    let started = tokio::time::Instant::now();
    let (answer, ()) = tokio::join!(get(&api, "/api/security"), async {
        tokio::time::sleep(Duration::from_secs(3)).await;
        intake.open();
    });
    assert_eq!((answer.status().as_u16(), started.elapsed().as_secs()), (200, 3));
    assert_eq!(get(&api, "/api/ready").await.status(), 200);
    intake.close();
    assert_eq!(get(&api, "/api/status").await.status(), 503);
    assert_eq!(started.elapsed().as_secs(), 3, "a world that ends is not waited for");
}

#[tokio::test]
async fn a_daemon_that_takes_no_changes_is_not_ready_and_says_why() {
    let api = front(ApiSettings::default());
    api.health.set_read_only(true);
    let ready = get(&api, "/api/ready").await;
    assert_eq!(ready.status(), 503);
    assert!(ready.headers().contains_key(RETRY_AFTER));
    let body = reply::collect(ready).await;
    assert_eq!((&body["code"], body["error"].is_string()), (&json!("read_only"), true), "{body}");
    let health = get(&api, "/api/health").await;
    assert_eq!((health.status().as_u16(), &reply::collect(health).await["read_only"]), (200, &json!(true)));
    assert_eq!(get(&api, "/api/status").await.status(), 200, "reads are answered");
    api.health.set_read_only(false);
    assert_eq!(get(&api, "/api/ready").await.status(), 200);
}

#[tokio::test]
async fn without_room_every_route_that_writes_is_refused_before_it_does_anything() {
    const TAKEN: &str = "/ /a2a /api/agents/bulk/stop /api/agents/check /api/agents/{id}/owner /api/agents/{id}/stop \
        /api/auth/introspect /api/auth/logout /api/backup /api/cluster/verify /api/config/reload /api/mcp \
        /api/mcp/servers/{id}/auth/revoke /api/migrate/scan /api/plugins/uninstall /api/shutdown /api/skills/pending/{id}/reject \
        /api/skills/uninstall /api/skills/{name}/evolve/delete /api/users/{id} /api/world/rehearsals \
        /auth/logout /mcp";
    let api = front(ApiSettings { rate_limit_per_second: 100_000, ..ApiSettings::default() });
    api.health.set_read_only(true);
    let mut taken = Vec::new();
    // Those for pages of sites look at the page first.
    let of_clients = api.table.routes().iter().filter(|route| route.auth != Auth::Page);
    for route in of_clients.filter(|route| !matches!(route.verb, Verb::Get | Verb::Delete)) {
        if !route.needs_room {
            taken.push(route.path);
            continue;
        }
        let path = route.path.replace(['{', '}', '*'], "");
        let reply = send(&api, Request::builder().method(route.verb.as_str()).uri(&path), "").await;
        assert_eq!(reply.status(), 503, "{path}");
        let has_wait = reply.headers().contains_key(RETRY_AFTER);
        assert_eq!((has_wait, &reply::collect(reply).await["code"]), (true, &json!("read_only")), "{path}");
    }
    taken.sort_unstable();
    assert_eq!(taken.join(" "), TAKEN);
    // A sign-in that is looked after stores its token; what frees room is never refused here.
    let reads = api.table.routes().iter().filter(|route| matches!(route.verb, Verb::Get | Verb::Delete));
    let reads: Vec<_> = reads.filter(|route| route.needs_room).map(|route| route.path).collect();
    let sign_ins =
        ["/api/providers/{name}/oauth/poll/{poll_id}", "/api/mcp/servers/{id}/auth/callback", "/api/auth/callback"];
    assert_eq!(reads, sign_ins);
}

#[tokio::test(start_paused = true)]
async fn a_stop_ends_the_wait_for_the_world() {
    let (api, _intake) = loading(ApiSettings::default());
    api.shutdown.trigger();
    let started = tokio::time::Instant::now();
    assert_eq!(get(&api, "/api/status").await.status(), 503);
    assert_eq!(started.elapsed(), Duration::ZERO);
}

#[tokio::test]
async fn a_key_guards_everything_but_health_and_the_page() {
    let api = front(ApiSettings { rate_limit_per_second: 100_000, ..keyed() });
    for path in ["/api/health", "/api/ready", "/"] {
        assert_eq!(get(&api, path).await.status(), 200, "{path}");
    }
    for route in DOMAINS.table().routes().iter().filter(|route| route.auth == Auth::Bearer) {
        let path = route.path.replace(['{', '}'], "");
        let response = send(&api, Request::builder().method(route.verb.as_str()).uri(&path), "").await;
        assert_eq!(response.status(), 401, "{path}");
        assert_eq!(response.headers()[WWW_AUTHENTICATE], "Bearer");
    }
    let request = Request::get("/api/version").header(AUTHORIZATION, "Bearer secret");
    assert_eq!(send(&api, request, "").await.status(), 200);
}

#[tokio::test]
async fn an_unknown_method_is_told_what_is_allowed() {
    let api = front(ApiSettings::default());
    let response = send(&api, Request::delete("/api/shutdown"), "").await;
    assert_eq!((response.status().as_u16(), response.headers()[ALLOW].to_str().unwrap()), (405, "POST, OPTIONS"));
    let options = send(&api, Request::options("/api/health"), "").await;
    assert_eq!(options.status(), 204);
    assert_eq!(options.headers()[ALLOW], "GET, HEAD, OPTIONS");
    assert_eq!(send(&api, Request::options("/nothing"), "").await.status(), 404);
}

#[tokio::test]
async fn head_answers_as_get_without_the_body() {
    let api = front(ApiSettings::default());
    let head = send(&api, Request::head("/api/versions"), "").await;
    assert_eq!(head.status(), 200);
    let length: usize = head.headers()[CONTENT_LENGTH].to_str().unwrap().parse().unwrap();
    assert_eq!(reply::text(head).await, "");
    assert_eq!(reply::text(get(&api, "/api/versions").await).await.len(), length);
}

#[tokio::test]
async fn an_open_api_refuses_foreign_pages_and_names() {
    let api = front(ApiSettings::default());
    let with = |name: hyper::header::HeaderName, value: &str| {
        let request = Request::get("/api/health").header(name, value);
        let api = api.clone();
        async move { send(&api, request, "").await }
    };
    let foreign = with(ORIGIN, "http://evil.org").await;
    assert_eq!(foreign.status(), 403);
    assert_sealed(&foreign);
    assert!(!foreign.headers().contains_key(ACCESS_CONTROL_ALLOW_ORIGIN));
    assert_eq!(with(HOST, "evil.org").await.status(), 403);
    let local = with(ORIGIN, "http://localhost:3000").await;
    assert_eq!(local.status(), 200);
    assert_eq!(local.headers()[ACCESS_CONTROL_ALLOW_ORIGIN], "http://localhost:3000");
    assert_eq!(with(HOST, "localhost:4545").await.status(), 200);
}

#[tokio::test]
async fn a_keyed_api_lets_listed_pages_read() {
    let api = front(ApiSettings { cors_origin: vec!["https://chat.example.org".to_owned()], ..keyed() });
    let preflight = |origin: &'static str| {
        let request = Request::options("/api/status")
            .header(ORIGIN, origin)
            .header(ACCESS_CONTROL_REQUEST_METHOD, "GET")
            .header(HOST, "agents.example.org");
        let api = api.clone();
        async move { send(&api, request, "").await }
    };
    let listed = preflight("https://chat.example.org").await;
    assert_eq!(listed.status(), 204);
    assert_eq!(listed.headers()[ACCESS_CONTROL_ALLOW_ORIGIN], "https://chat.example.org");
    assert!(listed.headers()[ACCESS_CONTROL_ALLOW_HEADERS].to_str().unwrap().contains("authorization"));
    assert_eq!(listed.headers()[ACCESS_CONTROL_ALLOW_METHODS], "GET, HEAD, OPTIONS");
    let foreign = preflight("http://localhost:3000").await;
    assert_eq!(foreign.status(), 204);
    assert!(!foreign.headers().contains_key(ACCESS_CONTROL_ALLOW_ORIGIN));
    assert!(!foreign.headers().contains_key(ACCESS_CONTROL_ALLOW_METHODS));
}

#[tokio::test]
async fn a_body_over_the_routes_bound_is_refused() {
    let api = front(ApiSettings::default());
    let body = vec![b'x'; agentsvc_components::kernel::limit::BODY_BYTES_MAX + 1];
    let response = send(&api, Request::post("/api/shutdown"), body).await;
    assert_eq!(response.status(), 413);
    assert!(!api.shutdown.is_triggered());
}

/// Room for so many bytes of large bodies.
fn roomy(bodies_bytes_max: usize) -> ApiSettings {
    ApiSettings { limits: Limits { bodies_bytes_max, ..Limits::default() }, ..ApiSettings::default() }
}

#[tokio::test]
async fn large_bodies_beyond_their_room_are_told_to_come_back_and_small_ones_are_taken() {
    let api = front(roomy(100_000));
    let large = || send(&api, Request::post("/api/goals"), vec![b' '; 90_000]);
    assert_eq!(large().await.status(), 400);
    assert_eq!(api.permits.bytes(), 0, "it was answered");
    let other = permit::Permit::of(&api.permits, 90_000).unwrap();
    let refused = large().await;
    assert_eq!(refused.status(), 503);
    assert_eq!(refused.headers()[RETRY_AFTER], "1");
    assert_sealed(&refused);
    assert_eq!(reply::collect(refused).await["code"], "bodies_full");
    assert_eq!(send(&api, Request::post("/api/goals"), vec![b' '; 9_000]).await.status(), 400);
    drop(other);
    assert_eq!(large().await.status(), 400);
    assert_eq!(api.permits.bytes(), 0);
}

#[tokio::test]
async fn who_leaves_makes_no_room_for_what_waits_for_the_world() {
    let (api, intake) = loading(roomy(100_000));
    intake.open();
    let body = json!({"title": "t", "description": "d".repeat(50_000)}).to_string();
    let asked = tokio::spawn({
        let api = Arc::clone(&api);
        async move { send(&api, Request::post("/api/goals"), body).await.status() }
    });
    while api.bridge.waiting() == 0 {
        tokio::task::yield_now().await;
    }
    asked.abort();
    assert!(asked.await.is_err());
    assert!(api.permits.bytes() > 50_000, "the command is still there");
    drop(intake);
    assert_eq!(api.permits.bytes(), 0);
}

#[tokio::test]
async fn a_panic_is_a_500_and_counted() {
    static PANICS: Route = Route::get("/panics", "Panics", |_| Box::pin(async { panic!("as asked") }));
    let api = front(ApiSettings::default());
    let parts = Request::new(()).into_parts().0;
    let body = http_body_util::Empty::<Bytes>::new();
    let error = run(
        &api,
        &PANICS,
        ParamSpans::default(),
        parts,
        body,
        (CLIENT, false, &Shutdown::new(), Principal::Anyone),
        &ResponseHeaders::new(),
    )
    .await
    .map(|_| ())
    .unwrap_err();
    assert_eq!(error.status(), 500);
    assert_eq!(api.health.panics(), 1);
}

#[tokio::test]
async fn unknown_keys_are_warned_about() {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Named {
        name: String,
    }
    async fn echo(call: Call) -> Result<Response, Error> {
        let body: Named = call.json()?;
        reply::ok(&json!({"id": call.id::<agentsvc_components::AgentId>("id")?.to_string(), "name": body.name}))
    }
    static ECHO: Route = Route::post("/echo/{id}", "Echoes", |call| Box::pin(echo(call))).body::<Named>();
    static CLOSED: Route = ECHO.closed();
    let api = front(ApiSettings::default());
    let path = "/echo/018f0000-0000-7000-8000-000000000001";
    let ask = |route: &'static Route, path: &'static str| {
        let parts = Request::post(path).body(()).unwrap().into_parts().0;
        let body = http_body_util::Full::new(Bytes::from_static(br#"{"name": "a", "colour": 1}"#));
        let spans = [(6, path.len() as u16), (0, 0), (0, 0), (0, 0)];
        let api = api.clone();
        let caller = Principal::Anyone;
        let (own, changed) = (ResponseHeaders::new(), Shutdown::new());
        async move { run(&api, route, spans, parts, body, (CLIENT, false, &changed, caller), &own).await }
    };
    let response = ask(&ECHO, path).await.unwrap();
    assert_eq!(response.headers()[WARNING], "299 agentsvc \"unknown field: colour\"");
    assert_eq!(reply::collect(response).await["id"], &path[6..]);
    assert_eq!(ask(&CLOSED, path).await.map(|_| ()).unwrap_err().status(), 422);
    let error = ask(&ECHO, "/echo/seven").await.map(|_| ()).unwrap_err();
    assert_eq!(reply::collect(error.into_response()).await["field"], "id");
}

#[tokio::test]
async fn system_routes_have_their_documented_shape() {
    let api = front(ApiSettings::default());
    let default = DefaultModel { model: "m".to_owned(), ..DefaultModel::default() };
    api.services.provide(Arc::new(default));
    let text = "name = \"one\"
";
    let parsed = agentsvc_systems::manifest::parse(text).unwrap();
    let spawn = agentsvc_systems::agent::SpawnAgent {
        name: parsed.name,
        hash: agentsvc_systems::manifest::hash(&parsed.manifest),
        manifest: parsed.manifest,
        text: text.to_owned(),
    };
    api.bridge.ask(spawn).await.unwrap();
    let status = reply::collect(get(&api, "/api/status").await).await;
    assert_eq!(status["status"], "running");
    assert_eq!(status["agent_count"], 1);
    assert_eq!(status["default_model"], "m");
    assert_eq!(status["agents"][0]["name"], "one");
    assert_eq!(status["agents"][0]["state"], "Running");
    let detail = reply::collect(get(&api, "/api/health/detail").await).await;
    assert_eq!((&detail["agent_count"], &detail["database"]), (&json!(1), &json!("connected")));
    let version = reply::collect(get(&api, "/api/version").await).await;
    for key in ["name", "version", "build_date", "git_sha", "rust_version", "platform", "arch"] {
        assert!(version[key].is_string(), "{key}");
    }
    let document = reply::collect(get(&api, "/api/openapi.json").await).await;
    assert!(document["paths"]["/api/status"]["get"].is_object());
    let metrics = reply::text(get(&api, "/api/metrics").await).await;
    assert!(metrics.contains("agentsvc_http_requests_total{method=\"GET\",route=\"/api/status\",status=\"2xx\"} 1"));
    let page = get(&api, "/").await;
    assert_eq!(page.headers()[CONTENT_TYPE], "text/html; charset=utf-8");
}

#[tokio::test]
async fn log_lines_are_streamed_until_the_daemon_stops() {
    let api = front(ApiSettings::default());
    let response = get(&api, "/api/logs/stream").await;
    assert_eq!(response.headers()[CONTENT_TYPE], "text/event-stream; charset=utf-8");
    api.state::<LogHub>().publish("{\"message\":\"hello\"}".into());
    let reads = tokio::spawn(reply::text(response));
    tokio::task::yield_now().await;
    let stop = reply::collect(send(&api, Request::post("/api/shutdown"), "").await).await;
    assert_eq!(stop["status"], "shutting_down");
    assert_eq!(reads.await.unwrap(), ": open\n\nevent: log\ndata: {\"message\":\"hello\"}\n\n");
}

#[tokio::test]
async fn a_page_of_another_origin_guesses_no_key_in_its_visitors_name() {
    // A short key: wrong ones make its address wait, whatever is sent then.
    let api = front(keyed());
    let socket = api.table.routes().iter().find(|route| route.auth == Auth::Socket).unwrap();
    let path = socket.path.replace("{id}", "00000000-0000-0000-0000-000000000001");
    let status = async |request: hyper::http::request::Builder| send(&api, request, "").await.status().as_u16();
    let with = |token: &str| Request::get(format!("{path}?token={token}"));
    let right = || Request::get("/api/status").header(AUTHORIZATION, "Bearer secret");
    for _ in 0..2 * limit::AUTH_FREE_TRIES {
        assert_eq!(status(with("wrong").header(ORIGIN, "https://page.example")).await, 403);
    }
    assert_eq!(status(with("secret").header(ORIGIN, "https://page.example")).await, 403, "nor does it learn one");
    assert_eq!(status(right()).await, 200);
    // What is no page's does wait, so that the key cannot be guessed.
    for _ in 0..limit::AUTH_FREE_TRIES {
        assert_eq!(status(with("wrong")).await, 401);
    }
    assert_eq!(status(right()).await, 429);
}
