//! `ralph report --html` in a browser: it fits, it is accessible, and nothing in it runs.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::run_folders::{Log, build_end, start};
use crate::scratch::Scratch;
use crate::webdriver::Browser;

/// Text that would run in an unsafe page.
const HOSTILE: &str = "<script>document.documentElement.dataset.ran='1'</script>\"><img src=x onerror=\"document.documentElement.dataset.ran='2'\">\
'><svg onload=alert(1)></style></pre></details></title>]]><!-- --><a href=\"javascript:alert(2)\">x</a>&lt;b&gt;\
\u{0}\u{1b}[31mred\u{1b}[0m\u{202e}abc\u{2066} שלום 🦀 <base href=\"https://example.com/\"><style>*{display:none}</style>\
<link rel=stylesheet href=https://example.com/a.css><iframe src=https://example.com></iframe>";

/// Narrow as a telephone, a tablet and a desk.
const WIDTHS: [u32; 3] = [360, 800, 1_400];

/// A night of eight branches that end in different ways.
fn night(scratch: &Scratch) -> &'static str {
    const RUN: &str = "20260130T220000000000000-1";
    let mut heads = Vec::new();
    for number in 1..=8 {
        scratch.write(&format!("src/{number}.rs"), "fn line() {}\n".repeat(number * number * 3));
        scratch.git(&["add", "src"]);
        scratch.git(&["commit", "--quiet", "-m", &format!("Export of report {number}, with its tests")]);
        heads.push(scratch.git(&["rev-parse", "HEAD"]).trim().to_owned());
    }
    let head = |number: usize| Some(&*heads[number]);
    let names = ["export", "import/csv", "login", "search", "dark-mode", "api", "mobile", "docs"];
    for (place, (name, minutes)) in names.iter().zip(0_i64..).enumerate() {
        let mut log = Log::new(name);
        log.event("agent_known", &json!({ "model": "opus", "session_id": "s" }));
        log.now += 60 * minutes;
        for (iteration, number) in (0..3 + place % 3).zip(0_i64..) {
            let at = (place + iteration) % 7;
            log.begin(0, head(at));
            log.event("thought", &json!({ "text": "First I look at what is there." }));
            log.event("text_delta", &json!({ "text": "I read the plan and take " }));
            log.event("text_delta", &json!({ "text": "the next task.\n" }));
            log.event("tool", &json!({ "input": "specs/export.md", "name": "Read" }));
            log.event("tool", &json!({ "input": "cargo test --workspace", "name": "Bash" }));
            if iteration == 1 && place % 2 == 1 {
                log.end(
                    300,
                    "agent-failure",
                    Some("claude exited with code 1: API error 529: overloaded"),
                    head(at),
                );
                log.event("agent_error", &json!({ "message": "API error 529: overloaded" }));
                log.now += 120;
                log.begin(1, head(at));
            }
            if iteration == 2 && place % 3 == 0 {
                log.end(90, "usage-limit", Some("You've hit your usage limit."), head(at));
                let until = crate::run_folders::at(log.now + 5_400);
                log.event("waiting", &json!({ "reason": "usage_limit", "until": until }));
                log.now += 5_400;
                log.begin(0, head(at));
            }
            log.event(
                "text",
                &json!({ "text": "The export is built and its tests pass. Next is the import." }),
            );
            log.end(1_500 + 400 * number, "success", None, head(at + 1));
            let ok = place != 2 || iteration < 3;
            log.event(
                "validated",
                &json!({ "by": "cargo test", "ok": ok, "output": "test result: FAILED. 12 passed; 1 failed\n\n(exit code 101)" }),
            );
        }
        match place {
            2 => log.over("unproven", 4, None),
            5 => {
                log.begin(0, head(0)).end(600, "timeout", Some("no sign of life for 10m"), head(0));
                log.over("failed", 4, Some("no sign of life for 10m"))
            }
            6 => log.begin(0, head(0)),
            _ => log.over("done", 0, None),
        };
        log.write(scratch, RUN, &name.replace('/', "-"));
    }
    start(scratch, RUN, "loop build");
    build_end(
        scratch,
        RUN,
        &[
            ("export", "done", Some(0), Some("https://github.com/example/project/pull/12"), &[]),
            ("import/csv", "done", Some(0), None, &["not pushed: the remote refused it"]),
            ("login", "failed", Some(4), None, &[]),
            ("search", "done", Some(0), None, &[]),
            ("dark-mode", "done", Some(0), None, &[]),
            ("api", "failed", Some(4), None, &[]),
            ("mobile", "failed", None, None, &[]),
            ("docs", "done", Some(0), None, &[]),
            ("release", "waiting", None, None, &[]),
        ],
    );
    RUN
}

