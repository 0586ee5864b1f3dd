//! A scratch repository and a recorded performance, for the tests of the scripted agent.

use super::{End, Place, Stage};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// A new git repository without any identity of its own.
pub(super) struct Scratch {
    pub(super) place: Place,
    _folder: tempfile::TempDir,
}

/// What one performance printed.
pub(super) struct Performance {
    pub(super) code: i32,
    pub(super) events: Vec<Value>,
}

impl Scratch {
    pub(super) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        git(folder.path(), &["init", "--quiet"]);
        let place = Place {
            root: folder.path().to_owned(),
            mode: "plan".into(),
            iteration: 1,
            home: ".ralph".into(),
            specs: "specs".into(),
            plans_branches: false,
            branch: None,
            pace: Duration::ZERO,
        };
        Self { place, _folder: folder }
    }

    pub(super) fn write(&self, path: &str, text: &str) {
        self.place.write(Path::new(path), text).unwrap();
    }

    pub(super) fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.path(path)).unwrap()
    }

    pub(super) fn path(&self, path: &str) -> PathBuf {
        self.place.root.join(path)
    }

    /// Runs the built-in agent in `mode`.
    pub(super) fn act(&mut self, mode: &str) -> Performance {
        mode.clone_into(&mut self.place.mode);
        perform(|stage| super::builtin::act(&self.place, b"Do your work.\n", stage))
    }

    /// Plays `script` as iteration `iteration`.
    pub(super) fn play(&mut self, script: &str, iteration: usize) -> Performance {
        self.place.iteration = iteration;
        self.write("play.script", script);
        perform(|stage| super::played::act(&self.place, Path::new("play.script"), stage))
    }
}

fn perform(act: impl FnOnce(&mut Stage<&mut Vec<u8>>) -> anyhow::Result<End>) -> Performance {
    let mut out = Vec::new();
    let code = Stage::new(&mut out, Duration::ZERO, b"prompt").perform(act);
    let events = out.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    Performance { code, events: events.map(|line| serde_json::from_slice(line).unwrap()).collect() }
}

impl Performance {
    /// The assistant's text, one event per line.
    pub(super) fn said(&self) -> String {
        let texts = self.events.iter().filter(|event| event["type"] == "text");
        texts.filter_map(|event| event["text"].as_str()).collect::<Vec<_>>().join("\n")
    }

    pub(super) fn result(&self) -> &Value {
        self.events.last().unwrap()
    }

    pub(super) fn completes(&self) -> bool {
        self.said().lines().any(|line| line == "<promise>COMPLETE</promise>")
    }
}

/// Runs git in `root` and returns what it printed.
pub(super) fn git(root: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git").args(arguments).current_dir(root).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}
