-- Which graph this is, how often a done task of it was opened again, and how often the number of its tasks has changed. Every seal is
-- of the first two, and the tally's of the third as well. Seals of before are none any more: the first run that has a key seals anew
-- what the traces bear out.
ALTER TABLE sealed ADD COLUMN graph TEXT;
ALTER TABLE sealed ADD COLUMN generation INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sealed ADD COLUMN changes INTEGER NOT NULL DEFAULT 0;
-- The sum of a number for each id: which tasks there are.
ALTER TABLE sealed ADD COLUMN ids INTEGER NOT NULL DEFAULT 0;
UPDATE tasks SET seal = NULL;
DELETE FROM sealed;
INSERT INTO sealed (tasks, graph) SELECT count(*), lower(hex(randomblob(16))) FROM tasks;
