//! `ralph feature`: tasks that belong together, with a spec and a plan.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use serde_json::json;

use super::attempt;
use super::output::print;
use super::task::{answer, create, look, open};
use crate::cli::{FeatureAddArgs, FeatureNameArgs, FeatureVerb, GraphArgs};
use crate::files::atomic::{self, Durability};
use crate::files::theirs;
use crate::graph::{Feature, Store as _};
use crate::job::workspace::locate;

/// `ralph feature`.
pub(super) fn run(verb: &FeatureVerb) -> anyhow::Result<u8> {
    match verb {
        FeatureVerb::Add(args) => add(args),
        FeatureVerb::List(args) => list(args),
        FeatureVerb::Show(args) => show(args),
        FeatureVerb::Delete(args) => {
            attempt::refuse("feature delete")?;
            open(&args.graph)?.delete_feature(&args.name)?;
            let text = format!("forgot feature {}: its tasks and its files stay", args.name);
            answer(&args.graph, &json!({ "deleted": args.name }), &text)
        }
    }
}

fn add(args: &FeatureAddArgs) -> anyhow::Result<u8> {
    attempt::refuse("feature add")?;
    let name = args.feature.name.as_str();
    let graph = &args.feature.graph;
    crate::graph::check_feature_name(name)?;
    let is_there = look(graph)?.feature(name).is_ok();
    if is_there && args.spec.is_none() && args.plan.is_none() {
        bail!("feature '{name}' is there already: give it another --spec or --plan, or choose another name");
    }
    let spec = args.spec.as_deref().map(|path| text(path, "spec")).transpose()?;
    let plan = args.plan.as_deref().map(|path| text(path, "plan")).transpose()?;
    let mut store = create(graph)?;
    let project = locate(graph.ralph_dir.as_ref())?;
    let put = |kind: &str, text: Option<String>| -> anyhow::Result<Option<String>> {
        let Some(text) = text else { return Ok(None) };
        let relative = PathBuf::from("features").join(name).join(format!("{kind}.md"));
        let path = project.ralph_dir().join(&relative);
        fs::create_dir_all(path.parent().unwrap_or(&path))
            .with_context(|| format!("cannot write {}", path.display()))?;
        atomic::write_theirs(&path, text.as_bytes(), Durability::Atomic)?;
        Ok(Some(relative.display().to_string()))
    };
    // The files first: one that is not named yet harms nobody.
    let (spec, plan) = (put("spec", spec)?, put("plan", plan)?);
    store.put_feature(name, spec.as_deref(), plan.as_deref())?;
    let feature = store.feature(name)?;
    answer(graph, &json!(feature), &line(&feature))
}

fn text(path: &Path, kind: &str) -> anyhow::Result<String> {
    let text = theirs::text(path).with_context(|| format!("cannot read the {kind} {}", path.display()))?;
    if text.trim().is_empty() {
        bail!("the {kind} {} is empty: write it first", path.display());
    }
    Ok(text)
}

fn list(args: &GraphArgs) -> anyhow::Result<u8> {
    let features = look(args)?.features()?;
    if args.json {
        return answer(args, &json!(features), "");
    }
    print(|out| features.iter().try_for_each(|feature| writeln!(out, "{}", line(feature))))
}

fn show(args: &FeatureNameArgs) -> anyhow::Result<u8> {
    let feature = look(&args.graph)?.feature(&args.name)?;
    let paths = [("spec", &feature.spec_path), ("plan", &feature.plan_path)];
    let paths = paths.iter().filter_map(|(kind, path)| Some(format!("\n{kind}  {}", path.as_ref()?)));
    let text = line(&feature) + &paths.collect::<String>();
    answer(&args.graph, &json!(feature), &text)
}

fn line(feature: &Feature) -> String {
    let tasks = feature.tasks;
    format!(
        "{}  {:8}  {} of {} done  {}",
        feature.id,
        feature.status.word(),
        tasks.done,
        tasks.total,
        feature.name
    )
}
