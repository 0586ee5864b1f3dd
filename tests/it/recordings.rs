//! Recorded streams of real agents, read with their presets: the assistant's text, the sigils, the usage and the
//! verdict have to be right for each.

use std::fs;
use std::path::{Path, PathBuf};

use ralph::reply::show::Show;
use ralph::reply::usage::Class;
use ralph::reply::verdict::{AgentEnd, Kind};

use crate::play::{Played, play};

const DONE: &str = "All tasks are finished and the tests pass.\n\n<promise>COMPLETE</promise>";
const STALE: &str = "The plan does not match the code any more.\n\n<promise>REPLAN</promise>";
const MORE: &str = "I finished one task. There is more to do in the next iteration.";
const RUN: &str = "I will run a command.";
const RUN_DONE: &str =
    "I will run a command.All tasks are finished and the tests pass.\n\n<promise>COMPLETE</promise>";
const RUN_MORE: &str = "I will run a command.I finished one task. There is more to do in the next iteration.";
const MULTI: &str = "First block of text.\nSecond block: <promise>COMPLETE</promise> and a tail.";
const MIDTEXT: &str = "I should answer <promise>COMPLETE</promise> only when all is done; it is not.\
                       I finished one task. There is more to do.";
const OPUS: &str = "claude-opus-5-5";

/// Where recording `agent/case` lies, with this extension.
fn path(agent: &str, case: &str, extension: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/recordings/{agent}/{case}.{extension}"))
}

fn play_recording(agent: &str, case: &str, step: usize) -> Played {
    let stdout = fs::read(path(agent, case, "ndjson")).unwrap();
    let stderr = fs::read_to_string(path(agent, case, "stderr")).unwrap_or_default();
    let exit: serde_json::Value =
        serde_json::from_slice(&fs::read(path(agent, case, "exit.json")).unwrap()).unwrap();
    let code = exit["exit"].as_i64().unwrap().try_into().unwrap();
    play(agent, &stdout, &stderr, AgentEnd::Exited(code), step)
}

/// When the local clock next shows this time; it may have done so within the last hour.
fn next(hour: u32, minute: u32) -> i64 {
    let now = chrono::Local::now();
    let time = chrono::NaiveTime::from_hms_opt(hour, minute, 0).unwrap();
    let today = now.with_time(time).unwrap();
    let next =
        if today + chrono::TimeDelta::hours(1) > now { today } else { today + chrono::TimeDelta::days(1) };
    next.timestamp()
}

/// A recording and its expected results.
struct Case {
    agent: &'static str,
    name: &'static str,
    text: &'static str,
    failure: Option<(Kind, Class, &'static str)>,
    reset_at: Option<i64>,
    cost: Option<f64>,
    tokens: Option<(u64, u64)>,
    model: Option<&'static str>,
    session: Option<&'static str>,
}

const fn case(agent: &'static str, name: &'static str, text: &'static str) -> Case {
    Case {
        agent,
        name,
        text,
        failure: None,
        reset_at: None,
        cost: None,
        tokens: None,
        model: None,
        session: None,
    }
}

impl Case {
    fn fails(mut self, kind: Kind, class: Class, message: &'static str) -> Self {
        self.failure = Some((kind, class, message));
        self
    }

    fn resets(mut self, at: i64) -> Self {
        self.reset_at = Some(at);
        self
    }

    fn cost(mut self, dollars: f64) -> Self {
        self.cost = Some(dollars);
        self
    }

    fn tokens(mut self, input: u64, output: u64) -> Self {
        self.tokens = Some((input, output));
        self
    }

    fn by(mut self, model: &'static str, session: &'static str) -> Self {
        self.model = (!model.is_empty()).then_some(model);
        self.session = Some(session);
        self
    }

