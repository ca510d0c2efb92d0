//! Schedules and cron jobs are one thing under two names (spec 1, Schedules, Cron jobs): their bodies differ in what the
//! rule is called and in whether a name must be given. What is the same of both is written here once.

/// The bodies whose rule is the key `$rule` and whose name is a `$name`, and the routes that take them; `$about` is said
/// of a new one. Expects `KIND` beside it.
macro_rules! schedule_family {
    ($(#[$about:meta])* rule: $rule:ident, name: $name:ty) => {
        #[derive(Deserialize, JsonSchema)]
        $(#[$about])*
        struct CreateBody {
            /// Agent that it starts.
            agent_id: Uuid,
            /// A cron expression of 5 or 6 fields, a macro such as `@daily`, or an interval: `every 15m`, `in 2h`, `at
            /// 2026-12-01T09:00Z`.
            $rule: String,
            /// Prompt for the agent.
            prompt: String,
            /// Whether it runs. Default: true.
            enabled: Option<bool>,
            /// Its name: one line.
            name: $name,
            /// IANA time zone of a cron expression. Default: UTC.
            timezone: Option<String>,
            /// What happens with runs that were missed. Default: `one`.
            missed_policy: Option<Missed>,
            /// What happens while the last run is open. Default: `queue`.
            overlap_policy: Option<Overlap>,
            /// Session of its turns. Default: as in the agent's manifest.
            session_mode: Option<Mode>,
        }

        async fn create(call: Call) -> Result<Response, Error> {
            let body: CreateBody = call.json()?;
            shape::check_rule(KIND, Some(&body.$rule))?;
            let new = NewSchedule {
                kind: KIND,
                agent: AgentId(body.agent_id),
                name: Option::<String>::from(body.name).map(Into::into),
                rule: body.$rule.into(),
                timezone: body.timezone.map(Into::into),
                prompt: body.prompt.into(),
                enabled: body.enabled.unwrap_or(true),
                missed: body.missed_policy.map(Into::into).unwrap_or_default(),
                overlap: body.overlap_policy.map(Into::into).unwrap_or_default(),
                session_mode: body.session_mode.map(Into::into),
            };
            let view = call.ask(CreateSchedule { new, by_tool: false }).await?;
            reply::created(&ScheduleShape::named(&view))
        }

        /// The rule to preview.
        #[derive(Default, Deserialize, JsonSchema)]
        #[serde(default)]
        struct PreviewQuery {
            /// The rule.
            $rule: Option<String>,
            /// IANA time zone of a cron expression. Default: UTC.
            timezone: Option<String>,
            /// Number of times, 1 to 100. Default: 5.
            count: Option<usize>,
        }

        async fn preview(call: Call) -> Result<Response, Error> {
            let PreviewQuery { $rule, timezone, count } = call.query()?;
            shape::preview(&call, KIND, $rule, timezone, count).await
        }

        async fn show(call: Call) -> Result<Response, Error> {
            let view = call.ask(GetSchedule { kind: KIND, id: call.id("id")? }).await?;
            reply::ok(&ScheduleShape::of(&view))
        }

        /// Fields to change; omitted or null fields are unchanged. All changes apply, or none.
        #[derive(Default, Deserialize, JsonSchema)]
        #[serde(default)]
        struct UpdateBody {
            /// Agent that it starts.
            agent_id: Option<Uuid>,
            /// A new rule counts from now.
            $rule: Option<String>,
            /// The message to the agent.
            prompt: Option<String>,
            /// Whether it runs.
            enabled: Option<bool>,
            /// Its name.
            name: Option<String>,
            /// A new zone counts from now.
            timezone: Option<String>,
            missed_policy: Option<Missed>,
            overlap_policy: Option<Overlap>,
            /// null restores the setting of the agent's manifest.
            #[serde(deserialize_with = "given")]
            session_mode: Option<Option<Mode>>,
        }

        async fn update(call: Call) -> Result<Response, Error> {
            let id: ScheduleId = call.id("id")?;
            let body: UpdateBody = call.json()?;
            shape::check_rule(KIND, body.$rule.as_deref())?;
            let patch = SchedulePatch {
                agent: body.agent_id.map(AgentId),
                name: body.name.map(Into::into),
                rule: body.$rule.map(Into::into),
                timezone: body.timezone.map(Into::into),
                prompt: body.prompt.map(Into::into),
                enabled: body.enabled,
                missed: body.missed_policy.map(Into::into),
                overlap: body.overlap_policy.map(Into::into),
                session_mode: body.session_mode.map(|mode| mode.map(Into::into)),
            };
            if patch != (SchedulePatch { enabled: Some(false), ..SchedulePatch::default() }) {
                call.check_may_run()?;
            }
            let view = call.ask(UpdateSchedule { kind: KIND, id, patch }).await?;
            reply::ok(&ScheduleShape::of(&view))
        }

        async fn run(call: Call) -> Result<Response, Error> {
            shape::run(&call, KIND).await
        }
    };
}

pub(crate) use schedule_family;
