//! The descendants of a process.

use super::family::Family;
use super::mark::Mark;
use super::stat::Stat;

/// Every living descendant of a supervisor, parents before children, without itself. With the portable backend also
/// what has left it: processes of the session that it leads, and those that carry its mark.
#[must_use]
pub fn descendants(root: u32) -> Vec<Stat> {
    Family::below(root, Some(Mark::of_any_run(root))).and_of_its_session().look()
}

/// The CPU time of an agent's *tools* so far, in seconds: everything below the supervisor except the agent process
/// itself, which may spin while it waits for its model. Never decreases as long as the supervisor reaps what ends.
#[must_use]
pub fn tools_cpu_seconds(supervisor: u32, agent: u32) -> f64 {
    let own = Stat::read(supervisor).map_or(0, |stat| stat.reaped_ticks);
    let ticks: u64 = descendants(supervisor)
        .iter()
        .map(|stat| if stat.pid == agent { stat.reaped_ticks } else { stat.own_ticks + stat.reaped_ticks })
        .sum();
    let per_second = rustix::param::clock_ticks_per_second();
    #[expect(clippy::cast_precision_loss, reason = "clock ticks of a process tree stay far below 2^52")]
    let seconds = (own + ticks) as f64 / per_second.max(1) as f64;
    seconds
}
