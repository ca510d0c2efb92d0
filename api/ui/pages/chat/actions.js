// What a binding may do (`ACTIONS` of the daemon's `bindings.rs`).

/** The actions of a chat, by their names; `chat` is the page. */
export function actionsOf(chat) {
  return {
    search: () => chat.side.focusSearch(),
    focus_prompt: () => chat.composer.focus(),
    new_session: () => chat.newSession(),
    new_agent: () => chat.newAgent(),
    stop: () => {
      chat.side.close();
      return chat.stop();
    },
    open_list: () => chat.side.open(),
    close_list: () => chat.side.close(),
    scroll_end: () => chat.log.toEnd(),
    reload: () => chat.reload(),
  };
}
