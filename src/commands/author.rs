//! `ralph feature spec|plan|build|create` and `ralph task create`: agents write specs, plans and tasks.

use std::cell::RefCell;
use std::io::Read as _;
use std::rc::Rc;

use anyhow::{Context as _, bail};

use super::graph_file::{self, DRAFT, FEATURE_VARIABLE, Opened, address};
use super::own_call::own_call;
use crate::cli::{FeatureWriteArgs, LoopFlags, TaskCreateArgs};
use crate::graph::postgres::{Address, PASSWORDS, PostgresStore};
use crate::graph::sqlite::SqliteStore;
use crate::graph::{Feature, GraphError, Store, check_feature_name};
use crate::inspection::Ground;
use crate::job::preflight::Preflight;
use crate::job::ready::run_id;
use crate::job::terminal::AtTerminal;
use crate::job::workspace::{Workspace, open_loop};
use crate::process;
use crate::project::Project;
use crate::prompt::authoring::{LONGEST_BRIEF, Piece};
use crate::settings::Verb;
use crate::source::authoring::{Authoring, Commission};
use crate::view::plain::Frame;
use crate::view::run_lines::RunLines;

/// The most of a brief that is read from stdin, in bytes.
const MOST: u64 = 1 << 20;

/// The stages that a verb of `feature` has agents write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    Spec,
    Plan,
    Build,
    /// All three, except those that exist.
    Create,
}

impl Order {
    fn word(self) -> &'static str {
        match self {
            Self::Spec => "spec",
            Self::Plan => "plan",
            Self::Build => "build",
            Self::Create => "create",
        }
    }
}

/// The progress of a feature.
struct Progress {
    spec: bool,
    plan: bool,
    tasks: u64,
}

impl Progress {
    /// The files count; with `only_known`, only those that the graph has: others were not reviewed.
    fn of(name: &str, project: &Project, feature: Option<&Feature>, only_known: bool) -> Self {
        let has = |piece: Piece| {
            let path = format!("features/{name}/{}.md", piece.word());
            let known =
                feature.into_iter().flat_map(|feature| [&feature.spec_path, &feature.plan_path]).flatten();
            let is_known = !only_known || known.into_iter().any(|known| *known == path);
            is_known && project.graph_dir().join(path).is_file()
        };
        Self {
            spec: has(Piece::Spec),
            plan: has(Piece::Plan),
            tasks: feature.map_or(0, |feature| feature.tasks.total),
        }
    }
}

/// `ralph feature spec`, `plan`, `build` and `create`.
pub(super) fn feature(order: Order, args: &FeatureWriteArgs) -> anyhow::Result<u8> {
    let (name, word) = (args.name.as_str(), order.word());
    check_feature_name(name)?;
    let workspace = open_loop(Verb::Feature, &args.flags)?;
    let project = &workspace.project;
    let server = address(args.store.as_deref(), &workspace.settings)?;
    let known = known(project, server.as_ref(), name)?;
    let goes_on = order == Order::Create;
    let progress = Progress::of(name, project, known.as_ref(), goes_on);
    let brief = brief(args.brief.as_deref(), &args.flags)?;
    // A resumed loop goes on with what is missing; its brief was used before.
    let begins_anew = brief.is_some() && !args.flags.resume;
    let pieces = pieces(order, name, &progress, begins_anew)?;
    let starts = pieces[0] == Piece::Spec;
    let asks = can_ask(args.brief.as_deref(), &args.flags) && pieces[0] != Piece::Tasks;
    let lies_there = project.graph_dir().join(format!("features/{name}/spec.md")).is_file();
    if starts && !asks && brief.is_none() && !lies_there {
        bail!(
            "there is no terminal to ask at, and no brief: say what is wanted, as in 'ralph feature {word} {name} \
             \"Export the table as CSV\"', or give it on stdin with -"
        );
    }
    let feature = Some(name);
    Author { workspace: &workspace, flags: &args.flags, feature, brief, pieces, asks, progress, goes_on }
        .run(server)
}

