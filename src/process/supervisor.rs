//! The supervisor process: `ralph __supervise [--pane FOLDER]`.
//!
//! One small single-threaded process stands between ralph and each program it starts. It leads its own session (a
//! Ctrl+C at the terminal does not reach the program) and is a *subreaper*: whatever the program leaves behind, in
//! any session, becomes a child of the supervisor and is ended and reaped here. With the portable backend there is no such
//! thing, and the supervisor [remembers](crate::platform::family) what it has seen. The program gets the run's mark in
//! its environment; the supervisor itself does not carry it, so that no sweep ends it before its work is done.
//!
//! Its stdin is the control socket. A [`Launch`](super::launch::Launch) comes in on it with the program's stdin,
//! stdout and stderr as passed descriptors, so that the program's bytes go straight to ralph; then one-byte orders;
//! its end of file means that ralph has died. Orders and replies are the constants and [`SupervisorNote`] below. The
//! ladder is INT, TERM, KILL; after it, or when the program has ended by itself, every process still below the
//! supervisor gets TERM and, after the same wait, KILL. Then the supervisor waits for the next launch: a new process
//! for each program would take longer than everything else that ralph does for it.
//!
//! With `--pane` tmux starts it, as the *wrapper* of one program, on a terminal, and its [monitors](super::pane) find
//! it through FOLDER. FOLDER has the launch, and any number of monitors connect there; a monitor that leaves is no
//! order, because the program outlives its monitor. The program gets the terminal as stdin, stdout and stderr and is
//! in its foreground, so that a Ctrl+C typed there reaches only the program. The wrapper stays in the terminal's
//! session and keeps the descriptors open: tmux closes a pane, with what still runs in it, when all of them are
//! closed. A HUP (the pane was closed, or tmux was killed) is an order to stop. It also makes what the program's
//! [walls](super::walls) need, and removes it: nothing else lives as long as the program. Their proxy has threads of its own there.

mod audience;
mod channel;
mod guard;
mod order;
mod terminal;

use std::collections::HashSet;
use std::ffi::OsString;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, kill_process, kill_process_group, wait};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM, SIGTSTP, SIGTTIN, SIGTTOU};

use super::ladder::Ladder;
use super::launch::{Launch, Received};
use super::note::SupervisorNote;
use super::pane_folder::PaneFolder;
use super::walls::Inside;
use crate::platform::backend::{self, is_portable};
use crate::platform::calls::{adopt, command_line, signal_at_parents_death};
use crate::platform::family::{Family, send};
use crate::platform::mark::{self, Mark};
use crate::platform::stat::Stat;
use audience::Audience;
use channel::Channel;
use guard::Guard;
use order::Order;

/// The hidden verb that starts a supervisor.
pub const VERB: &str = "__supervise";

/// The option before the folder of a pane.
pub(super) const PANE: &str = "--pane";
/// The option of a [guard].
const GUARD: &str = "--guard";

/// Order: climb the ladder, starting with INT.
pub(super) const ORDER_STOP: u8 = b's';
/// Order: KILL everything now.
pub(super) const ORDER_KILL: u8 = b'k';

/// How often the subtree is searched for new processes while it is being ended.
const TICK: Duration = Duration::from_millis(20);
/// How often the portable backend looks for new processes while the program runs.
const LOOK: Duration = Duration::from_millis(50);
/// So many hosts that a program was kept from are noted at most.
const MOST_AWAY: usize = 20;
/// How long a change of a repository goes on after ralph has died: a git that is interrupted while it creates a lock
/// leaves the lock behind.
const FINISHING: Duration = Duration::from_secs(1);

/// The stages from a running program to nothing left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Watch,
    Finishing { until: Instant },
    Interrupted { until: Instant },
    Terminated { until: Instant },
    Killed { since: Instant },
    Sweep { since: Instant },
}

/// Entry point of the hidden verb. Returns the process exit code, which is not used: results are [`SupervisorNote`]s.
#[must_use]
pub fn main(argv: &[OsString]) -> i32 {
    let served = match argv {
        [flag, ..] if flag == GUARD => return guard::main(),
        [flag, folder, ..] if flag == PANE => serve_pane(folder.as_ref()).inspect_err(|error| {
            let _ = writeln!(std::io::stderr(), "error: ralph cannot run its program here: {error}");
        }),
        // Its stderr is not read.
        _ => serve(),
    };
    i32::from(served.is_err())
}

