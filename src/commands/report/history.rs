//! `ralph history`: the runs of this project.

use std::io::{self, Write as _};
use std::path::PathBuf;

use super::gather::measured;
use super::pick::{no_run, runs_of, with_runs};
use crate::cli::HistoryArgs;
use crate::commands::output::{print, remark, warn, width};
use crate::commands::target::count;
use crate::job::workspace::locate_records;
use crate::parallel;
use crate::record::newer;
use crate::record::report::RunReport;
use crate::view::report::history::{HistoryRun, table};

/// `ralph history`.
pub(in crate::commands) fn history(args: &HistoryArgs) -> anyhow::Result<u8> {
    let most = args.lines.as_deref().map(|word| count(word, "--lines")).transpose()?;
    let here = with_runs(locate_records(args.ralph_dir.as_ref())?)?;
    let mut folders = runs_of(&here)?;
    let name = |folder: &PathBuf| folder.file_name().map(|name| name.to_string_lossy().into_owned());
    let known: Vec<String> = folders.iter().filter_map(name).collect();
    folders.truncate(most.unwrap_or(usize::MAX));
    let newer = parallel::each(&folders, &|folder| newer::of_run(folder));
    // The newest one stands for all: their rows show what is known of them.
    newer.iter().flatten().take(1).for_each(|newer| warn(newer));
    let read = parallel::each(&folders, &|folder| measured(&here, folder, false));
    let mut reports: Vec<RunReport> = Vec::new();
    for report in read {
        match report {
            Ok(report) => reports.push(report),
            // The hidden ones are mentioned.
            Err(error) => warn(&format!("{error:#}")),
        }
    }
    if reports.is_empty() && !args.json {
        remark(&no_run(&here));
    }
    print(|out| {
        if args.json {
            let runs: Vec<HistoryRun> = reports.iter().map(HistoryRun::from).collect();
            serde_json::to_writer_pretty(&mut *out, &runs).map_err(io::Error::other)?;
            return writeln!(out);
        }
        write!(out, "{}", table(&reports, &known, width()))
    })
}