/// `ralph task create`.
pub(super) fn task(args: &TaskCreateArgs) -> anyhow::Result<u8> {
    let workspace = open_loop(Verb::Feature, &args.flags)?;
    let project = &workspace.project;
    let server = address(args.store.as_deref(), &workspace.settings)?;
    let feature = args.feature.as_deref();
    if let Some(name) = feature
        && known(project, server.as_ref(), name)?.is_none()
    {
        // The error suggests a name.
        existing(project, server.as_ref())?.feature(name)?;
    }
    let brief = brief(args.brief.as_deref(), &args.flags)?;
    let asks = can_ask(args.brief.as_deref(), &args.flags);
    if !asks && brief.is_none() {
        bail!(
            "there is no terminal to ask at, and no brief: say what is to be done, as in 'ralph task create \"Reject \
             dates before 1970\"', or give it on stdin with -"
        );
    }
    let progress = Progress { spec: false, plan: false, tasks: 0 };
    let pieces = vec![Piece::Task];
    Author {
        workspace: &workspace,
        flags: &args.flags,
        feature,
        brief,
        pieces,
        asks,
        progress,
        goes_on: false,
    }
    .run(server)
}

/// The remaining stages, in order.
fn pieces(order: Order, name: &str, progress: &Progress, has_brief: bool) -> anyhow::Result<Vec<Piece>> {
    let Progress { spec, plan, tasks } = *progress;
    match order {
        Order::Spec => Ok(vec![Piece::Spec]),
        Order::Plan if !spec => bail!("feature '{name}' has no spec: 'ralph feature spec {name}' writes it"),
        Order::Plan => Ok(vec![Piece::Plan]),
        Order::Build | Order::Create if tasks > 0 => {
            bail!("feature '{name}' has tasks already ({tasks}): 'ralph run {name}' works on them")
        }
        Order::Build if !plan => {
            let next = if spec { "plan" } else { "create" };
            bail!("feature '{name}' has no plan: 'ralph feature {next} {name}' writes it")
        }
        Order::Build => Ok(vec![Piece::Tasks]),
        Order::Create => {
            let mut pieces = Vec::new();
            if !spec || has_brief {
                pieces.push(Piece::Spec);
            }
            if !plan || !pieces.is_empty() {
                pieces.push(Piece::Plan);
            }
            pieces.push(Piece::Tasks);
            Ok(pieces)
        }
    }
}

/// Whether there is a person at the terminal, without `--json` or `--quiet`.
fn can_ask(brief: Option<&str>, flags: &LoopFlags) -> bool {
    brief != Some("-") && !flags.json && !flags.quiet && AtTerminal::find().is_some()
}

/// What the user wants, in their words; `-` reads it from stdin.
fn brief(given: Option<&str>, flags: &LoopFlags) -> anyhow::Result<Option<String>> {
    let text = match given {
        None => return Ok(None),
        // The input of the earlier process is lost.
        Some("-") if flags.resume => return Ok(None),
        Some("-") => {
            let mut bytes = Vec::new();
            let stdin = std::io::stdin().lock();
            stdin.take(MOST + 1).read_to_end(&mut bytes).context("cannot read the brief from stdin")?;
            if bytes.len() as u64 > MOST {
                bail!(
                    "the brief on stdin is larger than {MOST} bytes: put it into a file, and name that in a short one"
                );
            }
            String::from_utf8(bytes).ok().context("the brief on stdin is no UTF-8 text: convert it first")?
        }
        Some(text) => text.to_owned(),
    };
    if text.trim().is_empty() {
        bail!("the brief is empty: say what is wanted");
    }
    if text.chars().nth(LONGEST_BRIEF).is_some() {
        bail!(
            "the brief is longer than {LONGEST_BRIEF} characters: put it into a file of the project, and name that in a short one"
        );
    }
    Ok(Some(text))
}

/// The graph of the project, or on a server; an empty one if there is none.
fn existing(project: &Project, server: Option<&Address>) -> anyhow::Result<Opened> {
    if let Some(address) = server {
        return Opened::on_server(PostgresStore::open(address.clone())?);
    }
    let is_there = project.graph().symlink_metadata().is_ok();
    let store = if is_there { graph_file::opened_for_run(project)? } else { SqliteStore::nowhere()? };
    Ok(Opened::File(store))
}

