//! Notices of a loop: a webhook, a command, the terminal's bell; and `ralph notify test`.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::branch_project::{BranchProject, plan};
use crate::policies::project;
use crate::receiver::{Answer, Receiver, Request};
use crate::scratch::{Run, Scratch, Started, await_end, finish, process_in};
use crate::terminal::Terminal;

/// The time of a run besides that for its webhook.
const BESIDES: Duration = Duration::from_secs(10);

/// A loop whose agent is done at once.
fn done() -> Scratch {
    project("complete")
}

/// The command of a loop that tells this webhook.
fn telling(scratch: &Scratch, receiver: &Receiver) -> Command {
    let mut command = scratch.ralph("prompt p.md 1 --max-retries 0");
    command.env("RALPH_NOTIFY_WEBHOOK", receiver.url("/hush-path"));
    command
}

/// What waits to be sent.
fn outbox(scratch: &Scratch) -> Vec<PathBuf> {
    let folder = scratch.outside().join("home/state/ralph/outbox");
    let folders = fs::read_dir(folder).into_iter().flatten();
    let files = folders.flat_map(|folder| fs::read_dir(folder.unwrap().path()).unwrap());
    files.map(|file| file.unwrap().path()).collect()
}

fn started(command: &mut Command) -> std::process::Child {
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// No secret appears in any output or record.
fn assert_hushed(scratch: &Scratch, run: &Run) {
    let mut texts = vec![run.stdout.clone(), run.stderr.clone()];
    for (_, content) in scratch.snapshot() {
        texts.push(String::from_utf8_lossy(&content).into_owned());
    }
    texts.extend(outbox(scratch).iter().map(|path| fs::read_to_string(path).unwrap()));
    assert!(texts.iter().all(|text| !text.contains("hush")), "{texts:?}");
}

#[test]
fn an_end_is_posted_as_its_event_and_signed() {
    let (scratch, receiver) = (done(), Receiver::start(Answer::Status(200)));
    let mut command = telling(&scratch, &receiver);
    command.env("RALPH_NOTIFY_WEBHOOK_SECRET_ENV", "MY_SECRET").env("MY_SECRET", "hush");
    let run = Scratch::finish(&mut command);
    assert_eq!(run.code, Some(0), "{run:?}");
    let [request] = &receiver.requests()[..] else { panic!("one request") };
    assert_eq!(request.path, "/hush-path");
    let event = request.json();
    assert_eq!((&event["event"], &event["exit_reason"]), (&"loop_ended".into(), &"complete".into()));
    assert_eq!(request.headers["x-ralph-event"], "end");
    assert!(request.is_signed_with("hush") && !request.is_signed_with("other"), "{request:?}");
    assert_eq!(outbox(&scratch), [""; 0].map(PathBuf::from));
    assert_hushed(&scratch, &run);
    // The line that all targets get.
    let logs = fs::read_dir(scratch.path(".ralph/logs")).unwrap();
    let log = logs.map(|entry| entry.unwrap().path()).find(|path| path.to_string_lossy().ends_with("jsonl"));
    let log = fs::read_to_string(log.unwrap()).unwrap();
    assert_eq!(log.lines().last(), Some(request.body.as_str()));

    // Unselected events are not sent.
    let quiet = Scratch::finish(telling(&scratch, &receiver).env("RALPH_NOTIFY_ON", "failure"));
    assert_eq!((quiet.code, receiver.requests().len()), (Some(0), 1), "{quiet:?}");
}

#[test]
fn chats_get_a_short_text() {
    let receiver = Receiver::start(Answer::Status(204));
    for (format, field) in [("slack", "text"), ("discord", "content")] {
        let scratch = project("bad 1 x boom; exit 1");
        let mut command = telling(&scratch, &receiver);
        let run = Scratch::finish(command.env("RALPH_NOTIFY_WEBHOOK_FORMAT", format));
        assert_eq!(run.code, Some(4), "{run:?}");
        let request = receiver.requests().pop().unwrap();
        let json = request.json();
        let text = json[field].as_str().unwrap();
        assert!(text.contains("✗ prompt failed: 1 iteration") && text.contains("next: ralph logs"), "{text}");
        assert_eq!(request.headers["x-ralph-event"], "failure");
    }
    let scratch = done();
    Scratch::finish(telling(&scratch, &receiver).env("RALPH_NOTIFY_WEBHOOK_FORMAT", "ntfy"));
    let request = receiver.requests().pop().unwrap();
    assert!(request.body.starts_with("✓ prompt done: 1 iteration"), "{request:?}");
    assert_eq!((&*request.headers["title"], &*request.headers["priority"]), ("ralph in project", "default"));
}

#[test]
fn what_fails_is_kept_told_once_and_sent_by_the_next_loop() {
    let (scratch, receiver) = (done(), Receiver::start(Answer::Status(500)));
    let run = Scratch::finish(&mut telling(&scratch, &receiver));
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(run.stderr.matches("the webhook at 127.0.0.1 does not take notices").count(), 1, "{run:?}");
    assert_eq!(outbox(&scratch).len(), 1);
    assert_hushed(&scratch, &run);
    let failed = receiver.requests().len();

    receiver.answers(Answer::Status(200));
    let run = Scratch::finish(&mut telling(&scratch, &receiver));
    assert!(run.code == Some(0) && !run.stderr.contains("webhook"), "{run:?}");
    let requests = receiver.requests();
    assert_eq!(requests.len(), failed + 2);
    // In order, and known again.
    let id = |at: usize| &requests[at].headers["x-ralph-delivery"];
    assert!(id(failed) == id(0) && id(failed + 1) != id(0), "{requests:?}");
    assert_eq!(outbox(&scratch).len(), 0);
}

#[test]
fn what_a_killed_ralph_could_not_send_is_sent_by_the_next_one() {
    let scratch = project("[ $n = 1 ] && limit $(( $(date +%s) + 3600 )); complete");
    let receiver = Receiver::start(Answer::Status(503));
    let killed = Started::quietly(&mut telling(&scratch, &receiver));
    receiver.await_requests(1);
    kill_process(Pid::from_raw(killed.pid().cast_signed()).unwrap(), Signal::KILL).unwrap();
    killed.finish();
    assert_eq!(outbox(&scratch).len(), 1);

    receiver.answers(Answer::Status(200));
    let before = receiver.requests().len();
    // The next one would wait for the limit, which it knows.
    std::fs::remove_dir_all(scratch.outside().join("home/state/ralph/limits")).unwrap();
    let run = Scratch::finish(&mut telling(&scratch, &receiver));
    assert_eq!(run.code, Some(0), "{run:?}");
    let told = receiver.requests().split_off(before);
    let events: Vec<Value> = told.iter().map(|request| request.json()["event"].clone()).collect();
    assert_eq!(events, ["waiting", "loop_ended"]);
    assert_eq!(outbox(&scratch).len(), 0);
}

#[test]
fn a_webhook_that_never_answers_does_not_delay_a_loop() {
    let (scratch, receiver) = (done(), Receiver::start(Answer::Never));
    let run = Scratch::finish(&mut telling(&scratch, &receiver));
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.elapsed < Duration::from_secs(5) + BESIDES, "{run:?}");
    assert!(run.stderr.contains("1 notice could not be delivered by webhook in time"), "{run:?}");
    assert_eq!(outbox(&scratch).len(), 1);

    // An impatient user does not wait either.
    let (scratch, before) = (done(), receiver.requests().len());
    let child = started(&mut telling(&scratch, &receiver));
    receiver.await_requests(before + 1);
    let began = Instant::now();
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let run = finish(child);
    assert!(began.elapsed() < Duration::from_secs(4), "{run:?}");
    assert_eq!(outbox(&scratch).len(), 1);
}