    fn check(&self) {
        let name = format!("{}/{}", self.agent, self.name);
        for step in [usize::MAX, 7] {
            let played = play_recording(self.agent, self.name, step);
            let usage = &played.reply.usage;
            assert_eq!(played.text, self.text, "{name}: text");
            let sigils = played.reply.speech.sigils();
            // Where the marker stands, it has a line for itself or is talked about.
            let ends_in = |marker| self.text.ends_with(&format!("\n{marker}"));
            assert_eq!(sigils.complete(), ends_in("<promise>COMPLETE</promise>"), "{name}: complete");
            assert_eq!(sigils.replan(), ends_in("<promise>REPLAN</promise>"), "{name}: replan");
            let mentions = [MULTI, MIDTEXT].contains(&self.text);
            assert_eq!(sigils.mentions().count(), usize::from(mentions), "{name}: mentions");
            let failure = played.verdict.as_ref().err().map(|f| (f.kind, f.class, f.message.as_str()));
            assert_eq!(failure, self.failure, "{name}: verdict");
            assert_eq!(played.verdict.err().and_then(|f| f.reset_at), self.reset_at, "{name}: reset");
            assert_eq!(usage.cost_usd, self.cost, "{name}: cost");
            assert_eq!(usage.input_tokens.zip(usage.output_tokens), self.tokens, "{name}: tokens");
            assert_eq!(usage.model.as_deref(), self.model, "{name}: model");
            assert_eq!(usage.session_id.as_deref(), self.session, "{name}: session");
            assert_eq!((played.counters.malformed, played.counters.oversized), (0, 0), "{name}: counters");
        }
    }
}

fn check(cases: &[Case]) {
    cases.iter().for_each(Case::check);
    let mut names: Vec<_> = cases.iter().map(|case| format!("{}.ndjson", case.name)).collect();
    names.sort();
    let any = path(cases[0].agent, cases[0].name, "ndjson");
    let mut files: Vec<_> = fs::read_dir(any.parent().unwrap())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".ndjson"))
        .collect();
    files.sort();
    assert_eq!(names, files, "every recording is tested");
}

#[test]
fn claude() {
    use Class::{Auth, Limit, Other, Overload, Permission};
    let all = |case: Case| case.cost(0.00167).tokens(1150, 42);
    let twice = |case: Case| case.cost(0.00334).tokens(2300, 84);
    let none = |case: Case| case.cost(0.0).tokens(0, 0);
    let claude = |name, text| case("claude", name, text);
    check(&[
        claude("background_bash", "I start the tests.The tests run in the background. I wait for them.All done.\n\n<promise>COMPLETE</promise>")
            .cost(0.005_010_000_000_000_000_6)
            .tokens(3450, 126)
            .by(OPUS, "ef037f8f-db02-413b-b317-63727a9e8e55"),
        claude("schedule_wakeup", "I come back later.I wait.All done.\n\n<promise>COMPLETE</promise>")
            .cost(0.005_010_000_000_000_000_6)
            .tokens(3450, 126)
            .by(OPUS, "ed3ab7f2-4555-426f-a94e-310bf69cf890"),
        all(claude("complete", DONE)).by(OPUS, "2f3a5860-ebfd-4529-81f7-fd4fc0c29704"),
        all(claude("complete+partial", DONE)).by(OPUS, "c6104edc-e4b9-43b0-9a0f-daba50e33d9e"),
        none(claude("e401", ""))
            .fails(Kind::Exit, Auth, "claude exited with code 1: Invalid API key · Fix external API key")
            .by(OPUS, "98e1b2f6-3b42-4905-8606-6790c62039a2"),
        none(claude("e429long", ""))
            .fails(
                Kind::Exit,
                Limit,
                "claude exited with code 1: API Error: Request rejected (429) · This request would exceed your \
                 account's rate limit. Please try again later.",
            )
            .by(OPUS, "816081b2-f506-424b-83e6-ede4acb99db5"),
        twice(claude("empty", ""))
            .fails(Kind::Silent, Other, "claude ended without saying anything")
            .by(OPUS, "321f5ee0-db00-47ed-8d74-2b59f57f6db1"),
        all(claude("flaky429", DONE)).by(OPUS, "c786704a-3342-4178-a594-335f5523e615"),
        claude("hang+int", "")
            .fails(Kind::NoFinal, Other, "claude ended without its final event")
            .by(OPUS, "977885a2-4bc0-47b0-b973-7047af1bca61"),
        all(claude("loop+budget", RUN))
            .fails(Kind::Exit, Other, "claude exited with code 1: Reached maximum budget ($0.0001)")
            .by(OPUS, "f285ece3-a26a-48a5-ae5d-d00098dcb11d"),
        twice(claude("loop+turns2", "I will run a command.I will run a command."))
            .fails(Kind::Exit, Other, "claude exited with code 1: Reached maximum number of turns (2)")
            .by(OPUS, "53d1d254-9e49-49f8-9714-86f75f372c3d"),
        twice(claude("midtext", MIDTEXT)).by(OPUS, "26e18a0b-b948-4b00-b752-9e5e3a3ba663"),
        all(claude("multi", MULTI)).by(OPUS, "e4b77d67-fdfe-46c8-945a-55dc200b65c7"),
        all(claude("nosigil", MORE)).by(OPUS, "71426b89-f637-4d7b-bafb-cb627be70420"),
        none(claude("not_logged_in", ""))
            .fails(Kind::Exit, Auth, "claude exited with code 1: Not logged in · Please run /login")
            .by(OPUS, "739e1992-6cd0-43a6-8212-417db04809ab"),
        none(claude("oauth401", ""))
            .fails(Kind::Exit, Auth, "claude exited with code 1: Not logged in · Please run /login")
            .by("claude-sonnet-5-5", "126526ac-54fa-406a-a47b-13d70715ca56"),
        none(claude("overload529", ""))
            .fails(
                Kind::Exit,
                Overload,
                "claude exited with code 1: API Error: 529 Overloaded. This is a server-side issue, usually \
                 temporary — try again in a moment. If it persists, check your inference gateway (127.0.0.1:8901).",
            )
            .by(OPUS, "7e3ba90c-33ec-413d-bcd1-c3891f3ddfb2"),
        claude("refusal", "I begin to say something that is cutI begin to say something that is cut")
            .fails(
                Kind::Exit,
                Class::Refused,
                "claude exited with code 1: API Error: Opus 5.5's safeguards flagged this message \
                 (https://www.anthropic.com/legal/aup). This sometimes happens with safe, normal conversations. Claude \
                 Code can't respond to this message with Opus 5.5. Try rephrasing the request in a new session or \
                 change your model. Learn more: https://support…",
            )
            .cost(0.001_200_000_000_000_000_1)
            .tokens(200, 20)
            .by(OPUS, "9e13f4a8-f195-423f-8583-f1b3b91fee13"),
        all(claude("replan", STALE)).by(OPUS, "c1edd021-e84c-4c5d-a9fd-0e6a2df2d158"),
        claude("sleep+term", RUN)
            .fails(Kind::Exit, Other, "claude exited with code 143")
            .by(OPUS, "bec6e625-50af-4812-b4f9-08702d13bd16"),
        all(claude("think", MORE)).by(OPUS, "cf85b6ca-6486-4efa-8922-07fbc6166b20"),
        twice(claude("tool", RUN_DONE))
            .by(OPUS, "efaa432e-1668-440a-b971-894011dbd87b"),
        claude("tool+root", "").fails(
            Kind::Exit,
            Permission,
            "claude refuses --dangerously-skip-permissions as root: run as a normal user, or set IS_SANDBOX=1 \
             yourself if this really is a sandbox; or set AGENT_ARGS without the flag",
        ),
        twice(claude("toolsigil", RUN_MORE))
            .by(OPUS, "e20a5589-3979-49ee-bd31-bf92f73ea4bc"),
        none(claude("unified429+oauth", ""))
            .fails(Kind::Exit, Limit, "claude exited with code 1: You've hit your limit · resets 2:10am (UTC)")
            .resets(1_795_227_012)
            .by("claude-sonnet-5-5", "37ae23f4-b535-48a5-8d26-34b6bba7d574"),
    ]);
}

