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
-- children … ready follow from the rest (transitions.rs); they are kept, so that a claim costs the same in a graph of any size.
CREATE TABLE tasks (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  origin TEXT,
  parent INTEGER REFERENCES tasks (seq),
  feature INTEGER REFERENCES features (seq),
  title TEXT NOT NULL,
  status INTEGER NOT NULL DEFAULT 0 CHECK (status BETWEEN 0 AND 4),
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
  lease_until INTEGER
) STRICT;
CREATE INDEX tasks_parent ON tasks (parent) WHERE parent IS NOT NULL;
CREATE INDEX tasks_feature ON tasks (feature) WHERE feature IS NOT NULL;
CREATE UNIQUE INDEX tasks_origin ON tasks (origin) WHERE origin IS NOT NULL;
CREATE INDEX tasks_claimed ON tasks (seq) WHERE status = 1;

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
-- all below it.
CREATE TABLE ready (
  scope INTEGER NOT NULL,
  priority INTEGER NOT NULL,
  task INTEGER NOT NULL,
  PRIMARY KEY (scope, priority, task)
) STRICT, WITHOUT ROWID;

CREATE TABLE task_logs (
  seq INTEGER PRIMARY KEY,
  task INTEGER NOT NULL REFERENCES tasks (seq) ON DELETE CASCADE,
  message TEXT NOT NULL,
  at INTEGER NOT NULL
) STRICT;
CREATE INDEX task_logs_task ON task_logs (task);
