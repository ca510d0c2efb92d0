//! What other programs watch the daemon by: metrics, the dashboard over them, and traces (issue 8, Observability).

use std::collections::{BTreeMap, BTreeSet};

use regex::Regex;
use serde_json::{Value, json};

use crate::support::daemon::Daemon;
use crate::support::routes::root;
use crate::support::until;

/// A family of samples as the text format tells it.
#[derive(Debug, Default)]
struct Family {
    help: String,
    kind: String,
    /// Name, labels without `le`, `le` and value of each sample.
    samples: Vec<(String, String, Option<String>, f64)>,
}

/// Reads the text format, and panics where it is wrong.
fn families(text: &str) -> BTreeMap<String, Family> {
    let sample = Regex::new(r#"^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$"#).unwrap();
    let label = Regex::new(r#"^([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(?:,|$)"#).unwrap();
    let mut families: BTreeMap<String, Family> = BTreeMap::new();
    let mut current = String::new();
    let mut series = BTreeSet::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').unwrap();
            current = name.to_owned();
            let known = families.insert(current.clone(), Family { help: help.to_owned(), ..Family::default() });
            assert!(known.is_none(), "{name} is told twice");
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert_eq!(name, current, "TYPE stands right behind HELP");
            families.get_mut(name).unwrap().kind = kind.to_owned();
        } else {
            let found = sample.captures(line).unwrap_or_else(|| panic!("no sample: {line}"));
            let (name, mut labels) = (found[1].to_owned(), found.get(2).map_or("", |labels| labels.as_str()));
            let value: f64 = found[3].parse().unwrap_or_else(|_| panic!("no number: {line}"));
            assert!(name.starts_with(&current), "{line} stands below {current}");
            assert!(series.insert((name.clone(), labels.to_owned())), "{line} is there twice");
            let (mut le, mut others) = (None, Vec::new());
            while !labels.is_empty() {
                let part = label.captures(labels).unwrap_or_else(|| panic!("no label: {labels} in {line}"));
                match &part[1] {
                    "le" => le = Some(part[2].to_owned()),
                    other => others.push(format!("{other}={:?}", &part[2])),
                }
                labels = &labels[part[0].len()..];
            }
            families.get_mut(&current).unwrap().samples.push((name, others.join(","), le, value));
        }
    }
    families
}

/// Words that name a unit which is not a base unit.
const NOT_BASE: [&str; 9] = ["ms", "us", "ns", "millis", "micros", "minutes", "hours", "kb", "mb"];

fn check(name: &str, family: &Family) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut say = |what: &str| wrong.push(format!("{name}: {what}"));
    if !name.starts_with("agentsvc_")
        || !name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
    {
        say("names are agentsvc_ and snake_case");
    }
    if !family.help.ends_with('.') {
        say("the help is a sentence");
    }
    if (family.kind == "counter") != name.ends_with("_total") {
        say("counters, and nothing else, end in _total");
    }
    if name.split('_').any(|word| NOT_BASE.contains(&word)) {
        say("units are base units");
    }
    if name.contains("seconds") && !matches!(name.rsplit('_').next(), Some("seconds" | "total")) {
        say("the unit stands last");
    }
    match family.kind.as_str() {
        "counter" | "gauge" => {
            if family.samples.iter().any(|(sample, ..)| sample != name) {
                say("its samples bear its name");
            }
            if family.kind == "counter" && family.samples.iter().any(|(.., value)| *value < 0.0) {
                say("counters are not negative");
            }
        }
        "histogram" => histogram(name, family, &mut say),
        other => say(&format!("{other} is no type of ours")),
    }
    wrong
}

