-- What of a task is its own, and who has booked it: by its last line in the log as it is now.
UPDATE tasks SET work = CASE
  WHEN status = 2 THEN 2
  WHEN status = 4 AND NOT EXISTS (SELECT 1 FROM tasks AS part WHERE part.parent = tasks.seq) THEN 3
  ELSE 1 END;
UPDATE tasks SET done_by = '' WHERE work = 2;
INSERT INTO task_logs (task, message, at) SELECT seq, 'done, as it was found', updated_at FROM tasks
WHERE work = 2 AND coalesce((SELECT message FROM task_logs AS line WHERE line.task = tasks.seq
  ORDER BY line.seq DESC LIMIT 1), '') NOT LIKE 'done%';