fn known(project: &Project, server: Option<&Address>, name: &str) -> anyhow::Result<Option<Feature>> {
    match existing(project, server)?.feature(name) {
        Ok(feature) => Ok(Some(feature)),
        Err(GraphError::UnknownFeature { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// A loop whose agents write specs, plans or tasks.
struct Author<'a> {
    workspace: &'a Workspace,
    flags: &'a LoopFlags,
    feature: Option<&'a str>,
    brief: Option<String>,
    pieces: Vec<Piece>,
    asks: bool,
    progress: Progress,
    /// Files that are not in the graph are reviewed first.
    goes_on: bool,
}

impl Author<'_> {
    /// `server`: where the graph is; `None`: in the project's file.
    fn run(self, server: Option<Address>) -> anyhow::Result<u8> {
        let project = &self.workspace.project;
        let preflight = Preflight::of_settings(self.workspace.called(Verb::Feature, self.flags), None)?;
        let draft = project.run_dir().join(DRAFT);
        // Agents change the draft only, from any folder.
        let graph = ("RALPH_DIR".into(), draft.clone().into());
        let feature = self.feature.map(|name| (FEATURE_VARIABLE.into(), name.into()));
        let mut ready = preflight.ready(project, &run_id(), [graph].into_iter().chain(feature))?;
        let (root, in_git) = (project.root().to_owned(), project.in_git());
        let commission = Commission {
            feature: self.feature.map(str::to_owned),
            pieces: self.pieces,
            brief: self.brief,
            ground: Ground { root, in_git, looks_only: preflight.can_look_only() },
            documents: project.graph_dir(),
            ralph: own_call(project, Some(&draft))?,
            draft,
            talks: project.run_dir().join("feature-talks"),
            goes_on: self.goes_on,
        };
        let store: Rc<RefCell<dyn Store>> = if let Some(address) = server {
            process::withhold(&PASSWORDS);
            Rc::new(RefCell::new(PostgresStore::create(address)?))
        } else {
            let store = graph_file::create_file(project).map_err(graph_file::refuses_run)?;
            Rc::new(RefCell::new(store))
        };
        if let Some(name) = self.feature {
            let path = |piece: Piece| format!("features/{name}/{}.md", piece.word());
            let (spec, plan) = (path(Piece::Spec), path(Piece::Plan));
            let (spec, plan) = (self.progress.spec.then_some(&*spec), self.progress.plan.then_some(&*plan));
            if spec.is_some() || plan.is_some() {
                // It exists, with any author.
                store.borrow_mut().put_feature(name, spec, plan)?;
            }
        }
        let source = Authoring::new(store, commission);
        ready.name = self.feature.unwrap_or("task").into();
        ready.validated_by(Some(Box::new(source.reviewer())));
        ready.person = if self.asks { AtTerminal::find() } else { None };
        ready.run(source, Frame::Lines(RunLines::default()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn create_goes_on_where_the_feature_is_and_the_others_say_what_comes_first() {
        use Piece::{Plan, Spec, Tasks};
        let progress = |spec, plan, tasks| Progress { spec, plan, tasks };
        let written = |order, progress: Progress, brief| {
            pieces(order, "x", &progress, brief).map_err(|e| e.to_string())
        };
        for (spec, plan, brief, expected) in [
            (false, false, true, &[Spec, Plan, Tasks][..]),
            (true, false, false, &[Plan, Tasks]),
            (true, true, false, &[Tasks]),
            (true, true, true, &[Spec, Plan, Tasks]),
        ] {
            assert_eq!(written(Order::Create, progress(spec, plan, 0), brief).unwrap(), expected);
        }
        for (order, spec, plan, tasks, expected) in [
            (Order::Plan, false, false, 0, "has no spec: 'ralph feature spec x'"),
            (Order::Build, true, false, 0, "has no plan: 'ralph feature plan x'"),
            (Order::Build, false, false, 0, "has no plan: 'ralph feature create x'"),
            (Order::Build, true, true, 3, "has tasks already (3): 'ralph run x'"),
            (Order::Create, true, true, 3, "has tasks already"),
        ] {
            let error = written(order, progress(spec, plan, tasks), false).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }
}