#[test]
fn codex() {
    use Class::{Auth, Limit, Other};
    let codex = |name, text| case("codex", name, text);
    check(&[
        codex("complete", DONE).tokens(1150, 42).by("", "01a1fb9c-9ecf-7cc3-b5d2-dea4d6b7a231"),
        codex(
            "content_filter",
            "I begin to say something that is cutI begin to say something that is cutI begin to say something that is \
             cutI begin to say something that is cutI begin to say something that is cutI begin to say something that is \
             cut",
        )
        .fails(
            Kind::Exit,
            Class::Refused,
            "codex exited with code 1: stream disconnected before completion: Incomplete response returned, reason: \
             content_filter",
        )
        .by("", "01a20774-6b4f-76a0-b511-9e8fafa58fd8"),
        codex("e401", "")
            .fails(
                Kind::Exit,
                Auth,
                "codex exited with code 1: unexpected status 401 Unauthorized: Incorrect API key provided: \
                 dummy-key., url: http://127.0.0.1:8765/s/e401/n-32518/v1/responses",
            )
            .by("", "01a1fb6d-6da8-78f2-947a-f4a12861f3c3"),
        codex("e429", "")
            .fails(
                Kind::Exit,
                Limit,
                "codex exited with code 1: exceeded retry limit, last status: 429 Too Many Requests",
            )
            .by("", "01a1fb6f-f81b-7862-ac4e-ea547ad77534"),
        codex("empty", "")
            .fails(Kind::Silent, Other, "codex ended without saying anything")
            .tokens(1150, 42)
            .by("", "01a1fb6d-1de3-7683-b8b1-482895560616"),
        codex("limit_near", "")
            .fails(
                Kind::Exit,
                Limit,
                "codex exited with code 1: You’ve hit your usage limit. Upgrade to Pro \
                 (https://chatgpt.com/explore/pro), visit https://chatgpt.com/settings/usage to purchase more \
                 credits or try again at 4:13 PM.",
            )
            .resets(next(16, 14))
            .by("", "01a1fe74-6065-7f63-a64f-1541c0bc9d0c"),
        codex("maxtok", "This answer is cut off in the mid")
            .fails(
                Kind::Exit,
                Other,
                "codex exited with code 1: Incomplete response returned, reason: max_output_tokens",
            )
            .by("", "01a1fb6d-244c-7a30-99fb-bbf4625165c3"),
        codex("midtext", MIDTEXT).tokens(2300, 84).by("", "01a1fe75-5278-71c3-8fbe-abc8c8d5beab"),
        codex("multi", MULTI).tokens(1150, 42).by("", "01a1fb6c-eada-78b1-976a-871ae6fe2ffa"),
        codex("nosigil", MORE).tokens(1150, 42).by("", "01a1fb6c-e402-7b61-b16a-786a0f2401d3"),
        codex("replan", STALE).tokens(1150, 42).by("", "01a1fb6c-dcd5-7bf2-8eb7-fb4b3edde5be"),
        codex("sleep+int", RUN)
            .fails(Kind::Exit, Other, "codex exited with code 1")
            .by("", "01a1fb75-af84-7263-8cb3-701f9f20b109"),
        codex("think", MORE).tokens(1150, 42).by("", "01a1fb6c-f1ad-76b0-b68f-59d69aa1b7b5"),
        codex("tool", RUN_DONE).tokens(2300, 84).by("", "01a1fb6c-f8c8-77f0-aa62-5464be5e0cb2"),
        codex("toolsigil", RUN_MORE).tokens(2300, 84).by("", "01a1fb6c-ff53-7ef3-835c-057499ec628e"),
    ]);
}