/// Buckets are cumulative and end in `+Inf`, which is the count.
fn histogram(name: &str, family: &Family, say: &mut impl FnMut(&str)) {
    let of = |suffix: &str, labels: &str| {
        let found =
            family.samples.iter().find(|(sample, own, ..)| *sample == format!("{name}_{suffix}") && own == labels);
        found.map(|(.., value)| *value)
    };
    let series: BTreeSet<&String> = family.samples.iter().map(|(_, labels, ..)| labels).collect();
    for labels in series {
        let (Some(_), Some(count)) = (of("sum", labels), of("count", labels)) else {
            return say(&format!("{{{labels}}} has no sum or count"));
        };
        let buckets: Vec<(&str, f64)> = family
            .samples
            .iter()
            .filter(|(_, own, le, _)| own == labels && le.is_some())
            .map(|(.., le, value)| (le.as_deref().unwrap(), *value))
            .collect();
        if buckets.last().map(|(le, value)| (*le, *value)) != Some(("+Inf", count)) {
            say(&format!("{{{labels}}} does not end in +Inf with the count"));
        }
        let ends: Vec<f64> = buckets.iter().map(|(le, _)| le.replace("+Inf", "inf").parse().unwrap()).collect();
        if !ends.is_sorted() || !buckets.iter().map(|(_, value)| *value).is_sorted() {
            say(&format!("{{{labels}}}: buckets are not in order"));
        }
    }
}

/// A daemon in which something of everything has happened.
fn busy() -> Daemon {
    let daemon = Daemon::start();
    let agent = daemon.agent("a");
    daemon.say(&agent, "hello");
    daemon.get("/api/nothing").expect(404);
    until("the beat has counted the turn", || {
        let text = daemon.get("/api/metrics").text();
        text.contains("agentsvc_turns_total{end=\"completed\"} 1").then_some(())
    });
    daemon
}

#[test]
fn metrics_follow_the_conventions_of_prometheus() {
    let families = families(&busy().get("/api/metrics").text());
    let wrong: Vec<String> = families.iter().flat_map(|(name, family)| check(name, family)).collect();
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    assert!(families.len() > 70, "{}", families.len());
    let systems = &families["agentsvc_system_seconds"];
    assert!(systems.samples.iter().any(|(_, labels, ..)| labels == "system=\"settle\",stage=\"intake\""));
    let value = |name: &str| families[name].samples.first().map(|(.., value)| *value).unwrap();
    let (resident, anonymous) = (value("agentsvc_memory_resident_bytes"), value("agentsvc_memory_anonymous_bytes"));
    assert!(resident > anonymous && anonymous > 0.0, "{resident} {anonymous}");
    assert!(value("agentsvc_memory_memtable_bytes") > 0.0 && value("agentsvc_memory_cache_bytes") >= 0.0);
}

#[test]
fn the_reader_of_metrics_sees_mistakes() {
    let wrong = |text: &str| {
        let families = families(text);
        families.iter().flat_map(|(name, family)| check(name, family)).count()
    };
    assert_eq!(wrong("# HELP agentsvc_a_total A.\n# TYPE agentsvc_a_total counter\nagentsvc_a_total 1\n"), 0);
    assert_eq!(wrong("# HELP agentsvc_a A.\n# TYPE agentsvc_a counter\nagentsvc_a 1\n"), 1);
    assert_eq!(wrong("# HELP agentsvc_a_ms A.\n# TYPE agentsvc_a_ms gauge\nagentsvc_a_ms 1\n"), 1);
    let half = "# HELP agentsvc_a A.\n# TYPE agentsvc_a histogram\nagentsvc_a_bucket{le=\"1\"} 2\nagentsvc_a_sum \
        1\nagentsvc_a_count 3\n";
    assert_eq!(wrong(half), 1);
}

/// The labels that a query of the dashboard sums by, and those that stand in the names of its lines.
fn labels_of(target: &Value) -> BTreeSet<String> {
    let (by, named) = (Regex::new(r"by \(([a-z_, ]+)\)").unwrap(), Regex::new(r"\{\{([a-z_]+)\}\}").unwrap());
    let (expr, legend) = (target["expr"].as_str().unwrap(), target["legendFormat"].as_str().unwrap_or_default());
    let sums = by.captures_iter(expr).flat_map(|of| of[1].split(", ").map(str::to_owned).collect::<Vec<_>>());
    let labels: BTreeSet<String> = sums.filter(|label| label != "le").collect();
    let lines: BTreeSet<String> = named.captures_iter(legend).map(|of| of[1].to_owned()).collect();
    assert!(!expr.contains("by (") || labels == lines, "{expr}: its lines are named {legend}");
    labels.union(&lines).cloned().collect()
}

