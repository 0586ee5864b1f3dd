-- Moments are text there: RFC 3339, or as SQLite writes them.
INSERT INTO features (id, name, spec_path, plan_path, created_at, updated_at)
SELECT id, coalesce(name, ''),
  iif(spec_path IS NULL, NULL, 'features/' || name || '/spec.md'),
  iif(plan_path IS NULL, NULL, 'features/' || name || '/plan.md'),
  coalesce(CAST(round(unixepoch(created_at, 'subsec') * 1000) AS INTEGER), $now),
  coalesce(CAST(round(unixepoch(updated_at, 'subsec') * 1000) AS INTEGER), $now)
FROM older_features ORDER BY created_at, rowid;

INSERT INTO tasks (id, feature, title, status, priority, created_at, updated_at, retry_count, max_retries, retries_given,
  verification)
SELECT t.id, f.seq,
  substr(replace(replace(replace(coalesce(t.title, ''), char(10), ' '), char(13), ' '), char(9), ' '), 1, 500),
  CASE t.status WHEN 'done' THEN 2 WHEN 'failed' THEN 4 ELSE 0 END,
  max(-1000000, min(1000000, CAST(coalesce(t.priority, 0) AS INTEGER))),
  coalesce(CAST(round(unixepoch(t.created_at, 'subsec') * 1000) AS INTEGER), $now),
  coalesce(CAST(round(unixepoch(t.updated_at, 'subsec') * 1000) AS INTEGER), $now),
  max(0, min(CAST(coalesce(t.retry_count, 0) AS INTEGER), CAST(coalesce(t.max_retries, 3) AS INTEGER), 1000000)),
  max(0, min(CAST(coalesce(t.max_retries, 3) AS INTEGER), 1000000)),
  coalesce(t.max_retries, 3) <> 3,
  CASE t.verification_status WHEN 'passed' THEN 1 WHEN 'failed' THEN 2 ELSE 0 END
FROM older_tasks t LEFT JOIN features f ON f.id = t.feature_id ORDER BY t.created_at, t.rowid;

UPDATE tasks SET parent = p.seq FROM older_tasks t JOIN tasks p ON p.id = t.parent_id WHERE t.id = tasks.id;

-- What of a title does not fit into one is kept above the description.
INSERT INTO descriptions (task, text)
SELECT s.seq, iif(length(t.title) > 500, t.title || char(10, 10), '') || coalesce(t.description, '')
FROM older_tasks t JOIN tasks s ON s.id = t.id WHERE coalesce(t.description, '') <> '' OR length(t.title) > 500;

INSERT OR IGNORE INTO dependencies (blocker, blocked)
SELECT a.seq, b.seq FROM older_dependencies d JOIN tasks a ON a.id = d.blocker_id JOIN tasks b ON b.id = d.blocked_id;

INSERT INTO task_logs (task, message, at)
SELECT s.seq, l.message, coalesce(CAST(round(unixepoch(l.timestamp, 'subsec') * 1000) AS INTEGER), $now)
FROM older_task_logs l JOIN tasks s ON s.id = l.task_id ORDER BY l.id;

INSERT INTO task_logs (task, message, at)
SELECT s.seq, 'released: ' || coalesce(t.claimed_by, 'somebody') || ', which had claimed it, was of an older program', $now
FROM older_tasks t JOIN tasks s ON s.id = t.id WHERE t.status = 'in_progress';