#[test]
fn a_webhook_that_refuses_is_told_of_and_nothing_is_kept() {
    let (scratch, receiver) = (done(), Receiver::start(Answer::Redirect));
    for (answer, said) in
        [(Answer::Redirect, "a redirect, which is not followed"), (Answer::Status(404), "status 404")]
    {
        receiver.answers(answer);
        let run = Scratch::finish(&mut telling(&scratch, &receiver));
        assert!(run.code == Some(0) && run.stderr.contains(said), "{run:?}");
    }
    let paths: Vec<String> = receiver.requests().into_iter().map(|request| request.path).collect();
    assert_eq!((paths, outbox(&scratch).len()), (vec!["/hush-path".to_owned(); 2], 0));
    // No server listens there.
    let url = receiver.url("/");
    drop(receiver);
    let run = Scratch::finish(scratch.ralph("prompt p.md 1").env("RALPH_NOTIFY_WEBHOOK", url));
    assert!(run.code == Some(0) && run.stderr.contains("Connection refused"), "{run:?}");
}

#[test]
fn bad_settings_are_refused_without_showing_them() {
    let scratch = done();
    for (name, value, said) in [
        ("RALPH_NOTIFY_WEBHOOK", "hush.example.org/x", "this is no URL that begins with https://"),
        ("RALPH_NOTIFY_WEBHOOK_FORMAT", "teams", "`teams` is none of json, slack, discord, ntfy"),
        ("RALPH_NOTIFY_ON", "everything", "`everything` is none of end, failure, waiting, attention"),
        ("RALPH_NOTIFY_ON_ERROR", "sms", "`sms` is none of none, bell, desktop, command, webhook"),
    ] {
        let run = Scratch::finish(scratch.ralph("prompt p.md 1").env(name, value));
        assert!(run.code == Some(1) && run.stderr.contains(said), "{name}: {run:?}");
        assert!(!run.stderr.contains("hush") && run.stderr.lines().count() == 1, "{run:?}");
    }
    let mut config = scratch.ralph("config");
    config.env("RALPH_NOTIFY_WEBHOOK", "https://x/hush").env("RALPH_NOTIFY_WEBHOOK_SECRET", "hush");
    for run in [Scratch::finish(&mut config), Scratch::finish(config.arg("--json"))] {
        assert!(run.stdout.contains("(set)") && !run.stdout.contains("hush"), "{run:?}");
    }
}

