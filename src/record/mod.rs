//! Event consumers and their files.

pub mod blocks;
pub mod earlier;
pub mod ending;
pub mod event_json;
pub mod event_line;
pub mod event_lines;
pub mod events_log;
pub mod iterations_log;
pub mod lock;
pub mod log_dir;
pub mod lookout;
pub mod lookup;
mod older_state;
pub mod past;
pub mod raw_output;
pub mod recorder;
pub mod registry;
pub mod report;
pub mod requests;
pub mod run_folder;
mod session;
pub mod session_log;
pub mod state;
pub mod tail;
mod whole_lines;
pub mod work_done;
pub mod worker;
