//! The processes of an agent's tools: all below it, except the agent's own.

use std::time::{Duration, Instant};

use crate::platform::calls::written;
use crate::platform::sockets;
use crate::platform::stat::{self, Stat};
use crate::platform::tree;

/// How long a server must be idle before it counts as left behind.
pub(super) const SERVER_IDLE: Duration = Duration::from_mins(1);
/// How often servers are checked.
pub(super) const SERVER_LOOK: Duration = Duration::from_secs(5);
/// A server that uses less than this share of a core is idle.
const IDLE: f64 = 0.01;

/// The tools of one agent.
#[derive(Debug)]
pub(super) struct Tools {
    supervisor: u32,
    agent: u32,
    /// When the agent wrote its first output, in clock ticks since the boot. What it had started by then is its own: launchers,
    /// language servers, servers of its protocol.
    spoke_at: Option<u64>,
    /// Since when only servers are left, and their state then.
    idle: Option<(Instant, Standing)>,
}

/// The state of servers: what would change if one of them did anything.
#[derive(Debug, Clone, PartialEq)]
struct Standing {
    processes: Vec<(u32, u64)>,
    ports: Vec<u16>,
    written: u64,
    ticks: u64,
}

impl Tools {
    pub(super) fn new(supervisor: u32, agent: u32) -> Self {
        Self { supervisor, agent, spoke_at: None, idle: None }
    }

    /// The agent wrote its first output: all that it has started so far is its own.
    pub(super) fn agent_speaks(&mut self) {
        self.spoke_at.get_or_insert_with(stat::ticks_now);
    }

    /// The running tools, each with the processes that it has started; an orphan counts as a tool.
    fn trees(&self) -> Vec<Vec<Stat>> {
        let spoke_at = self.spoke_at.unwrap_or_default();
        let mut trees: Vec<Vec<Stat>> = Vec::new();
        // Parents come before their children.
        for stat in tree::descendants(self.supervisor) {
            if stat.pid == self.agent || stat.start_ticks <= spoke_at {
                continue;
            }
            match trees.iter_mut().find(|tree| tree.iter().any(|known| known.pid == stat.ppid)) {
                Some(tree) => tree.push(stat),
                None => trees.push(vec![stat]),
            }
        }
        trees
    }

    /// Whether a tool runs that works or waits for something, rather than a server that waits for clients.
    pub(super) fn any_but_servers(&self) -> bool {
        self.trees().iter().any(|tree| !is_server(tree))
    }

    /// The ports of the running tools, if these are only servers, at least `count`, that were idle for [`SERVER_IDLE`]: no CPU
    /// time, no output, no connection. To be called every [`SERVER_LOOK`].
    pub(super) fn idle_servers(&mut self, count: usize, now: Instant) -> Option<Vec<u16>> {
        let Some(standing) = self.standing(count) else {
            self.idle = None;
            return None;
        };
        match &self.idle {
            Some((since, before)) if before.is_idle_until(&standing, now.duration_since(*since)) => {
                (now.duration_since(*since) >= SERVER_IDLE).then_some(standing.ports)
            }
            _ => {
                self.idle = Some((now, standing));
                None
            }
        }
    }

    /// The state of the tools, if they are that many servers without a client.
    fn standing(&self, count: usize) -> Option<Standing> {
        let trees = self.trees();
        if trees.is_empty() || trees.len() < count {
            return None;
        }
        let mut ports = Vec::new();
        for tree in &trees {
            let sockets = sockets::of(&pids(tree));
            if !is_server(tree) || sockets.has_connection {
                return None;
            }
            ports.extend(sockets.ports);
        }
        let all = trees.iter().flatten();
        Some(Standing {
            processes: all.clone().map(identity).collect(),
            ports,
            written: all.clone().map(|stat| written(stat.pid)).sum(),
            ticks: all.map(|stat| stat.own_ticks + stat.reaped_ticks).sum(),
        })
    }
}

impl Standing {
    /// Whether the servers were idle between this state and that one, `span` later.
    fn is_idle_until(&self, later: &Self, span: Duration) -> bool {
        let used = later.ticks.saturating_sub(self.ticks);
        #[expect(clippy::cast_precision_loss, reason = "clock ticks of a process tree stay far below 2^52")]
        let seconds = used as f64 / rustix::param::clock_ticks_per_second().max(1) as f64;
        let same = Self { ticks: self.ticks, ..later.clone() } == *self;
        // Any process may get a tick or two.
        same && seconds <= (IDLE * span.as_secs_f64()).max(0.05)
    }
}