#[test]
fn a_command_gets_each_event_on_stdin() {
    let scratch = done();
    let file = scratch.outside().join("told");
    let mut command = scratch.ralph("prompt p.md 1");
    let run = Scratch::finish(command.env("RALPH_NOTIFY_COMMAND", format!("cat >> {}", file.display())));
    assert!(run.code == Some(0) && !run.stderr.contains("warning"), "{run:?}");
    let event: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(event["event"], "loop_ended");

    let mut failing = scratch.ralph("prompt p.md 1");
    let run = Scratch::finish(failing.env("RALPH_NOTIFY_COMMAND", "echo no such sound >&2; exit 3"));
    let said = "the notice command has failed: exit code 3: no such sound";
    assert!(run.code == Some(0) && run.stderr.contains(said), "{run:?}");
}

#[test]
fn the_older_keys_name_who_is_told_of_a_good_end_and_of_a_failure() {
    let (scratch, receiver) = (done(), Receiver::start(Answer::Status(200)));
    let file = scratch.outside().join("told");
    let folder = scratch.outside().join("home/config/ralph");
    fs::create_dir_all(&folder).unwrap();
    let settings = format!(
        "[notify]\non = []\ncommand = 'cat >> {}'\nwebhook = '{}'\n
         [monitoring.notifications]\non_complete = 'command'\non_error = 'webhook'\n",
        file.display(),
        receiver.url("/")
    );
    fs::write(folder.join("ralph.toml"), settings).unwrap();
    let events = |text: &str| text.lines().map(|line| line.parse::<Value>().unwrap()).collect::<Vec<_>>();

    let run = scratch.run("prompt p.md 1");
    assert_eq!((run.code, receiver.requests().len()), (Some(0), 0), "{run:?}");
    scratch.agent("claude", "exit 3");
    let run = scratch.run("prompt p.md 1 --max-retries 0");
    assert_ne!(run.code, Some(0), "{run:?}");
    let posted: Vec<Value> = receiver.requests().iter().map(Request::json).collect();
    let told = events(&fs::read_to_string(&file).unwrap());
    let ends = [&told, &posted].map(|events| events.iter().map(|event| &event["event"]).collect::<Vec<_>>());
    assert_eq!(ends, [["loop_ended"], ["loop_ended"]], "{told:?} {posted:?}");
    assert_eq!(
        (&told[0]["exit_reason"], told[0]["reason"] == posted[0]["exit_reason"]),
        (&"complete".into(), false)
    );
}

