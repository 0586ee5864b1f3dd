//! A marker counts at the end of a line of the agent's last message, and nowhere else.

use rustix::process::Signal;

use crate::policies::{assert_end, attempts, beside, number, project, prompt, run, signal};
use crate::scratch::{CLAUDE_RESULT, Scratch, claude_text, finish, says, wait_for};

const COMPLETE: &str = "<promise>COMPLETE</promise>";
const MENTION: &str = "I should answer <promise>COMPLETE</promise> only when all is done; it is not.";
const NOTICE: &str = "the agent mentions <promise>COMPLETE</promise>";

/// A stream in which the agent says `before`, calls a tool, and says `after`; its words are JSON without quotes.
fn stream(agent: &str, before: &str, after: &str) -> Vec<String> {
    let lines: &[&str] = match agent {
        "claude" => &[
            r#"{"type":"assistant","message":{"id":"m1","model":"m","content":[{"type":"text","text":"BEFORE"}]},"parent_tool_use_id":null}"#,
            r#"{"type":"assistant","message":{"id":"m1","model":"m","content":[{"type":"tool_use","id":"t","name":"Bash","input":{}}]},"parent_tool_use_id":null}"#,
            r#"{"type":"user","message":{"content":[{"tool_use_id":"t","type":"tool_result","content":"ok"}]}}"#,
            r#"{"type":"assistant","message":{"id":"m2","model":"m","content":[{"type":"text","text":"AFTER"}]},"parent_tool_use_id":null}"#,
            CLAUDE_RESULT,
        ],
        "codex" => &[
            r#"{"type":"item.completed","item":{"id":"1","type":"agent_message","text":"BEFORE"}}"#,
            r#"{"type":"item.started","item":{"id":"2","type":"command_execution","command":"true","status":"in_progress"}}"#,
            r#"{"type":"item.completed","item":{"id":"2","type":"command_execution","command":"true","status":"completed"}}"#,
            r#"{"type":"item.completed","item":{"id":"3","type":"agent_message","text":"AFTER"}}"#,
            r#"{"type":"turn.completed","usage":{"input_tokens":1,"output_tokens":1}}"#,
        ],
        "gemini" => &[
            r#"{"type":"message","role":"assistant","content":"BEFORE","delta":true}"#,
            r#"{"type":"tool_use","tool_name":"x","tool_id":"t","parameters":{}}"#,
            r#"{"type":"tool_result","tool_id":"t","status":"success","output":"ok"}"#,
            r#"{"type":"message","role":"assistant","content":"AFTER","delta":true}"#,
            r#"{"type":"result","status":"success","stats":{}}"#,
        ],
        "opencode" => &[
            r#"{"type":"text","sessionID":"s","part":{"messageID":"m1","text":"BEFORE"}}"#,
            r#"{"type":"tool_use","sessionID":"s","part":{"messageID":"m1","tool":"bash","callID":"c","state":{"status":"completed","input":{}}}}"#,
            r#"{"type":"text","sessionID":"s","part":{"messageID":"m2","text":"AFTER"}}"#,
        ],
        "qwen" => &[
            r#"{"type":"assistant","message":{"id":"m1","content":[{"type":"text","text":"BEFORE"}]},"parent_tool_use_id":null}"#,
            r#"{"type":"assistant","message":{"id":"m2","content":[{"type":"tool_use","id":"t","name":"run_shell_command","input":{}}]},"parent_tool_use_id":null}"#,
            r#"{"type":"user","message":{"content":[{"tool_use_id":"t","type":"tool_result","content":"ok"}]},"parent_tool_use_id":null}"#,
            r#"{"type":"assistant","message":{"id":"m3","content":[{"type":"text","text":"AFTER"}]},"parent_tool_use_id":null}"#,
            r#"{"type":"result","subtype":"success","is_error":false,"usage":{}}"#,
        ],
        "pi" => &[
            r#"{"type":"message_end","message":{"role":"assistant","content":[{"type":"text","text":"BEFORE"},{"type":"toolCall","id":"c","name":"bash","arguments":{}}]}}"#,
            r#"{"type":"tool_execution_start","toolCallId":"c","toolName":"bash","args":{}}"#,
            r#"{"type":"tool_execution_end","toolCallId":"c","toolName":"bash"}"#,
            r#"{"type":"message_end","message":{"role":"assistant","content":[{"type":"text","text":"AFTER"}]}}"#,
            r#"{"type":"agent_end","messages":[]}"#,
        ],
        "droid" => &[
            r#"{"type":"message","role":"assistant","id":"m1","text":"BEFORE"}"#,
            r#"{"type":"tool_call","id":"c","messageId":"m1","toolId":"Execute","toolName":"Execute","parameters":{}}"#,
            r#"{"type":"tool_result","id":"c","messageId":"m2","toolId":"Execute","isError":false,"value":"ok"}"#,
            r#"{"type":"message","role":"assistant","id":"m3","text":"AFTER"}"#,
            r#"{"type":"completion","finalText":"","numTurns":2,"usage":{"input_tokens":1,"output_tokens":1}}"#,
        ],
        "cline" => &[
            r#"{"type":"agent_event","event":{"type":"iteration_start","iteration":1}}"#,
            r#"{"type":"agent_event","event":{"type":"content_end","contentType":"text","text":"BEFORE"}}"#,
            r#"{"type":"agent_event","event":{"type":"content_start","contentType":"tool","toolName":"x","toolCallId":"t","input":{}}}"#,
            r#"{"type":"agent_event","event":{"type":"content_end","contentType":"tool","toolName":"x","toolCallId":"t"}}"#,
            r#"{"type":"agent_event","event":{"type":"iteration_start","iteration":2}}"#,
            r#"{"type":"agent_event","event":{"type":"content_end","contentType":"text","text":"AFTER"}}"#,
            r#"{"type":"run_result","finishReason":"completed","text":"","usage":{}}"#,
        ],
        _ => &[
            r#"{"type":"assistant","message":{"content":[{"type":"text","text":"BEFORE"},{"type":"tool_use","id":"t","name":"x","input":{}}]},"parent_tool_use_id":null}"#,
            r#"{"type":"user","message":{"content":[{"tool_use_id":"t","type":"tool_result","content":"ok"}]},"parent_tool_use_id":null}"#,
            r#"{"type":"assistant","message":{"content":[{"type":"text","text":"AFTER"}]},"parent_tool_use_id":null}"#,
            r#"{"type":"result","subtype":"success","is_error":false,"result":""}"#,
        ],
    };
    // An agent that says nothing in the end prints no line for it.
    let lines = lines.iter().filter(|line| !(after.is_empty() && line.contains("AFTER")));
    lines.map(|line| line.replace("BEFORE", before).replace("AFTER", after)).collect()
}

