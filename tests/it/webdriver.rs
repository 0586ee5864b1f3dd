//! A headless Chromium, driven as its driver wants it: JSON over HTTP.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};

use crate::scratch::PATIENCE;

/// A browser with one page. It ends when this is dropped.
pub(crate) struct Browser {
    driver: Child,
    port: u16,
    session: String,
    /// Its home, which goes with it.
    home: tempfile::TempDir,
}

impl Browser {
    pub(crate) fn start() -> Self {
        let home = tempfile::tempdir().unwrap();
        let mut driver = Command::new("chromedriver");
        // The browser is in its group, and goes with it.
        let driver = driver.arg("--port=0").process_group(0).env("HOME", home.path());
        let driver = driver.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let mut driver = driver.expect("chromedriver is missing: scripts/test installs it");
        let mut lines = BufReader::new(driver.stdout.take().unwrap()).lines();
        let port = lines.by_ref().find_map(|line| {
            let line = line.unwrap();
            line.split_once("successfully on port ")?.1.trim_end_matches('.').parse().ok()
        });
        // Later output is not read, but its pipe stays open.
        std::thread::spawn(move || lines.for_each(drop));
        let mut browser = Self {
            driver,
            port: port.expect("chromedriver says on which port it listens"),
            session: String::new(),
            home,
        };
        let folder = browser.home.path().join("profile");
        let options = json!({ "args": [
            "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
            "--disable-background-networking", format!("--user-data-dir={}", folder.display()),
        ] });
        let wanted = json!({ "capabilities": { "alwaysMatch": {
            "browserName": "chrome",
            "goog:chromeOptions": options,
            "goog:loggingPrefs": { "browser": "ALL", "performance": "ALL" },
        } } });
        let session = browser.call("POST", "/session", &wanted);
        session["sessionId"].as_str().unwrap().clone_into(&mut browser.session);
        browser
    }

    /// Opens a file.
    pub(crate) fn open(&self, page: &Path) {
        self.in_session("url", &json!({ "url": format!("file://{}", page.display()) }));
    }

    /// The value of an expression in the page; promises are awaited. The page's own policy does not apply to it.
    pub(crate) fn value(&self, expression: &str) -> Value {
        let asked = json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        let answer = self.command("Runtime.evaluate", &asked);
        assert!(answer.get("exceptionDetails").is_none(), "{expression:.200}: {answer}");
        answer["result"]["value"].clone()
    }

    /// A command of Chromium's own protocol.
    pub(crate) fn command(&self, name: &str, parameters: &Value) -> Value {
        self.in_session("goog/cdp/execute", &json!({ "cmd": name, "params": parameters }))
    }

    /// How wide its window is, in CSS pixels, and which scheme the user prefers.
    pub(crate) fn look(&self, width: u32, scheme: &str) {
        let screen = json!({ "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600 });
        self.command("Emulation.setDeviceMetricsOverride", &screen);
        let scheme = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        self.command("Emulation.setEmulatedMedia", &scheme);
    }

    /// What the console said since the last time.
    pub(crate) fn console(&self) -> Vec<Value> {
        self.log("browser")
    }

    /// The addresses requested since the last call.
    pub(crate) fn requests(&self) -> Vec<String> {
        let messages = self.log("performance").into_iter().filter_map(|entry| {
            let message: Value = serde_json::from_str(entry["message"].as_str()?).ok()?;
            (message["message"]["method"] == "Network.requestWillBeSent")
                .then(|| message["message"]["params"]["request"]["url"].as_str().map(str::to_owned))?
        });
        messages.collect()
    }

    fn log(&self, kind: &str) -> Vec<Value> {
        self.in_session("se/log", &json!({ "type": kind })).as_array().unwrap().clone()
    }

    fn in_session(&self, what: &str, body: &Value) -> Value {
        self.call("POST", &format!("/session/{}/{what}", self.session), body)
    }

    fn call(&self, method: &str, path: &str, body: &Value) -> Value {
        let body = body.to_string();
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json; charset=utf-8\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(body.as_bytes()).unwrap();
        let mut answer = BufReader::new(stream);
        let (mut status, mut length) = (String::new(), None);
        answer.read_line(&mut status).unwrap();
        loop {
            let mut header = String::new();
            answer.read_line(&mut header).unwrap();
            let Some((name, value)) = header.trim().split_once(':') else { break };
            if name.eq_ignore_ascii_case("content-length") {
                length = value.trim().parse::<usize>().ok();
            }
        }
        let mut text = vec![0; length.expect("a length")];
        answer.read_exact(&mut text).unwrap();
        let answer: Value = serde_json::from_slice(&text).unwrap();
        assert!(status.contains(" 200 "), "{path}: {status}{:.2000}", answer.to_string());
        answer["value"].clone()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        if !self.session.is_empty() && !std::thread::panicking() {
            self.call("DELETE", &format!("/session/{}", self.session), &json!({}));
        }
        let _ = kill_process_group(Pid::from_child(&self.driver), Signal::KILL);
        let _ = self.driver.wait();
    }
}