/// A run in which all foreign text is hostile.
fn hostile(scratch: &Scratch) -> &'static str {
    const RUN: &str = "20260129T220000000000000-1";
    let name = format!("{HOSTILE}{}", "n".repeat(5_000));
    let mut log = Log::new(&name);
    log.event("agent_known", &json!({ "model": HOSTILE, "session_id": HOSTILE }));
    let task = json!({ "feature": HOSTILE, "id": HOSTILE, "model": null, "title": HOSTILE });
    let tasks = json!({ "done": 0, "failed": 1, "total": 1 });
    log.event("task_started", &json!({ "task": task, "tasks": tasks, "verifies": false }));
    log.begin(0, Some("--output=/tmp/x"));
    for event in ["text", "text_delta", "thought"] {
        log.event(event, &json!({ "text": HOSTILE }));
    }
    log.event("tool", &json!({ "input": HOSTILE, "name": HOSTILE }));
    log.event("agent_error", &json!({ "message": HOSTILE }));
    log.event("notice", &json!({ "message": HOSTILE }));
    log.raw("{\"agent\":\"torn\n\u{0}\u{1f980}\n[]\n");
    log.event("text", &json!({ "text": HOSTILE }));
    log.raw(&lone_surrogate());
    log.end(-60, "agent-failure", Some(HOSTILE), Some("HEAD;x"));
    log.event("validated", &json!({ "ok": false, "output": HOSTILE }));
    log.event("waiting", &json!({ "reason": HOSTILE, "until": "2026-01-01T00:00:00+00:00" }));
    log.event("task_ended", &json!({ "outcome": "failed", "reason": HOSTILE, "task": task, "tasks": tasks }));
    log.over(HOSTILE, 4, Some(HOSTILE));
    log.write(scratch, RUN, "");
    start(scratch, RUN, HOSTILE);
    build_end(scratch, RUN, &[(&name, HOSTILE, Some(4), Some("javascript:alert(3)"), &[HOSTILE])]);
    RUN
}

/// A line that our parsers cannot turn into text.
fn lone_surrogate() -> String {
    let mut log = Log::new("l");
    log.event("text", &json!({ "text": "SURROGATE" }));
    log.lines().lines().last().unwrap().replace("SURROGATE", "\\ud800 alone") + "\n"
}

/// The page of a run, in a file.
fn page(scratch: &Scratch, run: &str) -> PathBuf {
    let file = scratch.outside().join(format!("{run}.html"));
    let written = scratch.run(&format!("report {run} --html {}", file.display()));
    assert_eq!(
        (written.code, written.stdout),
        (Some(0), format!("{}\n", file.display())),
        "{}",
        written.stderr
    );
    file
}

/// axe-core, as `scripts/axe-core` has put it beside what is built.
fn axe() -> String {
    let target = Path::new(env!("CARGO_BIN_EXE_ralph")).ancestors().nth(2).unwrap();
    let file = target.join("axe-core/axe.min.js");
    fs::read_to_string(&file)
        .unwrap_or_else(|error| panic!("{}: {error}: scripts/test installs it", file.display()))
}

