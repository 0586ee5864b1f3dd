//! An agent that is not logged in ends the loop at once and says what to do.

use crate::scratch::Scratch;

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
