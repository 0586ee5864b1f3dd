-- The commit that HEAD named when the task was done; whoever builds on the task needs it.
ALTER TABLE tasks ADD COLUMN done_at_commit TEXT;
-- An agent has said that the task is done, and nobody has looked whether it is.
ALTER TABLE tasks ADD COLUMN unverified INTEGER NOT NULL DEFAULT 0;
-- Somebody has said how often the task may be tried again.
ALTER TABLE tasks ADD COLUMN retries_given INTEGER NOT NULL DEFAULT 0;
UPDATE tasks SET retries_given = 1 WHERE max_retries <> 3;

-- A person or an agent has written the line.
ALTER TABLE task_logs ADD COLUMN said INTEGER NOT NULL DEFAULT 0;

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
CREATE TRIGGER journal_noted AFTER INSERT ON journal BEGIN
  INSERT INTO journal_words (rowid, title, notes, reason) VALUES (new.seq, new.title, new.notes, new.reason);
END;