fn lines(stream: &[String]) -> String {
    says(&stream.iter().map(String::as_str).collect::<Vec<_>>())
}

#[test]
fn a_marker_before_the_last_tool_call_ends_no_loop_whatever_the_agent() {
    for agent in ["amp", "claude", "cline", "codex", "droid", "gemini", "opencode", "pi", "qwen"] {
        for (before, after, is_claim) in [
            (MENTION, "There is more to do.", false),
            (COMPLETE, "There is more to do.", false),
            ("There is more to do.", COMPLETE, true),
            (COMPLETE, "", true),
            (MENTION, "", false),
        ] {
            let scratch = Scratch::new();
            scratch.agent(agent, &lines(&stream(agent, before, after)));
            let run = scratch.run(&format!("prompt p.md 1 --agent {agent}"));
            let reason = if is_claim { "complete" } else { "max_iterations" };
            assert_end(&scratch, &run, 0, reason, "stopped");
            assert_eq!(run.stderr.matches(NOTICE).count(), usize::from(!is_claim), "{agent}: {run:?}");
        }
    }
}

#[test]
fn what_a_sub_agent_says_and_calls_does_not_count() {
    let sub_agent = |block: &str| {
        format!(
            r#"{{"type":"assistant","message":{{"id":"s","model":"m","content":[{block}]}},"parent_tool_use_id":"t"}}"#
        )
    };
    let call =
        |id: &str| sub_agent(&format!(r#"{{"type":"tool_use","id":"{id}","name":"Read","input":{{}}}}"#));
    let result = |id: &str| {
        format!(
            r#"{{"type":"user","message":{{"content":[{{"tool_use_id":"{id}","type":"tool_result"}}]}},"parent_tool_use_id":"t"}}"#
        )
    };
    let its_words = sub_agent(&format!(r#"{{"type":"text","text":"{COMPLETE}"}}"#));
    let last = [call("a"), result("a"), call("b"), result("b"), its_words, CLAUDE_RESULT.to_owned()];
    for (own, reason) in [("More to do.", "max_iterations"), (COMPLETE, "complete")] {
        let scratch = Scratch::new();
        let stream = [&[claude_text(own)][..], &last].concat();
        scratch.agent("claude", &lines(&stream));
        let run = scratch.run("prompt p.md 1");
        assert_end(&scratch, &run, 0, reason, "stopped");
        assert!(!run.stderr.contains(NOTICE), "{run:?}");
    }
}

#[test]
fn a_cut_message_that_is_repeated_counts_by_its_last_form() {
    let says = |id: &str, text: &str| {
        format!(
            r#"{{"type":"assistant","message":{{"id":"{id}","model":"m","content":[{{"type":"text","text":"{text}"}}]}},"parent_tool_use_id":null}}"#
        )
    };
    for (first, again, reason) in [
        (COMPLETE, "Not all is done after all.", "max_iterations"),
        ("I am d", COMPLETE, "complete"),
        (COMPLETE, COMPLETE, "complete"),
    ] {
        let scratch = Scratch::new();
        let stream = [says("m1", first), says("m2", again), CLAUDE_RESULT.to_owned()];
        scratch.agent("claude", &lines(&stream));
        assert_end(&scratch, &scratch.run("prompt p.md 1"), 0, reason, "stopped");
    }
    // Blocks of one message stand on lines of their own.
    let scratch = Scratch::new();
    let stream = [says("m1", COMPLETE), says("m1", "That was the last task."), CLAUDE_RESULT.to_owned()];
    scratch.agent("claude", &lines(&stream));
    assert_end(&scratch, &scratch.run("prompt p.md 1"), 0, "complete", "stopped");
}

#[test]
fn without_tool_calls_in_sight_all_of_the_text_is_the_last_message() {
    let scratch = Scratch::new();
    scratch.agent("claude", &lines(&stream("claude", COMPLETE, "That was it.")));
    let filters = "AGENT_RESPONSE_FILTER='select(.type == \"assistant\") | .message.content[].text // empty | . + \"\\n\"'\n\
                   AGENT_RESULT_FILTER='select(.type == \"result\") | {final: true}'\n";
    scratch.write(".ralph/config", filters);
    assert_end(&scratch, &scratch.run("prompt p.md 1"), 0, "complete", "stopped");
}

#[test]
fn words_before_a_marker_deny_success_in_doubt_and_no_problem() {
    let in_words = "behind words that deny it, so that it does not count";
    let in_code = "in a block of code, where it does not count";
    let in_quotation = "in a quotation or a code span, where it does not count";
    for (words, code, reason, notice) in [
        ("The plan does not fit any more, so I answer <promise>REPLAN</promise>", 3, "replan", None),
        (
            "I cannot go on without credentials, so I report <promise>FAILURE</promise>",
            0,
            "max_iterations",
            None,
        ),
        ("I will not say <promise>FAILURE</promise>", 0, "max_iterations", Some(in_words)),
        ("Not a single test fails: <promise>COMPLETE</promise>", 0, "complete", None),
        (
            "It is not finished, see src/main.rs <promise>COMPLETE</promise>",
            0,
            "max_iterations",
            Some(in_words),
        ),
        (r"Not done yet:\n<promise>COMPLETE</promise>", 0, "max_iterations", Some(in_words)),
        (r"1. ```sh\nmake\n```\n<promise>COMPLETE</promise>", 0, "complete", None),
        ("> <promise>COMPLETE</promise>", 0, "max_iterations", Some(in_quotation)),
        (
            "When all is done I end with `<promise>COMPLETE</promise>`",
            0,
            "max_iterations",
            Some(in_quotation),
        ),
        (r"```\nAll is done.\n\n<promise>COMPLETE</promise>", 0, "max_iterations", Some(in_code)),
    ] {
        let scratch = Scratch::new();
        scratch.agent("claude", &lines(&[claude_text(words), CLAUDE_RESULT.to_owned()]));
        let run = scratch.run("prompt p.md 1 --max-retries 0");
        assert_eq!(run.code, Some(code), "{words}: {run:?}");
        assert_eq!(scratch.state()["exit_reason"].as_str(), Some(reason), "{words}: {run:?}");
        let told = run.stderr.lines().find(|line| line.contains("the agent mentions"));
        assert_eq!(told.is_some(), notice.is_some(), "{words}: {run:?}");
        assert!(told.is_none_or(|told| told.ends_with(notice.unwrap_or_default())), "{words}: {run:?}");
    }
}

/// The agent has the marker on a line of its own, then calls a tool and says something else.
const ALONE: &str = r#"
alone() {
    say "$1"
    echo '{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t","name":"x","input":{}}]},"parent_tool_use_id":null}'
    tool_says done; say "That was it."; ok
}
"#;

#[test]
fn twice_in_a_row_alone_on_a_line_without_a_change_is_a_claim() {
    let marker = "alone 'Done.\\n\\n<promise>COMPLETE</promise>'";
    for (body, ends_after) in [
        (marker.to_owned(), Some(2)),
        (format!("[ $n = 1 ] && echo $n > new; {marker}"), Some(3)),
        (format!("[ $n = 1 ] && git commit -q --allow-empty -m x; {marker}"), Some(3)),
        (format!("[ $n = 2 ] && {{ say hm; ok; exit; }}; {marker}"), Some(4)),
        (format!("echo $n > new; {marker}"), None),
        // A usage limit in between is not an answer of the agent.
        (format!("[ $n = 2 ] && limit $(( $(date +%s) + 1 )); {marker}"), Some(3)),
        ("alone 'Done: <promise>COMPLETE</promise>'".to_owned(), None),
        ("alone 'Done.\\n<promise>REPLAN</promise>'; [ $n = 1 ] || exit 0".to_owned(), Some(2)),
    ] {
        let scratch = project(&format!("{ALONE}\n{body}"));
        let run = scratch.run("prompt p.md 4");
        let replans = body.contains("REPLAN");
        let (code, reason) = match ends_after {
            Some(_) if replans => (3, "replan"),
            Some(_) => (0, "complete"),
            None => (0, "max_iterations"),
        };
        assert_end(&scratch, &run, code, reason, "stopped");
        assert_eq!(attempts(&scratch), ends_after.unwrap_or(4), "{body}: {run:?}");
    }
}

#[test]
fn a_claim_by_two_mentions_survives_a_restart_and_has_to_be_proven() {
    let marker = "alone '<promise>COMPLETE</promise>'";
    let scratch = project(&format!("{ALONE}\n[ $n != 2 ] || {{ touch ../second; sleep 600; }}\n{marker}"));
    let child = scratch.start("prompt p.md 2");
    wait_for("the second iteration", || beside(&scratch, "second").exists().then_some(()));
    signal(&child, Signal::KILL);
    finish(child);
    let run = scratch.run("prompt p.md 2 --resume");
    assert_end(&scratch, &run, 0, "complete", "stopped");
    assert_eq!((attempts(&scratch), number(&scratch, "iteration")), (3, 2));

    let scratch = project(&format!("{ALONE}\n{marker}"));
    let mut command = scratch.ralph("prompt p.md 3 --validate");
    let run = Scratch::finish(command.arg("echo no; exit 1"));
    assert_eq!(number(&scratch, "iteration"), 3, "{run:?}");
    assert!(run.stdout.contains("Status: complete-unproven"), "{run:?}");
}

#[test]
fn the_next_agent_hears_which_command_failed_when_it_prints_nothing() {
    for (command, is_named) in [("test -f nothing", true), ("echo it is red; false", false)] {
        let scratch = project("complete");
        let ended = run(&scratch, "prompt p.md 2", &["--validate", command]);
        assert_end(&scratch, &ended, 4, "unproven", "failed");
        let next = prompt(&scratch, 2);
        assert_eq!(next.contains(command), is_named, "{next}");
        assert!(next.contains("(exit code 1)"), "{next}");
    }
}
