//! What can happen to a world, and how often. An action carries its own random numbers, so that leaving one out changes the others
//! as little as possible.

use super::rng::Rng;

/// One thing that happens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Action {
    /// Which.
    pub(crate) what: What,
    /// What it chooses by.
    pub(crate) rng: Rng,
}

macro_rules! actions {
    ($($(#[$doc:meta])* $name:ident $weight:literal,)*) => {
        /// The kinds of actions.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum What {
            $($(#[$doc])* $name,)*
        }

        /// How often each happens, beside the others.
        const WEIGHTS: &[(What, usize)] = &[$((What::$name, $weight),)*];
    };
}

actions! {
    /// The outside answers something that is out: a model, a tool, a sweep.
    Answer 150,
    /// An outcome that came before comes again.
    Repeat 4,
    /// What is out will not come back before the next start.
    Lose 4,
    /// The disk takes what waits.
    Sync 20,
    /// The beat.
    Beat 25,
    /// Time passes.
    Wait 20,
    /// The clock is set.
    ClockJump 3,
    /// The process dies; of what the disk had not synced yet, some may be there.
    Kill 6,
    /// The disk is full, its sync fails, or a write is torn: the process ends.
    DiskFault 2,
    /// An agent is created.
    Spawn 10,
    /// Several at once.
    SpawnMany 1,
    /// One is cloned.
    Clone 2,
    /// One is changed.
    Update 4,
    /// One is removed.
    Remove 2,
    /// One is stopped.
    StopAgent 3,
    /// One is started.
    StartAgent 4,
    /// Its mode is set.
    SetMode 1,
    /// A message, and the client waits for the answer.
    Send 30,
    /// A message, and the client watches.
    Post 20,
    /// A message in the name of an agent, for another one.
    SendBetween 6,
    /// A message of another node.
    SendPeer 4,
    /// A whole conversation.
    Converse 5,
    /// Its client goes away.
    StopConversation 1,
    /// Running turns are stopped.
    StopTurns 3,
    /// One is interrupted.
    Interrupt 3,
    /// A session is created.
    NewSession 5,
    /// A session is named.
    Label 2,
    /// Another one becomes current.
    Switch 2,
    /// One is removed.
    RemoveSession 2,
    /// The current one begins anew.
    Reset 1,
    /// All history goes.
    ClearHistory 1,
    /// Unused ones go.
    Cleanup 1,
    /// One is compacted.
    Compact 3,
    /// One comes from elsewhere.
    Import 2,
    /// A trigger is made.
    NewTrigger 6,
    /// One is changed.
    UpdateTrigger 2,
    /// One is deleted.
    DeleteTrigger 1,
    /// A custom event.
    Publish 6,
    /// A schedule or cron job is made.
    NewSchedule 6,
    /// One is changed.
    UpdateSchedule 2,
    /// One is removed.
    RemoveSchedule 1,
    /// One is run now.
    RunSchedule 2,
    /// A goal is made.
    NewGoal 4,
    /// One is changed.
    UpdateGoal 4,
    /// One is removed.
    RemoveGoal 1,
    /// A task is posted.
    PostTask 5,
    /// One is claimed.
    ClaimTask 4,
    /// One is ended.
    EndTask 3,
    /// One is tried again.
    RetryTask 5,
    /// One is deleted.
    RemoveTask 1,
    /// A workflow is made.
    NewWorkflow 3,
    /// One is changed.
    UpdateWorkflow 1,
    /// One is deleted.
    RemoveWorkflow 1,
    /// A run is begun, and the client waits.
    RunWorkflow 4,
    /// A run is begun.
    StartRun 3,
    /// One is cancelled.
    CancelRun 1,
    /// A budget is set.
    SetBudget 3,
    /// A person decides.
    Decide 12,
    /// A client asks for an approval.
    RequestApproval 2,
    /// A client calls a tool.
    InvokeTool 3,
    /// Something asks a person, with a form or without.
    AskPerson 2,
    /// What waits for a person goes away.
    WithdrawInvocation 1,
    /// A tool asks the model of its agent.
    Sample 3,
    /// A webhook is made.
    NewWebhook 2,
    /// One is changed, or switched on or off.
    UpdateWebhook 2,
    /// One is removed.
    RemoveWebhook 1,
    /// A hook is called, or a file of the inbox comes.
    CallHook 4,
    /// A call comes again under its key.
    RepeatHook 1,
    /// A file of the inbox is gone.
    ReleaseHook 1,
    /// It is said where answers go.
    SetTargets 3,
    /// A user is added.
    NewUser 2,
    /// One is changed.
    UpdateUser 1,
    /// One is removed, with their keys.
    RemoveUser 1,
    /// The configuration names others.
    ConfigureUsers 1,
    /// A key of the API is made.
    NewKey 2,
    /// One is revoked.
    RevokeKey 1,
    /// A device is paired.
    PairDevice 1,
    /// One is removed, with its key.
    RemoveDevice 1,
    /// A hand is activated.
    ActivateHand 2,
    /// One is paused.
    PauseHand 2,
    /// One is resumed.
    ResumeHand 2,
    /// Its settings are changed.
    SetHand 1,
    /// One is ended.
    EndHand 1,
    /// An MCP server has listed its tools.
    NoteMcpTools 2,
    /// The operator accepts those of one.
    AcceptMcpTools 1,
    /// A server is gone.
    ForgetMcpTools 1,
    /// A task comes over A2A.
    SendA2aTask 4,
    /// One is cancelled.
    CancelA2aTask 1,
    /// Its client wants to be told of its end.
    SetA2aPush 1,
    /// The files of a workspace are declared trusted.
    TrustFiles 2,
    /// An external agent is discovered, or discovered again.
    DiscoverA2aAgent 2,
    /// One is removed.
    RemoveA2aAgent 1,
    /// A message is sent to one.
    SendToA2aAgent 5,
    /// A provider is asked for media.
    NewMedia 3,
    /// The channels of the configuration are set.
    SetChannels 2,
    /// A message of a chat comes.
    ReceiveChat 6,
    /// One comes again.
    RepeatChat 2,
    /// Commands of chats are carried out.
    CompleteChat 2,
    /// A code is made, or a pairing ended.
    PairChat 1,
    /// A message is sent to a chat.
    SendToChat 2,
    /// A chat chooses its agent, or begins anew.
    ChooseChat 1,
    /// A visitor of a site writes, or sends a message again.
    PostWeb 3,
    /// Memory is written.
    PutMemory 4,
    /// Memory is deleted.
    DeleteMemory 2,
    /// Knowledge is written.
    PutKnowledge 3,
    /// Knowledge is deleted.
    DeleteKnowledge 1,
    /// A memory entry is added or changed.
    PutEntry 4,
    /// One is removed.
    RemoveEntry 1,
    /// The dreaming of an agent is switched on or off.
    SetDream 3,
    /// An agent is to consolidate its memory now.
    TriggerDream 3,
    /// It is to stop.
    AbortDream 1,
    /// A version of a system prompt is saved.
    SavePrompt 3,
    /// One becomes that of its agent, or is deleted.
    ActivatePrompt 1,
    /// Prompts are compared.
    NewExperiment 2,
    /// That is paused, goes on, or ends.
    ChangeExperiment 2,
    /// Somebody says what an answer was worth.
    RatePrompt 2,
    /// The configuration is changed.
    Reconfigure 3,
    /// An action outside the world goes on record.
    Note 1,
    /// The oldest entries of the trail go.
    TrimAudit 1,
    /// Lists are read.
    Read 6,
}

/// The actions of a seed.
pub(crate) fn draw(seed: u64, count: usize) -> Vec<Action> {
    let mut rng = Rng(seed.wrapping_mul(0x2545_f491_4f6c_dd1d));
    let all: usize = WEIGHTS.iter().map(|(_, weight)| weight).sum();
    let first = [What::Spawn, What::Spawn, What::NewTrigger, What::NewSchedule, What::Send];
    let first = first.into_iter().map(|what| (what, 0));
    let rest = std::iter::repeat_n((What::Beat, 1), count);
    let mut one = |(what, is_drawn): (What, usize)| {
        let mut at = rng.below(all);
        let drawn = WEIGHTS.iter().find(|(_, weight)| {
            let is_here = at < *weight;
            at = at.saturating_sub(*weight);
            is_here
        });
        let what = drawn.filter(|_| is_drawn > 0).map_or(what, |(what, _)| *what);
        Action { what, rng: Rng(rng.roll()) }
    };
    first.chain(rest).map(&mut one).collect()
}