#[test]
fn cline() {
    use Class::{Auth, Other};
    let cline = |name, text| case("cline", name, text);
    let model = "fake-model";
    check(&[
        cline("complete", DONE).cost(0.0).tokens(1150, 42).by(model, "conv_1795220465242_tl55lzy"),
        cline("complete+stdinonly", "").fails(
            Kind::Exit,
            Other,
            "cline exited with code 1: JSON output mode requires a prompt argument or piped stdin (interactive \
             mode is unsupported)",
        ),
        cline("e401", "")
            .fails(Kind::Exit, Auth, "cline exited with code 1: Incorrect API key provided: dummy-key.")
            .cost(0.0)
            .tokens(0, 0)
            .by(model, "conv_1795220520466_7u5x7pt"),
        cline("empty", "")
            .fails(Kind::Exit, Other, "cline exited with code 1: Model returned empty response")
            .cost(0.0)
            .tokens(3450, 126)
            .by(model, "conv_1795220832858_jumu2kg"),
        cline("replan", STALE).cost(0.0).tokens(1150, 42).by(model, "conv_1795220477629_viif9m7"),
        cline("tool", RUN_DONE)
            .cost(0.0)
            .tokens(2300, 84)
            .by(model, "conv_1795220491006_0rve8xl"),
        cline("toolsigil", RUN_MORE)
            .cost(0.0)
            .tokens(2300, 84)
            .by(model, "conv_1795220498019_u4ikcub"),
    ]);
}

#[test]
fn gemini() {
    use Class::{Auth, Other, Overload, Permission};
    let gemini = |name, text| case("gemini", name, text);
    // The model that answered, which is not the one that was asked for: they were recorded against a server of ours.
    let model = "fake";
    check(&[
        gemini("complete", DONE).tokens(1150, 42).by(model, "4ce2d39e-83e1-4201-937b-482a5ea538bd"),
        gemini("e401", "")
            .fails(
                Kind::Exit,
                Auth,
                "gemini exited with code 145: fake: UNAUTHENTICATED",
            )
            .tokens(0, 0)
            .by("gemini-2.5-pro", "b61992e0-b775-4102-bc3f-34f779b6ae8f"),
        gemini("e403", "")
            .fails(
                Kind::Exit,
                Auth,
                "gemini exited with code 147: Your account is not allowed to use this model",
            )
            .tokens(0, 0)
            .by("gemini-2.5-pro", "f6029a51-459e-4eec-8b3c-c7f77171cebb"),
        gemini("e404", "")
            .fails(Kind::Exit, Class::Model, "gemini exited with code 1: [API Error: model: no-such-model]")
            .tokens(0, 0)
            .by("gemini-2.5-pro", "b51319d6-6d8b-4f5a-a350-8f44cb1475b3"),
        gemini("e503", "")
            .fails(
                Kind::Exit,
                Overload,
                "gemini exited with code 247: [API Error: The model is overloaded. Please try again later.]",
            )
            .tokens(0, 0)
            .by("gemini-2.5-pro", "b8996a49-73a7-4831-b8ef-986163b6b98c"),
        gemini("empty", "")
            .fails(
                Kind::Reported,
                Other,
                "gemini reported an error: The model returned an empty response with no text or thoughts. This \
                 may be a transient API issue; please try again.",
            )
            .tokens(4600, 168)
            .by("fake, gemini-2.5-pro", "c12a1761-4d64-4878-a231-c3427abd0327"),
        gemini("no_auth_method", "").fails(
            Kind::Exit,
            Auth,
            "gemini exited with code 41: Invalid auth method selected.",
        ),
        gemini("untrusted", "").fails(
            Kind::Exit,
            Permission,
            "gemini exited with code 55: Gemini CLI is not running in a trusted directory. To proceed, either use \
             `--skip-trust`, set the `GEMINI_CLI_TRUST_WORKSPACE=true` environment variable, or trust this \
             directory in interactive mode. For more details, see \
             https://geminicli.com/docs/cli/trusted-folders/#headless-and-automated-environm…",
        ),
        gemini("multi", MULTI).tokens(1150, 42).by(model, "be38e3da-b99c-4be8-b7c4-e4ab604f8585"),
        gemini("replan", STALE).tokens(1150, 42).by(model, "66072f0f-4620-4f30-9ded-bf00f539e8bf"),
        gemini("tool", RUN_DONE)
            .tokens(2300, 84)
            .by(model, "6c65815b-4b6f-489f-bf98-fd4653854549"),
    ]);
}

