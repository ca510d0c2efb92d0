//! The kinds of events, as the help of commands lists them.

/// The kinds by what they are about.
const GROUPS: [(&str, &[&str]); 7] = [
    ("Agents", &["agent_spawned", "agent_started", "agent_stopped", "agent_updated", "agent_terminated"]),
    ("Turns", &["message_received", "turn_started", "turn_completed", "turn_failed", "session_compacted"]),
    ("Tools", &["tool_called", "tool_refused", "tool_unknown", "approval_requested", "approval_resolved"]),
    ("Tasks", &["task_posted", "task_claimed", "task_completed", "task_failed"]),
    ("Automation", &["schedule_fired", "cron_fired", "workflow_started", "workflow_completed", "workflow_failed"]),
    ("Budgets", &["budget_warning", "budget_exceeded"]),
    ("Others", &["memory_updated", "knowledge_updated", "custom"]),
];

/// The kinds, a group in a line.
pub(crate) fn listed() -> String {
    let lines = GROUPS.map(|(group, kinds)| format!("\n  {group:10}  {}", kinds.join(", ")));
    format!("Event kinds:{}", lines.concat())
}

/// The kinds, and how the pattern of a trigger names them.
pub(crate) fn patterns() -> String {
    let groups = "\n  Several     all, lifecycle (agents), system (automation, approvals, budgets, memory)";
    let narrowed = [
        ("agent_spawned", "{\"agent_spawned\": {\"name_pattern\": \"web-*\"}}"),
        ("task_posted", "{\"task_posted\": {\"assignee_match\": \"self\"}}"),
        ("custom", "{\"custom\": {\"event_type\": \"deployed\"}}"),
        ("any text", "{\"content_match\": {\"substring\": \"error\"}}"),
    ];
    let narrowed = narrowed.map(|(kind, pattern)| format!("\n  {kind:13}  {pattern}"));
    format!("{}{groups}\n\nPatterns that narrow a kind:{}", listed(), narrowed.concat())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use agentsvc_components::event::EventKind;
    use agentsvc_systems::event::parse_pattern;

    use super::*;

    #[test]
    fn all_kinds_are_listed() {
        let listed: Vec<&str> = GROUPS.iter().flat_map(|(_, kinds)| *kinds).copied().collect();
        let all: BTreeSet<&str> = EventKind::ALL.iter().map(|kind| kind.as_str()).collect();
        assert_eq!((listed.len(), listed.into_iter().collect::<BTreeSet<_>>()), (all.len(), all));
    }

    #[test]
    fn the_patterns_of_the_help_are_patterns() {
        let shown = patterns();
        let json: Vec<&str> = shown.lines().filter_map(|line| Some(&line[line.find('{')?..])).collect();
        assert_eq!(json.len(), 4, "{shown}");
        for pattern in json {
            assert!(parse_pattern(&pattern.parse().unwrap()).is_ok(), "{pattern}");
        }
        for word in ["all", "lifecycle", "system"] {
            assert!(parse_pattern(&word.into()).is_ok(), "{word}");
        }
    }
}
