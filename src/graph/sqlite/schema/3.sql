-- What there is to do besides the parts of a task, and what became of that: 0 nothing, it only groups them; 1 open, 2 done,
-- 3 failed.
ALTER TABLE tasks ADD COLUMN work INTEGER NOT NULL DEFAULT 1;
-- Who has booked that it is done: a run, or nobody by that name ('': a person, an import, an older program).
ALTER TABLE tasks ADD COLUMN done_by TEXT;
