CREATE TABLE features (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  name TEXT NOT NULL UNIQUE,
  spec_path TEXT,
  plan_path TEXT,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;

-- seq is the order of insertion and is never used again: an old claim must not fit a new task.
-- status and children … ready follow from the rest (transitions.rs); they are kept, so that a claim costs the same in a graph of
-- any size, and have no seal: they are computed anew where another program has written (rebuild.rs).
-- done_at_commit: the commit that HEAD named when the task was done, or that has landed; whoever builds on the task needs it.
-- unverified: an agent has said that the task is done, and 1 nothing has verified that, 2 it was verified and is not booked yet.
-- retries_given: whether max_retries was set for this task.
-- work: what there is to do besides the parts, and its outcome: 0 nothing, it only groups them; 1 open, 2 done, 3 failed,
-- 4 done and waiting to land: then done_at_commit is what has to land.
-- done_by: the run that has booked that it is done; '' where a person, an import or an older program did.
-- doubted: another program has changed what the task is, and no run that has reported that has ended yet.
-- seal: signatures of what the task is and of its state, by the key of the user whose ralph has written them (seals.rs).
CREATE TABLE tasks (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  origin TEXT,
  parent INTEGER REFERENCES tasks (seq),
  feature INTEGER REFERENCES features (seq),
  title TEXT NOT NULL,
  status INTEGER NOT NULL DEFAULT 0 CHECK (status BETWEEN 0 AND 5),
  priority INTEGER NOT NULL DEFAULT 0,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  retry_count INTEGER NOT NULL DEFAULT 0,
  max_retries INTEGER NOT NULL DEFAULT 3,
  verification INTEGER NOT NULL DEFAULT 0,
  children INTEGER NOT NULL DEFAULT 0,
  done_children INTEGER NOT NULL DEFAULT 0,
  failed_children INTEGER NOT NULL DEFAULT 0,
  open_blockers INTEGER NOT NULL DEFAULT 0,
  held INTEGER NOT NULL DEFAULT 0,
  ready INTEGER NOT NULL DEFAULT 0,
  fence INTEGER NOT NULL DEFAULT 0,
  run TEXT,
  holder TEXT,
  lease_until INTEGER,
  done_at_commit TEXT,
  unverified INTEGER NOT NULL DEFAULT 0,
  retries_given INTEGER NOT NULL DEFAULT 0,
  work INTEGER NOT NULL DEFAULT 1,
  done_by TEXT,
  doubted INTEGER NOT NULL DEFAULT 0,
  seal BLOB
) STRICT;
CREATE INDEX tasks_parent ON tasks (parent) WHERE parent IS NOT NULL;
CREATE INDEX tasks_feature ON tasks (feature) WHERE feature IS NOT NULL;
CREATE UNIQUE INDEX tasks_origin ON tasks (origin) WHERE origin IS NOT NULL;
CREATE INDEX tasks_claimed ON tasks (seq) WHERE status = 1;

-- One row: which graph this is, how often its tasks as a whole have changed, how many there are, and the sums of a number for
-- each id and for each row of reopened, which say which ones there are. missing, uncounted: how many tasks another program has
-- removed, and whether it has changed this row, as no run that has reported that has ended yet. Every seal covers the graph, this one
-- the rest as well.
CREATE TABLE sealed (
  graph TEXT,
  changes INTEGER NOT NULL DEFAULT 0,
  tasks INTEGER NOT NULL,
  ids INTEGER NOT NULL DEFAULT 0,
  reopenings INTEGER NOT NULL DEFAULT 0,
  missing INTEGER NOT NULL DEFAULT 0,
  uncounted INTEGER NOT NULL DEFAULT 0,
  seal BLOB
) STRICT;
INSERT INTO sealed (tasks, graph) VALUES (0, lower(hex(randomblob(16))));

-- How often a task that was done was opened again. The task's seal covers it, so that no row from before that can be put back.
-- It outlives the task.
CREATE TABLE reopened (
  task INTEGER PRIMARY KEY,
  times INTEGER NOT NULL
) STRICT;

-- Apart from the tasks: a claim writes the whole row of a task.
CREATE TABLE descriptions (
  task INTEGER PRIMARY KEY REFERENCES tasks (seq) ON DELETE CASCADE,
  text TEXT NOT NULL
) STRICT;

CREATE TABLE dependencies (
  blocker INTEGER NOT NULL REFERENCES tasks (seq) ON DELETE CASCADE,
  blocked INTEGER NOT NULL REFERENCES tasks (seq) ON DELETE CASCADE,
  PRIMARY KEY (blocker, blocked)
) STRICT, WITHOUT ROWID;
CREATE INDEX dependencies_blocked ON dependencies (blocked, blocker);

-- Who can be claimed, or is, for each scope that a claim may have: 0 is the whole graph, -N the feature N, N task N with
-- all below it. It follows from the rest, too.
CREATE TABLE ready (
  scope INTEGER NOT NULL,
  priority INTEGER NOT NULL,
  task INTEGER NOT NULL,
  PRIMARY KEY (scope, priority, task)
) STRICT, WITHOUT ROWID;

-- What agents have committed for a task in a work tree of their own. Its commits are kept by a ref that has the task's id and fence.
-- standing: 0 its next agent goes on from it, 1 it waits to land, 2 it was returned, 3 it has landed, as the commit landed.
-- Only 1 counts, and only with the task's work and seal. The row says where from and where to, and what became of it.
CREATE TABLE landings (
  task INTEGER PRIMARY KEY REFERENCES tasks (seq) ON DELETE CASCADE,
  fence INTEGER NOT NULL,
  nonce TEXT NOT NULL,
  trunk TEXT NOT NULL,
  base TEXT NOT NULL,
  head TEXT NOT NULL,
  standing INTEGER NOT NULL CHECK (standing BETWEEN 0 AND 3),
  since INTEGER NOT NULL,
  returned INTEGER NOT NULL DEFAULT 0,
  gates INTEGER NOT NULL DEFAULT 0,
  reason TEXT NOT NULL DEFAULT '',
  landed TEXT
) STRICT;
CREATE INDEX landings_standing ON landings (standing, since);

-- Who lands what waits for a trunk: like a claim, with a fence that grows each time. gated: the ids of the tasks that the gate runs
-- for since then, as JSON; null while it does not run.
CREATE TABLE landers (
  trunk TEXT PRIMARY KEY,
  fence INTEGER NOT NULL,
  holder TEXT NOT NULL,
  lease_until INTEGER NOT NULL,
  gated TEXT,
  gated_since INTEGER
) STRICT;

-- said: a person or an agent has written the line.
CREATE TABLE task_logs (
  seq INTEGER PRIMARY KEY,
  task INTEGER NOT NULL REFERENCES tasks (seq) ON DELETE CASCADE,
  message TEXT NOT NULL,
  at INTEGER NOT NULL,
  said INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX task_logs_task ON task_logs (task);

-- One row for each attempt at a task; it outlives the task.
CREATE TABLE journal (
  seq INTEGER PRIMARY KEY,
  run TEXT NOT NULL,
  iteration INTEGER NOT NULL,
  task TEXT NOT NULL,
  title TEXT NOT NULL,
  feature TEXT,
  outcome INTEGER NOT NULL,
  model TEXT,
  duration_secs REAL NOT NULL,
  cost_usd REAL,
  input_tokens INTEGER NOT NULL,
  output_tokens INTEGER NOT NULL,
  files TEXT NOT NULL,
  notes TEXT NOT NULL,
  reason TEXT NOT NULL,
  at INTEGER NOT NULL
) STRICT;
CREATE INDEX journal_run ON journal (run);
CREATE INDEX journal_task ON journal (task);
CREATE VIRTUAL TABLE journal_words
  USING fts5 (title, notes, reason, content = 'journal', content_rowid = 'seq', tokenize = 'trigram');