#[test]
fn an_exit_code_of_gemini_tells_the_status_where_its_words_do_not() {
    let stream = r#"{"type":"result","status":"error","error":{"type":"unknown","message":"[API Error: UNAVAILABLE]"}}"#;
    for (code, class) in [
        (144, Class::Other),
        (145, Class::Auth),
        (147, Class::Auth),
        (173, Class::Limit),
        (244, Class::Overload),
        (247, Class::Overload),
    ] {
        let played = play("gemini", stream.as_bytes(), "", AgentEnd::Exited(code), usize::MAX);
        assert_eq!(played.verdict.unwrap_err().class, class, "{code}");
    }
}

#[test]
fn opencode() {
    let opencode = |name, text| case("opencode", name, text);
    check(&[
        opencode("complete", DONE).cost(0.0).tokens(1150, 42).by("", "ses_e047d59c3ffeNa5vQgsVK4G2Vq"),
        opencode("content_filter", "I begin to say something that is cut")
            .fails(
                Kind::Exit,
                Class::Refused,
                "opencode exited with code 1: The response was blocked by the provider's content filter",
            )
            .cost(0.0)
            .tokens(100, 10)
            .by("", "ses_df887d9a5ffeiTP0ft3DPZd7bz"),
        opencode("maxtok", "I begin to say something that is cut")
            .fails(
                Kind::Reported,
                Class::Other,
                "opencode reported an error: the answer was cut off at the limit of its length",
            )
            .cost(0.0)
            .tokens(100, 10)
            .by("", "ses_df8873344ffeEziWliAqhFAXSO"),
        opencode("e401", "")
            .fails(
                Kind::Exit,
                Class::Auth,
                "opencode exited with code 1: Incorrect API key provided: dummy-key.",
            )
            .by("", "ses_e0476dc0cffefsvH4XlPns9i4c"),
        opencode("multi", MULTI).cost(0.0).tokens(1150, 42).by("", "ses_e047731f4ffejWd9hE7GvygIaR"),
        opencode("replan", STALE).cost(0.0).tokens(1150, 42).by("", "ses_e0477a3a2ffenSGlksCZTsPYGy"),
        opencode("tool", RUN_DONE).cost(0.0).tokens(2300, 84).by("", "ses_e0477872bffePZ1bB8L2PywHTb"),
    ]);
}

#[test]
fn the_session_of_opencode_is_known_from_its_first_line() {
    let stream = fs::read(path("opencode", "tool", "ndjson")).unwrap();
    let first = stream.split_inclusive(|&byte| byte == b'\n').next().unwrap();
    let played = play("opencode", first, "", AgentEnd::Inactive, usize::MAX);
    assert_eq!(played.reply.usage.session_id.as_deref(), Some("ses_e0477872bffePZ1bB8L2PywHTb"));
}