/// How the metrics begin that only nodes of a cluster have.
const OF_NODES: [&str; 2] = ["agentsvc_cluster_", "agentsvc_http_forwarded_total"];

#[test]
fn the_dashboard_names_metrics_that_exist_and_all_of_them() {
    let families = families(&busy().get("/api/metrics").text());
    let text = std::fs::read_to_string(root().join("docs/grafana.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&text).unwrap();
    let name = Regex::new("agentsvc_[a-z0-9_]+").unwrap();
    let mut shown = BTreeSet::new();
    let (mut ids, mut panels) = (BTreeSet::new(), 0);
    for panel in dashboard["panels"].as_array().unwrap() {
        assert!(ids.insert(panel["id"].as_u64().unwrap()), "{} has the id of another", panel["title"]);
        for target in panel["targets"].as_array().into_iter().flatten() {
            panels += 1;
            let expr = target["expr"].as_str().unwrap();
            for found in name.find_iter(expr) {
                let found = found.as_str();
                if OF_NODES.iter().any(|own| found.starts_with(own)) {
                    continue;
                }
                let plain = |suffix: &str| found.strip_suffix(suffix).filter(|family| families.contains_key(*family));
                let family = plain("_bucket").or_else(|| plain("_sum")).or_else(|| plain("_count")).unwrap_or(found);
                assert!(families.contains_key(family), "{}: there is no {found}", panel["title"]);
                shown.insert(family.to_owned());
                for label in labels_of(target) {
                    let bears = |of: &String| of.split(',').any(|own| own.starts_with(&format!("{label}=")));
                    let samples = &families[family].samples;
                    let all = samples.iter().all(|(_, of, ..)| bears(of));
                    assert!(all, "{}: {family} has no label {label}", panel["title"]);
                }
            }
        }
    }
    let missing: Vec<&String> = families.keys().filter(|family| !shown.contains(*family)).collect();
    assert!(missing.is_empty(), "no panel shows {missing:?}");
    assert!(panels > 20);
}

#[test]
fn a_trace_goes_through_the_daemon() {
    let daemon = Daemon::with("[default_model]\nprovider = \"builtin\"\nmodel = \"builtin\"\n");
    let agent = daemon.agent("a");
    let trace_id = "4bf92f3577b34da6a3ce929d0e0e4736";
    let parent = format!("00-{trace_id}-00f067aa0ba902b7-01");
    let body = json!({ "message": "hello" }).to_string();
    let headers = [("traceparent", parent.as_str()), ("content-type", "application/json")];
    let path = format!("/api/agents/{agent}/message");
    let reply = daemon.send("POST", &path, &headers, Some(body.as_bytes()));
    reply.expect(200);
    assert_eq!(reply.header("x-request-id"), Some("4bf92f35-77b3-4da6-a3ce-929d0e0e4736"));
    let answered = reply.header("traceparent").unwrap();
    assert!(answered.starts_with(&format!("00-{trace_id}-")) && answered != parent, "{answered}");
    // Its own request id stays, and a wrong trace is none.
    let own = ("x-request-id", "0190f6f0-0000-7000-8000-000000000001");
    let reply = daemon.send("GET", "/api/world", &[own, ("traceparent", &parent)], None);
    assert_eq!(reply.header("x-request-id"), Some(own.1));
    assert!(reply.header("traceparent").is_some());
    let reply = daemon.send("GET", "/api/world", &[("traceparent", "00-nonsense")], None);
    assert!(reply.status == 200 && reply.header("traceparent").is_none());
    // What is logged on the way bears it: here the stop that a client asks for.
    let stop = "00-00000000000000000000000000abc123-00f067aa0ba902b7-01";
    daemon.send("POST", "/api/shutdown", &[("traceparent", stop)], None).expect(200);
    let logged = until("the stop is in the log", || {
        let lines = daemon.stderr();
        lines.lines().find(|line| line.contains("a client requested a shutdown")).map(str::to_owned)
    });
    assert!(logged.contains("00000000000000000000000000abc123"), "{logged}");
}
