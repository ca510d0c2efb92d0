//! The web page, driven in Chromium with Playwright against the real daemon: see `tests/ui/stage.py`.
//!
//! Every function `case_<name>` of a file of `tests/ui` is a test here. Screenshots go to `target/ui-screenshots`.
//! `AGENTSVC_CLIENTS=skip` skips them all.

mod support;

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use support::clients::{has_node, installed, python, skipped};
use support::routes::root;

/// Runs one case of `tests/ui/<file>.py`.
#[track_caller]
fn drive(file: &str, case: &str) {
    // The identity provider is a program of npm.
    if skipped() || (file == "sign_in" && !has_node("single sign-on in the browser")) {
        return;
    }
    let mut command = Command::new(python("playwright"));
    command.arg(root().join(format!("tests/ui/{file}.py"))).arg(case);
    command.env("AGENTSVC_BIN", env!("CARGO_BIN_EXE_agentsvc")).env_remove("AGENTSVC_UI_FROM_DISK");
    command.env("AGENTSVC_SCREENSHOTS", root().join("target/ui-screenshots"));
    command.env("AGENTSVC_NPM_OIDC", installed().join("npm-oidc"));
    command.env("PYTHONDONTWRITEBYTECODE", "1").env("NO_PROXY", "*").env_remove("ALL_PROXY").env_remove("all_proxy");
    let output = command.output().expect("Python starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && output.stdout.ends_with(b"passed\n"), "{file} {case}: {said}");
}

/// One test for each case: the file of `tests/ui`, and its cases.
macro_rules! cases {
    ($($file:ident { $($case:ident),* $(,)? })*) => {
        $(mod $file {
            $(#[test]
            fn $case() {
                super::drive(stringify!($file), stringify!($case));
            })*
        })*

        const CASES: &[(&str, &str)] = &[$($((stringify!($file), stringify!($case))),*),*];
    };
}

cases! {
    agent {
        overview,
        settings_as_a_form,
        settings_are_chosen_from_what_there_is,
        rights_are_said_before_an_agent_is_created,
        an_agent_has_its_own_schedules_triggers_and_files,
        settings_as_toml,
        a_chat_beside_the_settings,
        traces,
        runs_have_the_name_of_their_message,
        an_open_run_says_what_it_waits_for,
        waiting_is_a_step_of_a_trace,
        pictures,
    }
    automation {
        deliveries,
        times,
        rows_in_use,
        examples_fill_the_form,
        triggers,
        workflows,
        runs_of_workflows_have_addresses,
        forms_name_all_that_is_missing,
        goals,
        tasks,
        pictures,
    }
    channels { set_up, package, state, pairing, adapter, qr_code, qr_modules }
    traces {
        the_prompt_is_shown_as_it_was_sent,
        a_failed_step_is_named_with_its_error,
        tries_and_failed_tools_stand_out,
        a_run_is_edited_and_compared,
        pictures,
    }
    trouble {
        the_chat_says_what_an_answer_waits_for,
        an_answer_behind_others_says_so,
        providers_show_their_trouble,
        a_missing_key_is_said_everywhere,
    }
    web_chat { foreign_page, rude_site, other_origin, streams, page }
    cluster {
        nodes,
        single,
    }
    connections {
        servers,
        servers_over_http,
        servers_that_fail,
        catalog,
        sign_in,
        sign_in_at_a_server,
        changed_tools,
        tools_of_a_server_change,
        pictures,
    }
    create { an_agent_is_created_with_a_form, values_are_written_as_toml }
    details {
        a_query_follows_its_address,
        charts_keep_what_they_showed,
        rules_are_said_in_words,
        few_requests_are_made,
        security_says_what_it_is,
        titles_come_before_buttons_on_a_phone,
        an_unknown_address_says_so,
        tables_are_compact_when_asked,
        a_phone_has_all_pages_in_its_menu,
    }
    documentation { pictures }
    faults {
        the_daemon_is_killed_in_the_middle_of_an_answer,
        pages_that_follow_come_back_after_a_restart,
        a_key_that_was_changed_is_asked_for,
        a_restore_is_waited_for,
        a_session_that_goes_with_a_restore_is_left,
        a_toast_over_a_dialog_is_dismissed,
        old_numbers_are_called_old,
        a_page_that_was_left_changes_no_address,
    }
    flood { flood }
    home { overview, activity, the_overview_is_live, pictures }
    inbox {
        everything_that_needs_a_person,
        approvals_say_what_they_would_do,
        notifications_are_turned_on_and_off_in_the_settings,
        the_desktop_is_notified_when_asked,
        pictures,
    }
    kept { changed_settings_are_asked_for, a_changed_workflow_is_asked_for, the_chat_is_opened_where_it_was_left }
    keyboard { a_walk, a_list_that_grows }
    library { skills, hands, extensions, plugins, find, pictures }
    prompts { versions_and_experiments, disabled }
    looks { automation, chat, empty, money, settings, world }
    media {
        images_and_recordings_of_tools_are_shown,
        a_result_that_only_looks_like_media_shows_nothing,
        a_message_is_dictated,
        an_answer_is_read_aloud,
        without_providers_the_chat_has_no_voice,
        the_gallery_shows_media_with_their_cost,
        the_gallery_follows_what_is_open_and_grows,
        gallery_pictures,
    }
    memory { entries, many_entries, graph, upkeep, faults, pictures }
    money { spending, approvals, the_form_of_a_server, second_factor, audit, audit_sentences, audit_names, security, pictures }
    network {
        external_agents,
        external_agents_off,
        external_agents_over_a2a,
        peers,
        no_peers,
        graph,
        graph_of_many_agents,
        pictures,
    }
    people { keys, devices, roles, budgets, password }
    rights { narrowed }
    sign_in { rights, states_and_codes, keys_and_tokens, the_end_of_a_session, logout }
    product {
        a_model_is_offered_until_one_is_set_up,
        a_key_is_tested_a_model_chosen_and_a_tool_runs,
        a_key_is_saved_without_a_test_where_nobody_answers,
        the_sample_runs_at_once,
        a_local_runtime_is_found_or_its_absence_explained,
        the_palette_finds_agents_messages_pages_and_actions,
        a_source_that_fails_does_not_empty_the_palette,
        the_palette_finds_what_is_automated_and_makes_new,
        pending_approvals_are_marked_on_every_page,
        a_daemon_that_hangs_is_noticed,
        events_are_sentences_and_names_stay_those_of_agents,
        a_type_is_found_by_its_name_and_a_copy_has_a_name_of_its_own,
    }
    terminal { off, shell }
    settings {
        providers,
        a_test_leaves_the_other_providers_alone,
        sign_in,
        detection,
        models,
        config,
        typing_while_another_line_is_saved,
        backups,
        health,
        pictures,
    }
    world { live, past, events, logs, query, snapshots, rehearsals, pictures }
    chat {
        an_agent_is_created_from_a_type_and_from_a_manifest,
        an_answer_is_streamed_and_stored,
        markdown_is_shown_and_markup_is_not_obeyed,
        a_running_answer_is_stopped_and_asked_again,
        a_failed_turn_says_why_and_is_tried_again,
        tool_calls_are_folded_with_input_result_and_time,
        memories_of_an_answer_are_listed_below_it,
        files_are_attached_by_picking_pasting_and_dropping,
        commands_are_completed_and_carried_out,
        what_begins_with_a_slash_is_a_command_a_skill_or_said_to_be_neither,
        a_reload_in_the_middle_shows_the_answer_so_far,
        sessions_have_titles_and_can_be_renamed_in_the_list,
        a_message_is_edited_and_the_answer_is_a_branch,
        an_answer_is_asked_for_again_in_its_place,
        the_model_is_chosen_in_the_chat,
        sessions_are_named_searched_and_exported,
        the_key_is_asked_for_and_kept_in_the_tab_only,
        everything_can_be_done_with_the_keyboard,
        a_phone_has_the_lists_in_a_drawer,
        a_phone_has_room_to_stop_an_answer,
        ten_thousand_agents_are_no_burden,
        what_no_person_wrote_is_a_folded_card,
        ways_on_are_offered_after_an_answer,
        a_conversation_is_shared_as_markdown,
        marks_follow_while_the_list_is_held,
        a_call_that_waits_for_a_person_is_decided_in_the_chat,
        pictures_of_the_agents_own_files_are_shown,
        pictures_lead_to_files_only,
        pictures_of_an_answer_are_bounded_and_asked_for_once,
        texts_of_any_form_and_length_are_shown,
        the_daemon_goes_and_comes_back,
        it_looks_as_it_should,
    }
}

#[test]
fn every_case_of_the_folder_is_run() {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(root().join("tests/ui")).expect("the folder is there").flatten() {
        let path = entry.path();
        let Some(file) = path.file_name().and_then(|name| name.to_str()?.strip_suffix(".py")) else { continue };
        let text = fs::read_to_string(&path).expect("a source file is text");
        let cases = text.lines().filter_map(|line| line.strip_prefix("def case_")?.split('(').next());
        found.extend(cases.map(|case| (file.to_owned(), case.to_owned())));
    }
    let run: BTreeSet<_> = CASES.iter().map(|(file, case)| ((*file).to_owned(), (*case).to_owned())).collect();
    assert_eq!(run, found);
}