#[test]
fn qwen() {
    let qwen = |name, text| case("qwen", name, text);
    check(&[
        qwen("complete", DONE).tokens(2300, 84).by("script", "fb0c0515-fa9f-42c7-9f7a-1021b6f6fd18"),
        qwen("replan", STALE).tokens(2300, 84).by("script", "9adce3d7-f026-4c05-a341-ae4460ad7e86"),
        qwen("nosigil", MORE).tokens(2300, 84).by("script", "8f95c743-95f9-4df5-8dfd-88b3f3fc1730"),
        qwen("multi", MULTI).tokens(2300, 84).by("script", "16c6623e-69ee-4031-903e-66b4c6005390"),
        qwen("tool", RUN_DONE).tokens(2300, 84).by("script", "cdd49d84-8df1-4614-93dc-8ea07a32e131"),
        qwen("content_filter", "I begin to say something that is cut").tokens(2300, 84).by("script", "08cf88bf-8612-4749-a463-1a1ceef2ad2d"),
        qwen("maxtok", "I begin to say something that is cutI begin to say something that is cutI begin to say something that is cutI begin to say something that is cutI begin to say something that is cut").tokens(11500, 420).by("script", "50b77cd4-2ab8-4648-ae23-3c10b33d3e23"),
        qwen("empty", "").fails(Kind::Exit, Class::Other, "qwen exited with code 1: Model stream ended with empty response text.").tokens(5750, 210).by("script", "6ddcf166-639e-4a38-a9f2-c8e173359140"),
        qwen("unreachable", "").fails(Kind::Exit, Class::Network, "qwen exited with code 1: Connection error. (cause: connect ECONNREFUSED 127.0.0.1:44923)").tokens(0, 0).by("script", "37ca396f-99e1-4387-91dd-26a080122c87"),
        qwen("e401", "").fails(Kind::Exit, Class::Auth, "qwen exited with code 1: 401 Incorrect API key provided: dummy-key.").tokens(0, 0).by("script", "9f23a26b-d1a0-4958-9145-070a2ee6a3ec"),
        qwen("e403", "").fails(Kind::Exit, Class::Auth, "qwen exited with code 1: 403 Your account may not use this.").tokens(0, 0).by("script", "4e61ed55-8e8b-443c-89f6-8d5dbcdb1887"),
        qwen("e404", "").fails(Kind::Exit, Class::Model, "qwen exited with code 1: 404 The model `script` does not exist").tokens(0, 0).by("script", "15f35cc5-1068-418f-9351-47b5c619999b"),
        qwen("econtext", "").fails(Kind::Exit, Class::Context, "qwen exited with code 1: 400 This model's maximum context length is 128000 tokens. However, your messages resulted in 300000 tokens.").tokens(0, 0).by("script", "8bd1e22f-c6ac-48a2-9365-9a0d0d5916ad"),
    ]);
}

#[test]
fn pi() {
    let pi = |name, text| case("pi", name, text);
    check(&[
        pi("complete", DONE).cost(0.0).tokens(1150, 42).by("script", "01a2234c-fc39-75c1-857e-50060e85e0d2"),
        pi("replan", STALE).cost(0.0).tokens(1150, 42).by("script", "01a2234d-0976-70bc-be88-9c1dda1ffb7b"),
        pi("nosigil", MORE).cost(0.0).tokens(1150, 42).by("script", "01a2234d-15ae-7013-a6ac-f2833793ed26"),
        pi("multi", MULTI).cost(0.0).tokens(1150, 42).by("script", "01a2234d-2ca9-7033-8cbd-bcecea9a53bf"),
        pi("tool", RUN_DONE).cost(0.0).tokens(2300, 84).by("script", "01a2234d-4118-73de-8def-4fd717dec798"),
        pi("empty", "")
            .fails(Kind::Silent, Class::Other, "pi ended without saying anything")
            .cost(0.0)
            .tokens(1150, 42)
            .by("script", "01a2234d-3701-732e-8828-338f23f353e0"),
        pi("maxtok", "I begin to say something that is cut")
            .fails(
                Kind::Reported,
                Class::Other,
                "pi reported an error: the answer was cut off at the limit of its \
                 length",
            )
            .cost(0.0)
            .tokens(1150, 42)
            .by("script", "01a2234d-4ac9-7260-aeec-3e5986590c84"),
        pi("content_filter", "I begin to say something that is cut")
            .fails(
                Kind::Reported,
                Class::Refused,
                "pi reported an error: Provider finish_reason: content_filter",
            )
            .cost(0.0)
            .tokens(1150, 42)
            .by("script", "01a2234d-53ad-72bd-b5d9-ae3d0731e8bb"),
        pi("e401", "")
            .fails(
                Kind::Reported,
                Class::Auth,
                "pi reported an error: 401 Incorrect API key provided: dummy-key.",
            )
            .by("script", "01a2234d-5dc2-739f-9c3e-36e93cd895aa"),
        pi("e403", "")
            .fails(Kind::Reported, Class::Auth, "pi reported an error: 403 Your account may not use this.")
            .by("script", "01a2234d-6730-73d4-95ae-d020dc05810a"),
        pi("e404", "")
            .fails(
                Kind::Reported,
                Class::Model,
                "pi reported an error: 404 The model `script` does not exist",
            )
            .by("script", "01a2234d-6ffb-7577-bff6-c1163d5cee13"),
        pi("e429", "")
            .fails(Kind::Reported, Class::Limit, "pi reported an error: 429 Rate limit reached for requests")
            .by("script", "01a2234d-79b5-7328-b652-28600f7a70a9"),
        pi("equota", "")
            .fails(
                Kind::Reported,
                Class::Billing,
                "pi reported an error: 429 You exceeded your current quota, please check \
                 your plan and billing details.",
            )
            .by("script", "01a2234d-db50-74e6-8fe6-ba3d00bd27d3"),
        pi("e503", "")
            .fails(
                Kind::Reported,
                Class::Overload,
                "pi reported an error: 503 The server is overloaded. Try again later.",
            )
            .by("script", "01a2234e-4b54-7011-a249-fb0e05d72838"),
        pi("econtext", "")
            .fails(
                Kind::Reported,
                Class::Context,
                "pi reported an error: 400 This model's maximum context length is 128000 \
                 tokens. However, your messages resulted in 300000 tokens.",
            )
            .by("script", "01a2234e-ac0b-7386-93a7-3779a63ea1c3"),
    ]);
}

