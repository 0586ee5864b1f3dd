//! The verbs for workers: agents in panes of tmux.

mod attach;
mod clean;
mod find;
mod kill;
mod monitor;
mod output;
mod peek;
mod send;
mod sight;
mod template;
mod tree;
mod wait;

pub(super) use attach::attach;
pub(super) use clean::{clean_running, close_left, forget_files};
pub(super) use find::{exists, is_name, is_running, with_dead_pane};
pub(super) use kill::{kill, replace};
pub(super) use output::show;
pub(super) use peek::peek;
pub(super) use send::{interrupt, send};
pub(super) use sight::snapshot;
pub(super) use template::{TEMPLATE, template};
pub(super) use wait::wait;
