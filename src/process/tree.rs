//! The descendants of a process.

use std::collections::HashSet;

use super::stat::Stat;

/// Every living descendant of `root`, parents before children, without `root` itself.
#[must_use]
pub fn descendants(root: u32) -> Vec<Stat> {
    let all: Vec<Stat> = Stat::all().collect();
    let mut found: Vec<Stat> = Vec::new();
    let mut parents = vec![root];
    while let Some(parent) = parents.pop() {
        for child in all.iter().filter(|stat| stat.ppid == parent && stat.pid != root) {
            parents.push(child.pid);
            found.push(child.clone());
        }
    }
    found.retain(|stat| !stat.is_dead());
    found
}

/// Passes the living descendants of `root` to `take`, each as soon as it is found. A parent is usually found before
/// its children, as pids grow; a child that is missed is found by the next visit.
pub fn visit(root: u32, mut take: impl FnMut(&Stat)) {
    let mut known = HashSet::from([root]);
    for stat in Stat::all() {
        if known.contains(&stat.ppid) {
            known.insert(stat.pid);
            if !stat.is_dead() {
                take(&stat);
            }
        }
    }
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