#[test]
fn droid() {
    const MODEL: &str = "custom:Script-0";
    let droid = |name, text| case("droid", name, text);
    check(&[
        droid("complete", DONE).tokens(1150, 42).by(MODEL, "2f1fcc87-5f25-439a-8aaa-208329559cb0"),
        droid("replan", STALE).tokens(1150, 42).by(MODEL, "5c4d9b17-4058-470a-854f-3bb4c3b07a87"),
        droid("nosigil", MORE).tokens(1150, 42).by(MODEL, "7ba468ba-680a-4a89-a5c3-0cc90093d87b"),
        droid("multi", MULTI).tokens(1150, 42).by(MODEL, "f75c891c-b246-4d5f-8215-033474b34e3a"),
        droid("tool", RUN_DONE).tokens(2300, 84).by(MODEL, "4409a8f7-844f-4432-8a36-cebb88a310aa"),
        droid("empty", "")
            .fails(Kind::Silent, Class::Other, "droid ended without saying anything")
            .tokens(3450, 126)
            .by(MODEL, "f6a8e1e8-094d-47b4-b3c3-cd1b839e8a06"),
        droid("content_filter", "")
            .fails(Kind::Exit, Class::Refused, "droid exited with code 1: Request failed due to triggering the model provider's content moderation policy. Please modify your message and try again.")
            .by(MODEL, "20143312-40f7-4a6c-98a8-14b3b8f3c9fd"),
        droid("cut", "")
            .fails(Kind::Exit, Class::Network, "droid exited with code 1: The socket connection was closed unexpectedly. For more information, pass `verbose: true` in the second argument to fetch()")
            .by(MODEL, "a8fdc60d-475c-4f08-a379-d8e3dbc1eedb"),
        droid("unreachable", "")
            .fails(Kind::Exit, Class::Network, "droid exited with code 1: Connection error.")
            .by(MODEL, "907d8797-8ca7-4455-8726-815dca6742a7"),
        droid("e401", "")
            .fails(Kind::Exit, Class::Auth, "droid exited with code 1: 401 Incorrect API key provided: dummy-key.")
            .by(MODEL, "dc6137da-0996-4f6f-9640-a56c00e5dc9e"),
        droid("e403", "")
            .fails(Kind::Exit, Class::Auth, "droid exited with code 1: 403 Your account may not use this.")
            .by(MODEL, "d5a33c5e-0a96-4849-a47d-fdf450a3f9fa"),
        droid("e404", "")
            .fails(Kind::Exit, Class::Model, "droid exited with code 1: 404 The model `script` does not exist")
            .by(MODEL, "140ca094-189b-4bac-be17-19cbccbf4fe9"),
        droid("e429", "")
            .fails(Kind::Exit, Class::Limit, "droid exited with code 1: 429 Rate limit reached for requests")
            .by(MODEL, "41e3ad3b-a199-4379-9dc6-2cd5790b2a45"),
        droid("equota", "")
            .fails(Kind::Exit, Class::Billing, "droid exited with code 1: 429 You exceeded your current quota, please check your plan and billing details.")
            .by(MODEL, "b7f91ba9-5820-4db7-94ac-82be211c140f"),
        droid("econtext", "")
            .fails(Kind::Exit, Class::Context, "droid exited with code 1: 400 This model's maximum context length is 128000 tokens. However, your messages resulted in 300000 tokens.")
            .by(MODEL, "cf655d45-2f87-48ad-80cb-bb6b909473d0"),
        droid("not_logged_in", "")
            .fails(Kind::Exit, Class::Auth, "droid exited with code 1: Error: Authentication failed. Please log in using /login or set a valid FACTORY_API_KEY environment variable.")
            .by("gpt-5.6-sol", "8849aa6b-d554-43cd-9fe2-ce0858704b4b"),
        droid("no_such_model", "").fails(Kind::Exit, Class::Model, "droid exited with code 1: Invalid model: nope"),
    ]);
}