#[test]
fn a_command_that_hangs_is_ended_with_all_that_it_started() {
    let scratch = done();
    let (first, second) = (scratch.outside().join("first"), scratch.outside().join("second"));
    let command = format!(
        "echo $$ > {}; trap '' TERM INT; setsid sleep 600 & echo $! > {}; wait; sleep 600",
        first.display(),
        second.display()
    );
    let child = started(scratch.ralph("prompt p.md 1").env("RALPH_NOTIFY_COMMAND", command));
    let processes = [process_in(&first), process_in(&second)];
    let run = finish(child);
    let limit = Duration::from_secs(10);
    assert!(run.code == Some(0) && run.elapsed < limit + BESIDES, "{run:?}");
    assert!(run.stderr.contains("could not be delivered") || run.stderr.contains("has failed"), "{run:?}");
    processes.iter().for_each(await_end);
}

#[test]
fn the_bell_rings_on_a_terminal_and_nowhere_else() {
    let scratch = done();
    let mut command = scratch.ralph("prompt p.md 1");
    let command = command.env("RALPH_NOTIFY_ON_COMPLETE", "bell").env("TERM", "xterm");
    let end = Terminal::start(command, 24, 80).end();
    assert_eq!((end.code, end.bytes.matches('\u{7}').count()), (Some(0), 1), "{}", end.bytes);
    let run = Scratch::finish(command);
    assert!(run.code == Some(0) && !(run.stdout + &run.stderr).contains('\u{7}'));
    let mut silent = scratch.ralph("prompt p.md 1");
    let silent = silent.env("RALPH_NOTIFY_ON_ERROR", "bell").env("TERM", "xterm");
    assert!(!Terminal::start(silent, 24, 80).end().bytes.contains('\u{7}'));
}

#[test]
fn of_many_branches_each_end_is_told_and_that_of_all() {
    let project = BranchProject::without_remote(&plan(&[("one", 1), ("feature/two", 1)]));
    let receiver = Receiver::start(Answer::Status(200));
    let mut command = project.scratch.ralph("loop build");
    command.env("RALPH_NOTIFY_WEBHOOK", receiver.url("/")).env("RALPH_NOTIFY_WEBHOOK_FORMAT", "slack");
    let run = Scratch::finish(&mut command);
    assert_eq!(run.code, Some(0), "{run:?}");
    let mut texts: Vec<String> = receiver
        .requests()
        .iter()
        .map(|request| request.json()["text"].as_str().unwrap().to_owned())
        .collect();
    assert!(texts.pop().unwrap().contains("✓ loop build: 2 of 2 done\nnext: ralph report"));
    texts.sort();
    assert!(texts.len() == 2 && texts[0].contains("✓ feature/two done") && texts[1].contains("✓ one done"));
}

