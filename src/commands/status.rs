//! `ralph status` and `ralph ls`: where loops stand.

use std::io::{self, Write as _};

use super::output::{print, remark};
use super::target;
use crate::cli::{ListArgs, StatusArgs};
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
    print(|out| {
        for (at, found) in loops.iter().enumerate() {
            let snapshot = LoopSnapshot::of(found);
            if args.json {
                serde_json::to_writer(&mut *out, &snapshot.json()).map_err(io::Error::other)?;
                writeln!(out)?;
            } else {
                if at > 0 {
                    writeln!(out)?;
                }
                write_text(&snapshot, out)?;
            }
        }
        Ok(())
    })
}

/// `ralph ls`.
pub(super) fn list(args: &ListArgs) -> anyhow::Result<u8> {
    let extent = if args.json { Extent::Whole } else { Extent::Head };
    let loops = lookup::of_machine(&locate(None)?, extent);
    let snapshots: Vec<LoopSnapshot<'_>> = loops.iter().map(LoopSnapshot::of).collect();
    print(|out| {
        if args.json {
            let objects = parallel::each(&snapshots, &LoopSnapshot::json);
            serde_json::to_writer_pretty(&mut *out, &objects).map_err(io::Error::other)?;
            writeln!(out)
        } else if snapshots.is_empty() {
            writeln!(out, "no loops on this machine")
        } else {
            write_table(&snapshots, out)
        }
    })
}
