//! `ralph feature`: tasks that belong together, with a spec and a plan.

mod files;

use std::io::Write as _;
use std::path::PathBuf;

use anyhow::bail;
use serde_json::json;

use super::author::{self, Order};
use super::graph_file::{Opened, create, is_on_server, open, place};
use super::output::print_for_people;
use super::task::{answer, look};
use crate::cli::{FeatureAddArgs, FeatureNameArgs, FeatureVerb, GraphArgs};
use crate::graph::{Feature, GraphError, Store as _};

use files::FeatureFile;

/// `ralph feature`.
pub(super) fn run(verb: &FeatureVerb) -> anyhow::Result<u8> {
    match verb {
        FeatureVerb::Add(args) => add(args),
        FeatureVerb::Spec(args) => author::feature(Order::Spec, args),
        FeatureVerb::Plan(args) => author::feature(Order::Plan, args),
        FeatureVerb::Build(args) => author::feature(Order::Build, args),
        FeatureVerb::Create(args) => author::feature(Order::Create, args),
        FeatureVerb::List(args) => list(args),
        FeatureVerb::Show(args) => show(args),
        FeatureVerb::Delete(args) => {
            open(&args.graph)?.delete_feature(&args.name)?;
            let text = format!("forgot feature {}: its tasks and its files stay", args.name);
            answer(&args.graph, &json!({ "deleted": args.name }), &text)
        }
    }
}

fn add(args: &FeatureAddArgs) -> anyhow::Result<u8> {
    let name = args.feature.name.as_str();
    let graph = &args.feature.graph;
    crate::graph::check_feature_name(name)?;
    let project = place(graph)?;
    let folder = project.graph_dir();
    let choose = |kind, given: &Option<PathBuf>| {
        FeatureFile::choose(&folder, name, kind, given.as_deref(), args.force)
    };
    let (spec, plan) = (choose("spec", &args.spec)?, choose("plan", &args.plan)?);
    let named = |file: &Option<FeatureFile>| file.as_ref().map(|file| file.name.clone());
    let (spec_path, plan_path) = (named(&spec), named(&plan));
    let is_there = is_on_server(graph)? || project.graph().exists();
    let known = if is_there { look(graph)?.feature(name).ok() } else { None };
    if let Some(old) = known {
        let is_known = |new: &Option<String>, old: &Option<String>| new.is_none() || new == old;
        let is_same = is_known(&spec_path, &old.spec_path) && is_known(&plan_path, &old.plan_path);
        if is_same && args.spec.is_none() && args.plan.is_none() {
            bail!(
                "feature '{name}' is there already: give it another --spec or --plan, or choose another name"
            );
        }
    }
    let mut store = create(graph)?;
    let files: Vec<&FeatureFile> = spec.iter().chain(&plan).collect();
    let mut written = Vec::new();
    let mut write =
        || files::write(&files, &mut written).map_err(|error| GraphError::BadValue(error.to_string()));
    let (spec_path, plan_path) = (spec_path.as_deref(), plan_path.as_deref());
    let put = match &mut store {
        Opened::File(store) => store.put_feature_with(name, spec_path, plan_path, write),
        Opened::Server(store) => write().and_then(|()| store.put_feature(name, spec_path, plan_path)),
    };
    if let Err(error) = put {
        files::take_back(&written);
        return Err(error.into());
    }
    let feature = store.feature(name)?;
    answer(graph, &json!(feature), &line(&feature))
}

fn list(args: &GraphArgs) -> anyhow::Result<u8> {
    let features = look(args)?.features()?;
    if args.json {
        return answer(args, &json!(features), "");
    }
    print_for_people(|out| features.iter().try_for_each(|feature| writeln!(out, "{}", line(feature))))
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
