-- Which graph this is, and how often something of it was reset: every seal is of these, too. Seals of before are none any more: the
-- first run that has a key seals anew what the traces bear out.
ALTER TABLE sealed ADD COLUMN graph TEXT;
ALTER TABLE sealed ADD COLUMN generation INTEGER NOT NULL DEFAULT 0;
UPDATE tasks SET seal = NULL;
DELETE FROM sealed;
INSERT INTO sealed (tasks, graph) SELECT count(*), lower(hex(randomblob(16))) FROM tasks;
