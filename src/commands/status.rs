//! `ralph status` and `ralph ls`: where loops stand.

use std::io::{self, Write as _};

use serde_json::Value;

use super::output::{print, remark};
use super::target;
use super::worker::snapshot;
use crate::cli::{ListArgs, ListFormat, StatusArgs};
use crate::job::workspace::locate;
use crate::parallel;
use crate::record::lookup;
use crate::record::state::Extent;
use crate::view::status::{LoopSnapshot, write_table, write_text};

/// `ralph status`.
pub(super) fn status(args: &StatusArgs) -> anyhow::Result<u8> {
    let (here, loops) = target::loops(&args.target)?;
    if loops.is_empty() {
        // On stderr, so that `--json` prints nothing but objects.
        remark(&format!("no loop in {}", here.root().display()));
    }
    let snapshots: Vec<LoopSnapshot<'_>> = loops.iter().map(snapshot).collect();
    print(|out| match (args.json, snapshots.as_slice()) {
        (true, [one]) => write_json(&one.json(), out),
        (true, several) => write_json(&several.iter().map(LoopSnapshot::json).collect(), out),
        (false, several) => several.iter().enumerate().try_for_each(|(at, snapshot)| {
            if at > 0 {
                writeln!(out)?;
            }
            write_text(snapshot, out)
        }),
    })
}

fn write_json(value: &Value, out: &mut dyn io::Write) -> io::Result<()> {
    serde_json::to_writer(&mut *out, value).map_err(io::Error::other)?;
    writeln!(out)
}

/// `ralph ls`.
pub(super) fn list(args: &ListArgs) -> anyhow::Result<u8> {
    let format = if args.json { ListFormat::Json } else { args.format };
    let extent = if format == ListFormat::Json { Extent::Whole } else { Extent::Head };
    let loops = lookup::of_machine(&locate(None)?, extent);
    let mut snapshots: Vec<LoopSnapshot<'_>> = loops.iter().map(snapshot).collect();
    snapshots.retain(|snapshot| args.tag.iter().all(|tag| snapshot.has_tag(tag)));
    snapshots.retain(|snapshot| args.status.as_ref().is_none_or(|word| word == snapshot.word()));
    print(|out| match format {
        ListFormat::Json => {
            let objects = parallel::each(&snapshots, &LoopSnapshot::json);
            serde_json::to_writer_pretty(&mut *out, &objects).map_err(io::Error::other)?;
            writeln!(out)
        }
        ListFormat::Names => snapshots.iter().try_for_each(|snapshot| writeln!(out, "{}", snapshot.name())),
        ListFormat::Table if loops.is_empty() => writeln!(out, "no loops on this machine"),
        ListFormat::Table => write_table(&snapshots, out),
    })
}
