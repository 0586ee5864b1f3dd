"""Archives whose bytes follow from their content alone: sorted, of one time, owned by root."""

import gzip
import io
import tarfile
import zipfile
from dataclasses import dataclass
from datetime import datetime, timezone


@dataclass(frozen=True)
class File:
    """A file in an archive. Its mode does not follow the umask of the builder."""

    path: str
    content: bytes
    mode: int = 0o644


def compressed(content: bytes, level: int = 9) -> bytes:
    made = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", compresslevel=level, fileobj=made, mtime=0) as stream:
        stream.write(content)
    return made.getvalue()


def folders(files: list[File]) -> list[str]:
    """The folders of these files, each before what lies in it."""
    above = {"/".join(parts[:n]) for file in files for parts in [file.path.split("/")] for n in range(1, len(parts))}
    return sorted(folder for folder in above if folder not in ("", "."))


def tar_gz(files: list[File], time: int, with_folders: bool = True) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        def add(name: str, mode: int, content: bytes | None) -> None:
            entry = tarfile.TarInfo(name)
            entry.mode, entry.mtime, entry.uname, entry.gname = mode, time, "root", "root"
            if content is None:
                entry.type = tarfile.DIRTYPE
                tar.addfile(entry)
            else:
                entry.size = len(content)
                tar.addfile(entry, io.BytesIO(content))

        for folder in folders(files) if with_folders else []:
            add(folder, 0o755, None)
        for file in sorted(files, key=lambda file: file.path):
            add(file.path, file.mode, file.content)
    # A program gets one hundredth smaller by the highest level, which takes three times as long.
    return compressed(made.getvalue(), level=6)


def zipped(files: list[File], time: int) -> bytes:
    made = io.BytesIO()
    # The format knows no year before 1980.
    moment = datetime.fromtimestamp(max(time, 315532800), timezone.utc).timetuple()[:6]
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        for file in files:
            entry = zipfile.ZipInfo(file.path, moment)
            entry.compress_type, entry.create_system = zipfile.ZIP_DEFLATED, 3
            entry.external_attr = (0o100000 | file.mode) << 16
            archive.writestr(entry, file.content)
    return made.getvalue()


def ar(members: list[tuple[str, bytes]], time: int) -> bytes:
    made = b"!<arch>\n"
    for name, content in members:
        made += f"{name:<16}{time:<12}{0:<6}{0:<6}{'100644':<8}{len(content):<10}`\n".encode()
        made += content + b"\n" * (len(content) % 2)
    return made