#[test]
fn amp() {
    check(&[case("amp", "complete", "").fails(
        Kind::Exit,
        Class::Other,
        "amp exited with code 1: Error: API request for getUserInfo failed: 404",
    )]);
}

#[test]
fn the_display_shows_text_tools_retries_and_errors() {
    let tool = |name: &str, input: &str| Show::Tool { name: name.into(), input: input.into() };
    let text = |text: &str| Show::Text(text.into());
    let delta = |text: &str| Show::Delta(text.into());
    let shows = |agent, case| play_recording(agent, case, usize::MAX).shows;

    assert_eq!(shows("claude", "tool"), [text(RUN), tool("Bash", "echo hi"), text(DONE)]);
    assert_eq!(shows("claude", "complete+partial"), [text(DONE)]);
    assert_eq!(shows("cline", "tool"), [text(RUN), tool("run_commands", "echo hi"), text(DONE)]);
    assert_eq!(shows("opencode", "tool"), [text(RUN), tool("bash", "echo hi"), text(DONE)]);
    assert_eq!(shows("pi", "tool"), [text(RUN), tool("bash", "echo hi"), text(DONE)]);
    assert_eq!(shows("droid", "tool"), [text(RUN), tool("Execute", "echo hi"), text(DONE)]);
    let codex = shows("codex", "tool");
    assert!(matches!(&codex[0], Show::Notice(notice) if notice.starts_with("Model metadata")), "{codex:?}");
    assert_eq!(codex[1..], [text(RUN), tool("shell", "echo hi"), text(DONE)]);
    assert_eq!(
        shows("gemini", "tool"),
        [
            delta("I will run "),
            delta("a command."),
            tool("run_shell_command", "echo hi"),
            delta("All tasks are "),
            delta("finished and the "),
            delta("tests pass.\n\n<promise>COMPLETE</promise>"),
        ]
    );

    let flaky = shows("claude", "flaky429");
    let again =
        |times: u32, why: &str| Show::Notice(format!("the agent tries again, up to {times} times: {why}"));
    assert_eq!(flaky, [again(10, "429 rate_limit"), text(DONE)]);
    let overload = shows("claude", "overload529");
    assert_eq!(overload[..1], [again(10, "529 overloaded")]);
    assert_eq!(overload.len(), 2, "{overload:?}");
    let refused = shows("claude", "refusal");
    let stopped = "Opus 5.5's safeguards stopped the response above · continuing once with that noted";
    assert!(refused.contains(&Show::Notice(stopped.into())), "{refused:?}");
    let limited = shows("codex", "e429");
    assert_eq!(limited[1], again(5, "(exceeded retry limit, last status: 429 Too Many Requests)"));
    assert_eq!(limited.len(), 3, "{limited:?}");
    let limit = "You've hit your limit · resets 2:10am (UTC)";
    assert_eq!(
        shows("claude", "unified429+oauth"),
        [Show::Notice("usage limit reached: five_hour".into()), Show::Error(limit.into())]
    );
    for (agent, case) in [
        ("claude", "e401"),
        ("cline", "e401"),
        ("codex", "e401"),
        ("gemini", "e401"),
        ("opencode", "e401"),
        ("pi", "e401"),
        ("droid", "e401"),
    ] {
        let errors = shows(agent, case).iter().filter(|show| matches!(show, Show::Error(_))).count();
        assert_eq!(errors, 1, "{agent}");
    }
}

#[test]
fn a_tool_call_is_in_flight_until_its_result_comes() {
    let started = r#"{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t1","name":"Bash","input":{}}]}}"#;
    let finished =
        r#"{"type":"user","message":{"content":[{"tool_use_id": "t1","content":"\"tool_use_id\":\"t2\""}]}}"#;
    let in_flight = |lines: &[&str]| {
        play("claude", lines.join("\n").as_bytes(), "", AgentEnd::Inactive, 64).reply.usage.tools_in_flight
    };
    assert_eq!(in_flight(&[started]), ["t1"]);
    assert_eq!(in_flight(&[started, finished]), [""; 0]);
    let stuck = play_recording("codex", "sleep+int", usize::MAX);
    assert_eq!(stuck.reply.usage.sessions_in_flight, ["item_2"]);
    for (agent, case) in [("claude", "tool"), ("cline", "tool"), ("codex", "tool"), ("gemini", "tool")] {
        let usage = play_recording(agent, case, 5).reply.usage;
        assert_eq!([usage.tools_in_flight, usage.sessions_in_flight].concat(), [""; 0], "{agent}");
    }
}