/// Whether a tool is only a server: each of its processes listens, or has started one that does, or was started by one. Work
/// beside a server is waited for.
fn is_server(tree: &[Stat]) -> bool {
    let listens = |stat: &Stat| !sockets::of(&[stat.pid]).ports.is_empty();
    let listeners: Vec<&Stat> = tree.iter().filter(|stat| listens(stat)).collect();
    let leads_to_one = |stat: &Stat| {
        listeners.iter().any(|listener| line_up(tree, listener).any(|above| above.pid == stat.pid))
    };
    let comes_from_one = |stat: &Stat| {
        line_up(tree, stat).any(|above| listeners.iter().any(|listener| listener.pid == above.pid))
    };
    !listeners.is_empty() && tree.iter().all(|stat| leads_to_one(stat) || comes_from_one(stat))
}

/// A process and its ancestors in the same tree.
fn line_up<'a>(tree: &'a [Stat], stat: &'a Stat) -> impl Iterator<Item = &'a Stat> {
    std::iter::successors(Some(stat), |stat| tree.iter().find(|other| other.pid == stat.ppid))
}

/// The identity of a process, which no later one with its pid has.
fn identity(stat: &Stat) -> (u32, u64) {
    (stat.pid, stat.start_ticks)
}

fn pids(tree: &[Stat]) -> Vec<u32> {
    tree.iter().map(|stat| stat.pid).collect()
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::net::TcpListener;
    use std::process::{Child, Command, Stdio};

    use super::*;

    /// A server of the tests below, as a process of its own: prints its port, then works a moment for each line it gets.
    #[test]
    fn serve_until_killed() {
        if !std::env::args_os().any(|word| word == "__serve") {
            return;
        }
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        println!("port {}", listener.local_addr().unwrap().port());
        for line in std::io::stdin().lines() {
            println!("{}", line.unwrap());
        }
        drop(listener);
    }

    /// The rest of the next line that starts like this.
    fn said(child: &mut Child, start: &str) -> String {
        let mut line = String::new();
        let mut reader = BufReader::with_capacity(1, child.stdout.as_mut().unwrap());
        while !line.starts_with(start) {
            line.clear();
            assert!(reader.read_line(&mut line).unwrap() > 0);
        }
        line[start.len()..].trim_end().to_owned()
    }

    /// The tools below a shell, as if that were the supervisor of an agent.
    fn tools(root: &Child) -> Tools {
        let mut tools = Tools::new(root.id(), 0);
        tools.spoke_at = Some(0);
        tools
    }

    fn shell(script: &str) -> Child {
        let exe = std::env::current_exe().unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", script, "sh"]).arg(exe);
        command.args(["--exact", "--nocapture", "agent::tools::tests::serve_until_killed", "__serve"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap()
    }

    fn end(mut child: Child) {
        for stat in tree::descendants(child.id()) {
            let pid = rustix::process::Pid::from_raw(i32::try_from(stat.pid).unwrap()).unwrap();
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_server_that_does_nothing_for_a_minute_is_one() {
        let mut root = shell("\"$@\"; :");
        let port: u16 = said(&mut root, "port ").parse().unwrap();
        let mut tools = tools(&root);
        assert!(!tools.trees().is_empty() && !tools.any_but_servers());
        let now = Instant::now();
        assert_eq!(tools.idle_servers(1, now), None);
        assert_eq!(tools.idle_servers(1, now + SERVER_IDLE / 2), None);
        assert_eq!(tools.idle_servers(1, now + SERVER_IDLE), Some(vec![port]));
        assert_eq!(tools.idle_servers(2, now + SERVER_IDLE), None, "something else is announced as well");

        // A word, and the minute begins anew.
        assert_eq!(tools.idle_servers(1, now + SERVER_IDLE), None);
        root.stdin.as_mut().unwrap().write_all(b"hello\n").unwrap();
        said(&mut root, "hello");
        assert_eq!(tools.idle_servers(1, now + 2 * SERVER_IDLE), None);
        assert_eq!(tools.idle_servers(1, now + 3 * SERVER_IDLE), Some(vec![port]));

        end(root);
    }

    #[test]
    fn what_does_not_listen_is_waited_for() {
        let mut root = shell("sleep 600 & \"$@\"; :");
        said(&mut root, "port ");
        let mut tools = tools(&root);
        let now = Instant::now();
        assert!(tools.any_but_servers());
        assert_eq!(tools.idle_servers(1, now), None);
        assert_eq!(tools.idle_servers(1, now + SERVER_IDLE), None);
        end(root);
    }

    #[test]
    fn what_a_shell_does_beside_a_server_is_no_server() {
        let mut root = shell("(\"$@\" & echo up; sleep 600; :) & cat; :");
        said(&mut root, "port ");
        let mut tools = tools(&root);
        assert!(tools.any_but_servers());
        let now = Instant::now();
        assert_eq!(tools.idle_servers(1, now), None);
        assert_eq!(tools.idle_servers(1, now + SERVER_IDLE), None);
        end(root);
    }

    #[test]
    fn what_was_there_before_the_first_words_is_the_agents_own() {
        let mut root = shell("\"$@\"; :");
        said(&mut root, "port ");
        let mut tools = Tools::new(root.id(), 0);
        tools.agent_speaks();
        assert!(tools.trees().is_empty());
        end(root);
    }
}
