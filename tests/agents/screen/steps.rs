//! What follows a prompt.

use super::keys::Key;
use super::scene::{Manner, Step};
use super::{Ended, Screen, TICK};
use anyhow::{Context as _, ensure};
use rustix::process::{Signal, getpid, kill_process};
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

impl Screen<'_> {
    /// All steps after the input line, unless it is interrupted.
    pub(super) fn play(&mut self, steps: &[Step], prompt: &str) -> anyhow::Result<Ended> {
        self.spins = Some(Instant::now());
        self.draw()?;
        let ended = self.play_all(steps, prompt);
        self.spins = None;
        ended
    }

    fn play_all(&mut self, steps: &[Step], prompt: &str) -> anyhow::Result<Ended> {
        for step in steps {
            match step {
                Step::Exit(code) => return Ok(Ended::Break(*code)),
                Step::Signal(signal) => die(*signal)?,
                step => {
                    if !self.step(step, prompt)? {
                        self.canvas.say("  ⎿ Interrupted\n\n")?;
                        break;
                    }
                }
            }
            self.draw()?;
        }
        Ok(Ended::Continue(()))
    }

    /// One step; `false`: it was interrupted.
    fn step(&mut self, step: &Step, prompt: &str) -> anyhow::Result<bool> {
        match step {
            Step::Spin(seconds) => return self.pass(Duration::from_secs(*seconds), true),
            Step::Silent(seconds) => return self.pass(Duration::from_secs(*seconds), false),
            Step::Burn(seconds) => {
                let mut child = shell("while :; do :; done")?;
                let passed = self.pass(Duration::from_secs(*seconds), false);
                child.kill().and_then(|()| child.wait()).context("cannot end my child")?;
                return passed;
            }
            Step::Loud(lines) => {
                for line in 0..*lines {
                    self.canvas.say(&format!("line {line} of {lines} that say nothing"))?;
                }
            }
            Step::Until(manner, file) => return self.wait_for(file, *manner),
            Step::Say(words) => self.canvas.say(&format!("● {words}\n\n"))?,
            Step::Keep(file) => {
                let kept = OpenOptions::new().append(true).create(true).open(file);
                let kept = kept.and_then(|mut kept| writeln!(kept, "{prompt}"));
                kept.with_context(|| format!("cannot write {file}"))?;
            }
            Step::Commit(words) => {
                std::fs::write("made.txt", format!("{words}\n"))?;
                self.canvas.say("● bash(git commit)\n\n")?;
                for args in [&["add", "made.txt"][..], &["commit", "--quiet", "--message", words]] {
                    ensure!(Command::new("git").args(args).status()?.success(), "git {args:?} has failed");
                }
            }
            Step::Child => {
                let child = shell("trap '' INT TERM HUP; while :; do sleep 60; done")?;
                self.canvas.say(&format!("● child {}\n\n", child.id()))?;
            }
            Step::Play(play) => {
                let attempt = self.attempt;
                attempt.play(play, prompt, |event| self.event(event))?;
            }
            // Those before the input line, and the ends.
            Step::Ask(_)
            | Step::Slow(_)
            | Step::Gone(_)
            | Step::Alternate
            | Step::Plain
            | Step::Exit(_)
            | Step::Signal(_) => {}
        }
        Ok(true)
    }

    /// Waits until there is this file; `false`: it was interrupted.
    fn wait_for(&mut self, file: &str, manner: Manner) -> anyhow::Result<bool> {
        let file = Path::new(file);
        let is_loud = manner == Manner::Loud;
        let look = if is_loud { Duration::from_millis(1) } else { TICK };
        while !file.exists() {
            if is_loud {
                self.canvas.say(&"one more line that says nothing\n".repeat(100))?;
            }
            if !self.pass(look, manner == Manner::Spin)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Lets this time pass, with or without a spinner; `false`: it was interrupted. What is typed meanwhile stays
    /// in the input line.
    fn pass(&mut self, time: Duration, spins: bool) -> anyhow::Result<bool> {
        let until = Instant::now() + time;
        while let Some(left) = until.checked_duration_since(Instant::now()) {
            if spins {
                self.draw()?;
            }
            for key in self.hear(if spins { left.min(TICK) } else { left })? {
                match key {
                    Key::Interrupt | Key::Escape => return Ok(false),
                    key => self.edit(key),
                }
            }
        }
        Ok(true)
    }
}

fn shell(script: &str) -> anyhow::Result<Child> {
    let mut command = Command::new("sh");
    command.args(["-c", script]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().context("cannot start sh")
}

/// The end by a signal that is not caught.
fn die(signal: i32) -> anyhow::Result<()> {
    let signal = Signal::from_named_raw(signal).with_context(|| format!("there is no signal {signal}"))?;
    kill_process(getpid(), signal).context("cannot send myself a signal")
}