#[test]
fn the_page_holds_in_a_browser() {
    let scratch = Scratch::new();
    let (night, hostile) = (page(&scratch, night(&scratch)), page(&scratch, hostile(&scratch)));
    let (browser, axe) = (Browser::start(), axe());
    // Before the first page Chromium shows one of its own.
    browser.open(Path::new("/dev/null"));
    browser.console();
    browser.requests();
    for (name, page) in [("night", &night), ("hostile", &hostile)] {
        for scheme in ["light", "dark"] {
            for width in WIDTHS {
                browser.look(width, scheme);
                browser.open(page);
                if name == "night" {
                    keep_picture(&browser, &format!("report-{width}-{scheme}.png"));
                }
                fits(&browser, &format!("{name}, {width}, {scheme}"));
            }
            everybody_can_read_it(&browser, &axe, &format!("{name}, {scheme}"));
        }
        nothing_runs(&browser, name);
        assert_eq!(browser.console(), [Value::Null; 0], "{name}");
        let asked = browser.requests();
        let address = format!("file://{}", page.display());
        assert!(
            asked.len() >= 6 && asked.iter().all(|one| *one == address || one == "data:,"),
            "{name}: {asked:?}"
        );
    }
    browser.open(&night);
    everything_is_there(&browser);
    fs::copy(&night, Path::new(env!("CARGO_TARGET_TMPDIR")).join("report.html")).unwrap();
}

/// No part of the page is wider than the window.
fn fits(browser: &Browser, what: &str) {
    browser.value("document.querySelectorAll('details').forEach(one => one.open = true)");
    let wide = browser.value(
        "document.documentElement.scrollWidth > document.documentElement.clientWidth ? \
         [...document.querySelectorAll('body *')].filter(one => !one.closest('.wide, .skip, .patterns') && \
         one.getBoundingClientRect().right > document.documentElement.clientWidth + 1)\
         .map(one => one.outerHTML.slice(0, 200)).slice(0, 5).concat('wide') : []",
    );
    assert_eq!(wide, json!([]), "{what}");
    let is_styled = browser.value("getComputedStyle(document.querySelector('section')).borderTopStyle");
    assert_eq!(is_styled, "solid", "{what}");
}

/// axe-core reports no violation.
fn everybody_can_read_it(browser: &Browser, axe: &str, what: &str) {
    browser.value(&format!("{axe};0"));
    let broken = browser.value(
        "axe.run(document, { resultTypes: ['violations'] }).then(found => found.violations.map(one => \
         [one.id, one.help, one.nodes.slice(0, 3).map(node => node.html.slice(0, 300) + node.failureSummary)]))",
    );
    assert_eq!(broken, json!([]), "{what}: {broken:#}");
}

/// No foreign text became an element or an attribute, or has run.
fn nothing_runs(browser: &Browser, what: &str) {
    assert_eq!(browser.value("document.documentElement.dataset.ran ?? 'nothing'"), "nothing", "{what}");
    let strange = browser.value(
        "[...document.querySelectorAll('script, img, iframe, object, embed, form, input, base, video, audio, \
         link:not([rel=icon]), body style, svg svg')].map(one => one.outerHTML.slice(0, 200))",
    );
    assert_eq!(strange, json!([]), "{what}");
    let attributes = browser.value(
        "[...document.querySelectorAll('*')].flatMap(one => [...one.attributes]).filter(one => \
         one.name.startsWith('on') || one.name === 'style' || one.name === 'src' || \
         (one.name === 'href' && !/^(#loop-\\d+|#main|https:\\/\\/github\\.com\\/example\\/.*|data:,)$/.test(one.value)))\
         .map(one => one.name + '=' + one.value)",
    );
    assert_eq!(attributes, json!([]), "{what}");
    let invisible = browser.value(
        "(document.documentElement.outerHTML.match(/[\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\u202a-\\u202e\\u2066-\\u2069]/g) ?? []).length",
    );
    assert_eq!(invisible, 0, "{what}");
    if what == "hostile" {
        let shown = browser.value("document.body.textContent");
        let shown = shown.as_str().unwrap();
        for piece in [
            "<script>document",
            "\"><img src=x onerror",
            "</style></pre></details></title>]]><!--",
            "&lt;b&gt;",
        ] {
            assert!(shown.matches(piece).count() > 10, "{piece}");
        }
        assert!(shown.matches("␀red\\u{202e}abc\\u{2066} שלום 🦀").count() > 3, "{shown}");
    }
}