#[test]
fn a_test_event_says_for_each_target_whether_it_worked() {
    let (scratch, receiver) = (Scratch::new(), Receiver::start(Answer::Status(200)));
    let run = scratch.run("notify test");
    assert!(run.code == Some(1) && run.stderr.contains("no notices are set up"), "{run:?}");

    let test = |args: &str, command: &str| {
        let mut ralph = scratch.ralph(args);
        ralph.env("RALPH_NOTIFY_COMMAND", command).env("RALPH_NOTIFY_WEBHOOK", receiver.url("/hush"));
        Scratch::finish(&mut ralph)
    };
    let run = test("notify test", "grep -q '\"event\":\"notice\"'");
    assert_eq!((run.code, run.stdout.matches('✓').count()), (Some(0), 2), "{run:?}");
    assert_eq!(receiver.requests()[0].json()["event"], "notice");

    receiver.answers(Answer::Status(500));
    let run = test("notify test --json", "exit 3");
    assert_eq!(run.code, Some(1), "{run:?}");
    let rows: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!((&rows[0]["target"], &rows[0]["error"]), (&"command".into(), &"exit code 3".into()));
    assert_eq!((&rows[1]["name"], &rows[1]["ok"]), (&"127.0.0.1".into(), &false.into()));
    assert!(!run.stdout.contains("hush"), "{run:?}");
}

#[test]
fn what_is_older_than_a_day_is_dropped_with_a_word() {
    let (scratch, receiver) = (done(), Receiver::start(Answer::Status(500)));
    Scratch::finish(&mut telling(&scratch, &receiver));
    let [path] = &outbox(&scratch)[..] else { panic!("one message") };
    let mut message: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    message["at"] = "2020-01-01T00:00:00Z".into();
    fs::write(path, message.to_string()).unwrap();
    fs::write(path.with_file_name("torn.json"), "{\"id\":").unwrap();

    receiver.answers(Answer::Status(200));
    let before = receiver.requests().len();
    let run = Scratch::finish(&mut telling(&scratch, &receiver));
    assert!(run.stderr.contains("2 notices of more than a day ago could not be sent"), "{run:?}");
    assert_eq!((receiver.requests().len(), outbox(&scratch).len()), (before + 1, 0));
}

#[test]
fn when_too_much_waits_the_oldest_are_dropped_which_is_said_once() {
    let (scratch, receiver) = (done(), Receiver::start(Answer::Status(500)));
    Scratch::finish(&mut telling(&scratch, &receiver));
    let [path] = &outbox(&scratch)[..] else { panic!("one message") };
    // They are sent in the order of their names.
    for number in 0..104 {
        fs::copy(path, path.with_file_name(format!("0-{number:03}.json"))).unwrap();
    }
    let run = Scratch::finish(&mut telling(&scratch, &receiver));
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(run.stderr.matches("more than 100 notices wait for the webhook").count(), 1, "{run:?}");
    let kept = outbox(&scratch);
    assert_eq!(kept.len(), 100);
    assert!(!path.with_file_name("0-005.json").exists() && path.with_file_name("0-006.json").exists());
    assert!(path.exists(), "{kept:?}");
}

#[test]
fn over_https_only_who_can_prove_itself_is_told() {
    let (receiver, authority) = Receiver::secure(Answer::Status(200));
    let scratch = done();
    let run = Scratch::finish(&mut telling(&scratch, &receiver));
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(run.stderr.matches("invalid peer certificate").count(), 1, "{run:?}");
    assert_eq!((receiver.requests().len(), outbox(&scratch).len()), (0, 1));

    scratch.write("authority.pem", authority);
    let mut command = telling(&scratch, &receiver);
    command.env("RALPH_NOTIFY_WEBHOOK_SECRET_ENV", "MY_SECRET").env("MY_SECRET", "hush");
    let run = Scratch::finish(command.env("SSL_CERT_FILE", scratch.path("authority.pem")));
    assert!(run.code == Some(0) && !run.stderr.contains("webhook"), "{run:?}");
    let requests = receiver.requests();
    assert!(
        requests.len() == 2 && requests.iter().all(|request| request.is_signed_with("hush")),
        "{requests:?}"
    );
    assert_eq!(outbox(&scratch).len(), 0);
}
