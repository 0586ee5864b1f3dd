"""What a power cut makes of a disk: of what was not synchronised when it came, files are old, empty, cut off or full of NULs, and
renames done or not."""
import os
import pathlib
import shutil
import typing

# What has to be listed for it, see `cutter.py`.
CALLS = ["write", "pwrite64", "writev", "ftruncate", "fsync", "fdatasync", "rename", "renameat", "renameat2", "link", "linkat",
         "openat", "unlink", "unlinkat"]


class Move(typing.NamedTuple):
    """A rename whose folder is not synchronised yet."""

    old: str
    new: str
    # A copy of the file that was replaced, and from where on it was not synchronised.
    kept: str | None
    safe: int | None


class Disk:
    """What of the files below some folders is not synchronised yet, as a list of calls tells it.

    It is a file system that keeps less than those in use: each name may lag behind on its own. One thing is as on all of them: a
    new file that is synchronised has its name. git and SQLite look after what they write.
    """

    def __init__(self, folders):
        self.folders = [str(folder) + "/" for folder in folders]
        # Files, and from where on their content may be lost.
        self.unsafe = {}
        self.moves, self.created, self.removed = [], set(), {}

    def is_ours(self, path):
        return path.startswith(tuple(self.folders)) and "/.git/" not in path

    def take(self, call):
        """Takes the next call that has succeeded."""
        name, paths = call["call"], call["paths"]
        if not self.is_ours(paths[-1] + "/"):
            return
        path = paths[-1]
        if os.path.basename(path).startswith("progress.db") and not name.startswith(("fsync", "fdatasync", "rename", "link")):
            # SQLite's own; ralph only gives a new database its name.
            return
        if name in ("fsync", "fdatasync"):
            self.unsafe.pop(path, None)
            self.created.discard(path)
            self.moves = [move for move in self.moves if os.path.dirname(move.new) != path]
            self.created = {made for made in self.created if os.path.dirname(made) != path}
            self.removed = {gone: kept for gone, kept in self.removed.items() if os.path.dirname(gone) != path}
        elif name == "ftruncate":
            self.unsafe[path] = 0
        elif name.startswith(("write", "pwrite")):
            if call["size"] is not None:
                self.unsafe.setdefault(path, call["size"])
        elif name == "openat":
            if call["flags"] & os.O_CREAT and not call["is_there"]:
                self.created.add(path)
                self.unsafe[path] = 0
        elif name.startswith("rename"):
            old = paths[0]
            self.moves.append(Move(old, path, call.get("kept"), self.unsafe.pop(path, None)))
            self.created -= {old, path}
            self.move_unsafe(old, path)
        elif name.startswith("link"):
            self.created.add(path)
            if paths[0] in self.unsafe:
                self.unsafe[path] = self.unsafe[paths[0]]
        elif name.startswith("unlink"):
            if "kept" in call and path not in self.created:
                self.removed[path] = call["kept"]
            self.created.discard(path)
            self.unsafe.pop(path, None)

    def move_unsafe(self, old, new):
        if old in self.unsafe:
            self.unsafe[new] = self.unsafe.pop(old)

    def cut_power(self, choice):
        """Makes something that may be found then of all that is not synchronised."""
        # Once a later rename to a name is done, the earlier ones have nothing there.
        done = set()
        for move in reversed(self.moves):
            if move.new in done or choice.random() < 0.5 or not os.path.isfile(move.new):
                done.add(move.new)
            else:
                self.undo(move)
        for path in sorted(self.created):
            if choice.random() < 0.3 and os.path.isfile(path):
                os.unlink(path)
        for path, kept in self.removed.items():
            if choice.random() < 0.5 and not os.path.lexists(path) and os.path.isdir(os.path.dirname(path)):
                shutil.copy2(kept, path)
        for path, safe in sorted(self.unsafe.items()):
            if os.path.isfile(path) and not os.path.islink(path):
                damage(pathlib.Path(path), safe, choice)

    def undo(self, move):
        if not os.path.lexists(move.old):
            os.rename(move.new, move.old)
            self.move_unsafe(move.new, move.old)
        else:
            os.unlink(move.new)
            self.unsafe.pop(move.new, None)
        if move.kept:
            shutil.copy2(move.kept, move.new)
            if move.safe is not None:
                self.unsafe[move.new] = move.safe


def damage(path, safe, choice):
    """Leaves all of a file, or nothing but what is safe, or some more, or NULs in the place of the rest."""
    content = path.read_bytes()
    safe = min(safe, len(content))
    end = choice.choice([len(content), safe, choice.randint(safe, len(content))])
    fill = choice.choice([b"", bytes(len(content) - end)])
    path.write_bytes(content[:end] + fill)