/// Charts, landmarks, headings, transcripts.
fn everything_is_there(browser: &Browser) {
    let count = |selector: &str| {
        browser.value(&format!("document.querySelectorAll('{selector}').length")).as_u64().unwrap()
    };
    assert_eq!(count("main, header, footer"), 3);
    assert_eq!(count(".lanes svg[role=img][aria-label]"), 8);
    assert_eq!(count("figure svg[role=img][aria-label]"), 2);
    assert!(
        count(".lanes rect.good") > 10 && count(".lanes rect.failed") > 3 && count(".lanes rect.wait") > 2
    );
    assert!(count("figure rect.cost") > 20 && count("figure rect.in") == count("figure rect.out"));
    assert_eq!(count(".rows tbody tr"), 9);
    assert_eq!(count("section.loop"), 9);
    assert!(count("details.transcript") > 20 && count(".size rect.plus") > 10);
    let heading = browser.value("document.querySelector('h1').textContent");
    assert!(heading.as_str().unwrap().ends_with(": ralph loop build"), "{heading}");
    // What needs a person comes first, and each loop says what its end rests on.
    assert_eq!(browser.value("document.querySelector('main > *').className"), "needs");
    let needs = browser.value("[...document.querySelectorAll('.needs li > a')].map(one => one.textContent)");
    assert!(needs.as_array().unwrap().contains(&json!("login")), "{needs}");
    let refuted = browser.value(
        "[...document.querySelectorAll('section.loop')].filter(one => one.querySelector('.proof.failed'))\
         .map(one => one.querySelector('h2').textContent)",
    );
    assert_eq!(refuted, json!(["login ? unproven"]), "{refuted}");
    let last = "[...document.querySelectorAll('.lane')].find(one => one.textContent.includes('login'))\
                .querySelector('svg > rect.unproven') !== null";
    assert_eq!(browser.value(last), json!(true), "a refuted COMPLETE has no green bar");
    // With the keyboard: the first stop skips the head, and is visible.
    for kind in ["keyDown", "keyUp"] {
        let tab = json!({ "type": kind, "key": "Tab", "code": "Tab", "windowsVirtualKeyCode": 9 });
        browser.command("Input.dispatchKeyEvent", &tab);
    }
    let skip = browser.value(
        "document.activeElement.className + ' ' + (document.activeElement.getBoundingClientRect().left >= 0)",
    );
    assert_eq!(skip, "skip true");
}

/// Keeps a picture of the page beside the build output.
fn keep_picture(browser: &Browser, name: &str) {
    let picture =
        browser.command("Page.captureScreenshot", &json!({ "captureBeyondViewport": true, "format": "png" }));
    let bytes = from_base64(picture["data"].as_str().unwrap());
    fs::write(Path::new(env!("CARGO_TARGET_TMPDIR")).join(name), bytes).unwrap();
}

fn from_base64(text: &str) -> Vec<u8> {
    let digit = |byte: u8| match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let digits: Vec<u32> =
        text.bytes().filter(|byte| *byte != b'=').map(|byte| u32::from(digit(byte))).collect();
    let group = |digits: &[u32]| {
        let number = digits.iter().fold(0, |number, digit| number << 6 | digit) << (6 * (4 - digits.len()));
        (0..digits.len() - 1).map(move |at| number.to_be_bytes()[at + 1]).collect::<Vec<_>>()
    };
    digits.chunks(4).flat_map(group).collect()
}