/// Runs one program after the other, until ralph has died, a signal asks to stop, or a child is left.
fn serve() -> std::io::Result<()> {
    let control = UnixStream::from(std::io::stdin().as_fd().try_clone_to_owned()?);
    let mut post = Post::new(Channel::Ralph { socket: control.try_clone()?, is_gone: false })?;
    let null = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null")?;
    let _ = rustix::stdio::dup2_stdin(&null);
    terminal::leave();
    if is_portable() {
        // Not earlier: no session can begin that has the number of a group. Without it we serve all the same.
        post.guard = Guard::start().ok();
    }
    // A Ctrl+C before leaving the group was meant for ralph.
    post.asked_to_stop.store(false, Ordering::Relaxed);
    while let Some(received) = post.next(&control)? {
        control.set_nonblocking(true)?;
        // Processes that could not be ended, or were spared, are released when we exit.
        if !Supervisor::start(&mut post, received, None)?.run() {
            break;
        }
    }
    Ok(())
}

/// Runs the program of a pane.
fn serve_pane(folder: &Path) -> std::io::Result<()> {
    let folder = PaneFolder::open(folder)?;
    let received = Received::from_message(&folder.take_launch()?)?;
    backend::settle(received.launch.variable(backend::VARIABLE).as_deref());
    let (received, inside) = received.enclosed()?;
    let mut post = Post::new(Channel::Pane(Audience::new(folder)?))?;
    // tmux (3.3a) starts us with these ignored; a program that ignores them gets an error instead of a stop. The
    // program starts with the default for signals that we handle.
    for signal in [SIGTSTP, SIGTTIN, SIGTTOU] {
        signal_hook::flag::register(signal, Arc::default())?;
    }
    Supervisor::start(&mut post, received, inside.as_ref())?.run();
    drop(inside);
    Ok(())
}

/// What a supervisor needs before it has a program.
struct Post {
    channel: Channel,
    wake: UnixStream,
    asked_to_stop: Arc<AtomicBool>,
    guard: Option<Guard>,
}

impl Post {
    fn new(channel: Channel) -> std::io::Result<Self> {
        // Before a program starts, so that its end cannot be missed.
        let (wake, asked_to_stop) = hear_signals()?;
        if !is_portable() {
            // While we are stopped, only the kernel can tell us that ralph (or tmux) has died.
            signal_at_parents_death(Signal::CONT)?;
            adopt(true)?;
        }
        mark::drop_own();
        Ok(Self { channel, wake, asked_to_stop, guard: None })
    }

    fn next(&mut self, control: &UnixStream) -> std::io::Result<Option<Received>> {
        loop {
            let mut descriptors =
                [PollFd::new(control, PollFlags::IN), PollFd::new(&self.wake, PollFlags::IN)];
            let _ = poll(&mut descriptors, None);
            let comes = !descriptors[0].revents().is_empty();
            let _ = self.wake.read(&mut [0; 64]);
            if self.asked_to_stop.load(Ordering::Relaxed) {
                return Ok(None);
            }
            if comes {
                control.set_nonblocking(false)?;
                return Received::from(control);
            }
        }
    }
}

/// One program and its supervision.
struct Supervisor<'a> {
    post: &'a mut Post,
    launch: Launch,
    /// What its walls need, where they are ours to keep.
    inside: Option<&'a Inside>,
    program: Pid,
    running: bool,
    /// The options for reaping children: on a terminal, stopped children are reported, too; elsewhere, no terminal
    /// stops them.
    reaping: WaitOptions,
    stage: Stage,
    /// Skip the ladder: the sweep starts with KILL.
    at_once: bool,
    /// The processes that got TERM.
    told: HashSet<u32>,
    /// What is to be ended.
    family: Family,
    mark: Mark,
}

impl<'a> Supervisor<'a> {
    fn start(post: &'a mut Post, received: Received, inside: Option<&'a Inside>) -> std::io::Result<Self> {
        let on_terminal = matches!(post.channel, Channel::Pane(_));
        let guard = post.guard.as_ref().map(|guard| number(guard.pid()));
        let (launch, mut command) = if on_terminal { received.into_pane() } else { received.into_command() };
        command.process_group(0);
        let mark = if on_terminal { Mark::of_pane(&launch.mark) } else { Mark::of_run(&launch.mark) };
        let spawned = mark.spawn(&mut command);
        // Other programs of the run are those of other supervisors.
        let own = if on_terminal { mark } else { mark.below(std::process::id()) };
        // Closes our copies of the program's pipes.
        drop(command);
        // Nothing may fail from here on, because the program would be left behind.
        let program = match spawned {
            Ok(child) => Pid::from_child(&child),
            Err(error) => {
                post.channel.report(&SupervisorNote::Refused(error.raw_os_error().unwrap_or_default()));
                return Err(error);
            }
        };
        if on_terminal {
            terminal::hand_over(program);
        }
        post.channel.report(&SupervisorNote::Started(number(program)));
        let stops = if on_terminal { WaitOptions::UNTRACED } else { WaitOptions::empty() };
        Ok(Self {
            post,
            launch,
            inside,
            program,
            running: true,
            reaping: WaitOptions::NOHANG | stops,
            stage: Stage::Watch,
            at_once: false,
            told: HashSet::new(),
            family: Family::below(std::process::id(), Some(own.clone())).and_of_its_session().without(guard),
            mark: own,
        })
    }

