//! What takes the daemon a minute or more to lose its patience with: all of it at once, so that the minute is one.

use super::{http2, pipelines, slow, unfinished, unread};

#[test]
fn clients_that_take_their_time_are_given_up_and_others_are_served() {
    let scenes: [(&str, fn()); 8] = [
        ("slow heads and bodies", slow::slow_heads_and_slow_bodies_are_given_up_and_others_are_served),
        ("unfinished messages", unfinished::messages_without_an_end_count_and_are_given_up),
        ("unread events", unread::streams_that_nobody_reads_lose_events_and_are_cut_off),
        ("unread pieces", unread::web_sockets_that_nobody_reads_lose_pieces_and_are_cut_off),
        ("unread answers", unread::an_answer_that_nobody_reads_is_cut_off),
        ("unread pipelines", pipelines::clients_that_ask_without_end_and_read_nothing_are_cut_off),
        ("streams without a window", http2::streams_without_a_window_are_given_up),
        ("heads and pings without end", http2::a_head_without_end_and_pings_without_end_have_one),
    ];
    std::thread::scope(|scope| {
        let threads: Vec<_> = scenes.map(|(name, scene)| (name, scope.spawn(scene))).into_iter().collect();
        let failed: Vec<_> =
            threads.into_iter().filter_map(|(name, thread)| thread.join().err().map(|_| name)).collect();
        assert!(failed.is_empty(), "{failed:?}");
    });
}
