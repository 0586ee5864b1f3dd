INSERT INTO journal (run, iteration, task, title, feature, outcome, model, duration_secs, cost_usd, input_tokens,
  output_tokens, files, notes, reason, at)
SELECT coalesce(j.run_id, ''), coalesce(j.iteration, 0), coalesce(j.task_id, ''), coalesce(s.title, ''), f.name,
  CASE j.outcome WHEN 'done' THEN 0 WHEN 'failed' THEN 1 WHEN 'retried' THEN 2 WHEN 'interrupted' THEN 4 ELSE 3 END,
  j.model, CAST(coalesce(j.duration_secs, 0) AS REAL), CAST(j.cost_usd AS REAL), 0, 0,
  iif(json_valid(j.files_modified), j.files_modified, '[]'), coalesce(j.notes, ''), '',
  coalesce(CAST(round(unixepoch(j.created_at, 'subsec') * 1000) AS INTEGER), $now)
FROM older_journal j LEFT JOIN tasks s ON s.id = j.task_id LEFT JOIN features f ON f.id = j.feature_id ORDER BY j.id;

INSERT INTO journal_words (rowid, title, notes, reason) SELECT seq, title, notes, reason FROM journal;