    /// Returns when nothing is left of the program but processes that cannot be killed or are spared; `true` if there
    /// are none.
    fn run(&mut self) -> bool {
        let left = loop {
            let children_left = self.reap();
            if !self.running && self.is_over(children_left) {
                break 0;
            }
            self.obey();
            if let Some(left) = self.advance(Instant::now()) {
                break left;
            }
            self.wait();
        };
        let is_alone = if is_portable() { self.family.is_gone() } else { !self.reap() };
        if is_alone {
            self.mark.remove_files();
        }
        let turned_away = self.inside.map(Inside::turned_away).unwrap_or_default();
        for (host, times) in turned_away.hosts.into_iter().take(MOST_AWAY) {
            self.post.channel.report(&SupervisorNote::TurnedAway(times, host));
        }
        self.post.channel.report(&if left == 0 && !is_alone {
            // They are daemons.
            SupervisorNote::Spared
        } else {
            SupervisorNote::Gone(left)
        });
        is_alone
    }

    /// Whether nothing is left that has to be ended.
    fn is_over(&mut self, children_left: bool) -> bool {
        // What is left need not be a child of ours with the portable backend, and a look can miss it.
        if is_portable() && !self.launch.spares_daemons {
            return self.family.is_gone();
        }
        !is_portable() && !children_left || self.launch.spares_daemons && self.left().is_empty()
    }

    /// Reaps every child that has ended; returns whether any is left.
    fn reap(&mut self) -> bool {
        loop {
            match wait(self.reaping) {
                Ok(Some((pid, status))) if pid == self.program && status.stopped() => {
                    self.go_on(status.stopping_signal());
                }
                Ok(Some((pid, status))) if pid == self.program => {
                    self.running = false;
                    let note = match status.terminating_signal() {
                        Some(signal) => SupervisorNote::Signaled(signal),
                        None => SupervisorNote::Exited(status.exit_status().unwrap_or_default()),
                    };
                    self.post.channel.report(&note);
                }
                Ok(Some((pid, status))) => self.renew_guard(pid, status),
                Err(rustix::io::Errno::INTR) => {}
                Ok(None) => return true,
                Err(_) => return false,
            }
        }
    }

    /// Starts another guard if it is the one that was reaped, and was killed. One that ends by itself has seen that
    /// ralph has died.
    fn renew_guard(&mut self, reaped: Pid, status: WaitStatus) {
        if let Some(guard) = self.post.guard.take_if(|guard| guard.pid() == reaped && !status.stopped()) {
            guard.forget();
            if status.signaled() {
                self.post.guard = Guard::start().ok();
            }
            self.family.replace_apart(number(reaped), self.post.guard.as_ref().map(|new| number(new.pid())));
        }
    }

    /// Continues the program after its terminal has stopped it. Without us its group would have no parent in the
    /// terminal's session, and the kernel would not let the terminal stop it: there is no shell to continue it. A
    /// STOP signal was sent on purpose.
    fn go_on(&self, signal: Option<i32>) {
        // In the background it would be stopped again at once.
        let has_terminal = || terminal::is_foreground(self.program);
        if signal == Some(SIGTSTP) || matches!(signal, Some(SIGTTIN | SIGTTOU)) && has_terminal() {
            self.signal_program(Signal::CONT);
        }
    }

    /// Reads orders. A signal that was meant for ralph is one as well.
    fn obey(&mut self) {
        let signalled = || self.post.asked_to_stop.load(Ordering::Relaxed).then_some(Order::Stop);
        match self.post.channel.order().or_else(signalled) {
            Some(Order::Kill) if !self.at_once => {
                self.at_once = true;
                self.kill_all();
                self.stage = Stage::Killed { since: Instant::now() };
            }
            Some(Order::Stop) if self.stage == Stage::Watch => {
                let now = Instant::now();
                if self.launch.spares_daemons && self.post.channel.is_gone() {
                    self.stage = Stage::Finishing { until: now + FINISHING };
                } else {
                    self.interrupt(now);
                }
            }
            _ => {}
        }
    }

    fn interrupt(&mut self, now: Instant) {
        self.signal_program(Signal::INT);
        self.stage = Stage::Interrupted { until: now + self.launch.ladder.interrupt };
    }

