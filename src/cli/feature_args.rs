//! Arguments of the verbs of `feature`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{GraphArgs, LoopFlags, help};

/// The verbs of `feature`.
#[derive(Debug, Subcommand)]
pub enum FeatureVerb {
    /// Add a feature, or give one another spec or plan
    #[command(after_help = "Example:\n  ralph feature add export --spec specs/export.md")]
    Add(FeatureAddArgs),
    /// Have an agent write the spec of a feature, with you or from a brief
    #[command(after_help = help::FEATURE_SPEC_EXAMPLES)]
    Spec(FeatureWriteArgs),
    /// Have an agent write the plan of a feature from its spec
    #[command(after_help = "Example:\n  ralph feature plan export")]
    Plan(FeatureWriteArgs),
    /// Have an agent cut the plan of a feature into tasks
    #[command(after_help = help::FEATURE_BUILD_EXAMPLES)]
    Build(FeatureWriteArgs),
    /// Spec, plan and tasks of a feature in turn; what is there already is kept
    #[command(after_help = help::FEATURE_CREATE_EXAMPLES)]
    Create(FeatureWriteArgs),
    /// List all features, and where they stand
    #[command(after_help = "Example:\n  ralph feature list --json | jq -r '.[].name'")]
    List(GraphArgs),
    /// Show a feature
    #[command(after_help = "Example:\n  ralph feature show export")]
    Show(FeatureNameArgs),
    /// Forget a feature; its tasks and its files stay
    #[command(
        after_help = "Example:\n  ralph feature delete export\n\nRefused while one of its tasks is claimed."
    )]
    Delete(FeatureNameArgs),
}

/// `feature spec`, `plan`, `build` and `create`.
#[derive(Debug, Clone, Args)]
pub struct FeatureWriteArgs {
    /// Name of the feature
    #[arg(id = "feature", value_name = "NAME")]
    pub name: String,
    /// What is wanted; - reads it from stdin
    #[arg(value_name = "BRIEF")]
    pub brief: Option<String>,
    /// Address of a graph on a server, instead of the project's file.
    #[arg(long, value_name = "URL", help = help::STORE)]
    pub store: Option<String>,
    /// Everything else.
    #[command(flatten)]
    pub flags: LoopFlags,
}

/// A verb about one feature.
#[derive(Debug, Clone, Args)]
pub struct FeatureNameArgs {
    /// Name of the feature
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Which graph.
    #[command(flatten)]
    pub graph: GraphArgs,
}

/// `feature add`.
#[derive(Debug, Clone, Args)]
pub struct FeatureAddArgs {
    /// Which feature.
    #[command(flatten)]
    pub feature: FeatureNameArgs,
    /// Its spec; copied to features/NAME/spec.md beside the graph
    #[arg(long, value_name = "FILE")]
    pub spec: Option<PathBuf>,
    /// Its plan; copied to features/NAME/plan.md beside the graph
    #[arg(long, value_name = "FILE")]
    pub plan: Option<PathBuf>,
    /// Replace a spec or plan that is there already
    #[arg(long)]
    pub force: bool,
}
