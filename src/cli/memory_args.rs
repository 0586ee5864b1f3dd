//! Arguments of `journal` and of the verbs of `knowledge`.

use clap::{Args, Subcommand};

use super::GraphArgs;

/// `journal`.
#[derive(Debug, Clone, Args)]
pub struct JournalArgs {
    /// Only attempts of this run
    #[arg(long, value_name = "ID")]
    pub run: Option<String>,
    /// Only attempts at this task
    #[arg(long, value_name = "ID")]
    pub task: Option<String>,
    /// Only attempts with all of these words in title, notes or reason
    #[arg(long, value_name = "WORDS")]
    pub search: Option<String>,
    /// At most this many, the newest
    #[arg(long, short = 'n', value_name = "N", allow_negative_numbers = true)]
    pub lines: Option<String>,
    /// Which graph.
    #[command(flatten)]
    pub graph: GraphArgs,
}

/// The verbs of `knowledge`.
#[derive(Debug, Subcommand)]
pub enum KnowledgeVerb {
    /// List what agents have found out
    #[command(after_help = "Example:\n  ralph knowledge list --json | jq -r '.[].title'")]
    List(GraphArgs),
    /// Show one piece of knowledge
    #[command(after_help = "Example:\n  ralph knowledge show build-it")]
    Show(KnowledgeNameArgs),
    /// List what has all of these words
    #[command(after_help = "Example:\n  ralph knowledge search parser dates")]
    Search(KnowledgeSearchArgs),
}

/// A verb about one piece of knowledge.
#[derive(Debug, Clone, Args)]
pub struct KnowledgeNameArgs {
    /// Its file name, without .md
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Which project.
    #[command(flatten)]
    pub graph: GraphArgs,
}

/// `knowledge search`.
#[derive(Debug, Clone, Args)]
pub struct KnowledgeSearchArgs {
    /// What is looked for in titles, tags and texts
    #[arg(value_name = "WORDS", required = true)]
    pub words: Vec<String>,
    /// Which project.
    #[command(flatten)]
    pub graph: GraphArgs,
}