    /// Moves on to the next stage when it is time. `Some(n)`: given up with n processes left.
    fn advance(&mut self, now: Instant) -> Option<u32> {
        match self.stage {
            Stage::Sweep { since } => return self.sweep(now.duration_since(since)),
            _ if !self.running => {
                self.stage = Stage::Sweep { since: now };
                return self.sweep(Duration::ZERO);
            }
            Stage::Finishing { until } if now >= until => self.interrupt(now),
            Stage::Interrupted { until } if now >= until => {
                self.signal_program(Signal::TERM);
                self.stage = Stage::Terminated { until: now + self.launch.ladder.terminate };
            }
            Stage::Terminated { until } if now >= until => {
                self.signal_program(Signal::KILL);
                self.stage = Stage::Killed { since: now };
            }
            Stage::Killed { since } if now.duration_since(since) >= Ladder::AFTER_KILL => {
                return Some(count(&self.left()));
            }
            _ => {}
        }
        None
    }

    /// Ends what the program left behind: TERM to each process once, KILL to all after the same wait.
    fn sweep(&mut self, spent: Duration) -> Option<u32> {
        if self.at_once || spent >= self.launch.ladder.terminate {
            self.kill_all();
        } else {
            for stat in self.left() {
                if self.told.insert(stat.pid) {
                    send(stat.pid, Signal::TERM);
                    // A stopped process handles TERM only once it is continued.
                    send(stat.pid, Signal::CONT);
                }
            }
        }
        (spent >= self.launch.ladder.terminate + Ladder::AFTER_KILL).then(|| count(&self.left()))
    }

    /// The processes to end.
    fn left(&mut self) -> Vec<Stat> {
        let mut left = self.family.look();
        left.retain(|stat| !spares(&self.launch, stat));
        left
    }

    /// Sends KILL to them.
    fn kill_all(&mut self) {
        self.family.kill(|stat| spares(&self.launch, stat));
    }

    /// Signals the program's process group: a wrapper script and what it runs in the foreground are one program.
    fn signal_program(&self, signal: Signal) {
        if self.running && kill_process_group(self.program, signal).is_err() {
            // It has moved to another group.
            let _ = kill_process(self.program, signal);
        }
    }

    /// Sleeps until a child ends, an order comes, or the stage has a deadline.
    fn wait(&mut self) {
        let timeout = match self.stage {
            Stage::Watch => None,
            Stage::Finishing { until } | Stage::Interrupted { until } | Stage::Terminated { until } => {
                Some(until.saturating_duration_since(Instant::now()))
            }
            Stage::Killed { .. } | Stage::Sweep { .. } => Some(TICK),
        };
        let timeout =
            if is_portable() { Some(timeout.map_or(LOOK, |timeout| timeout.min(LOOK))) } else { timeout };
        let timeout = timeout.and_then(|duration| Timespec::try_from(duration).ok());
        let mut descriptors = self.post.channel.descriptors();
        descriptors.push(PollFd::new(&self.post.wake, PollFlags::IN));
        // After an interrupted or failed poll, the loop simply checks everything again.
        let _ = poll(&mut descriptors, timeout.as_ref());
        drop(descriptors);
        let _ = self.post.wake.read(&mut [0; 64]);
        if is_portable() && !matches!(self.stage, Stage::Sweep { .. }) {
            // What is seen now is known later.
            self.family.visit(|_| ());
        }
    }
}

/// The socket that signals wake, and whether a signal was meant for ralph: one that reaches us (`pkill ralph`) ends
/// the program properly instead of orphaning it.
fn hear_signals() -> std::io::Result<(UnixStream, Arc<AtomicBool>)> {
    let (wake, writer) = UnixStream::pair()?;
    wake.set_nonblocking(true)?;
    let asked_to_stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGTERM, SIGINT, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&asked_to_stop))?;
        signal_hook::low_level::pipe::register(signal, writer.try_clone()?)?;
    }
    signal_hook::low_level::pipe::register(SIGCHLD, writer)?;
    Ok((wake, asked_to_stop))
}

/// Whether a process is a daemon that is the user's. Git's own credential cache has no session of its own.
fn spares(launch: &Launch, stat: &Stat) -> bool {
    let is_in_session = || Stat::read(std::process::id()).is_some_and(|ours| ours.session == stat.session);
    let keeps_passwords = || {
        let line = command_line(stat.pid);
        line.split(|byte| *byte == 0).any(|word| word == b"credential-cache--daemon")
    };
    launch.spares_daemons && (!is_in_session() || keeps_passwords())
}

fn number(pid: Pid) -> u32 {
    pid.as_raw_nonzero().get().unsigned_abs()
}

fn count(processes: &[Stat]) -> u32 {
    u32::try_from(processes.len()).unwrap_or(u32::MAX)
}
