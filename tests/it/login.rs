//! An agent that is not logged in ends the loop at once and says what to do.

use crate::scratch::{Scratch, claude_says};

#[test]
fn a_refused_key_is_not_retried_and_the_way_to_log_in_is_named() {
    let scratch = Scratch::new();
    scratch.agent(
        "claude",
        r#"cat > /dev/null
echo '{"type":"result","subtype":"success","is_error":true,"api_error_status":401,"result":"Invalid API key"}'
exit 1"#,
    );
    let run = scratch.run("prompt p.md 3");
    assert_eq!(run.code, Some(4), "{run:?}");
    assert!(run.stdout.contains("Exit Reason: agent is not logged in"), "{run:?}");
    assert!(run.stdout.contains("Failed: 1\n"), "{run:?}");
    assert!(run.stderr.contains("Invalid API key; to log in, run 'claude' and log in"), "{run:?}");
}

#[test]
fn who_has_paid_or_logged_in_goes_on_where_the_loop_stopped() {
    for (status, message, reason) in
        [(402, "Your credit balance is too low", "out_of_credit"), (401, "Invalid API key", "not_logged_in")]
    {
        let scratch = Scratch::new();
        let fault = format!(
            r#"{{"type":"result","subtype":"success","is_error":true,"api_error_status":{status},"result":"{message}"}}"#
        );
        let says = [claude_says("one more"), claude_says("<promise>COMPLETE</promise>")];
        scratch.agent(
            "claude",
            &format!(
                "cat > /dev/null; echo >> \"$HOME/calls\"
                 case $(wc -l < \"$HOME/calls\") in
                     1) {}
                     ;;
                     2) echo '{fault}'; exit 1 ;;
                     *) {}
                     ;;
                 esac",
                says[0], says[1]
            ),
        );
        let run = scratch.run("prompt p.md 3");
        assert_eq!(run.code, Some(4), "{run:?}");
        assert_eq!(scratch.state()["exit_reason"].as_str(), Some(reason), "{run:?}");
        let run = scratch.run("resume");
        assert_eq!(run.code, Some(0), "{run:?}");
        assert!(run.stdout.contains("ITERATION 2\n") && !run.stdout.contains("ITERATION 1\n"), "{run:?}");
        assert_eq!(scratch.state()["iteration"].as_integer(), Some(2));
    }
}
