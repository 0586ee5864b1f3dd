"""Packages for Debian and its relatives, of the programs that are linked with glibc."""

import hashlib
from email.utils import formatdate

from release import Release, Target
from reproducible import File, ar, compressed, tar_gz

# The package of each library that a program may need, and since when.
PACKAGES = {"libgcc_s.so.1": "libgcc-s1 (>= 4.2)"}
OF_GLIBC = ("libc.so.", "libm.so.", "libpthread.so.", "libdl.so.", "librt.so.", "libutil.so.", "ld-linux")

DESCRIPTION = """\
Description: runs coding agents in a loop until the work is proven done
 ralph gives a coding agent a fresh start for each piece of work: it sends a
 prompt to a new process of the agent, again and again, while everything that
 has to be remembered lives in files and git. It watches the agent, waits for
 usage limits, proves claims, and leaves no process behind.
"""


def depends(target: Target) -> str:
    needed = {"git (>= 1:2.30)"}
    for library in target.libraries():
        if library.startswith(OF_GLIBC):
            needed.add("libc6 (>= {}.{})".format(*target.glibc()))
        elif library in PACKAGES:
            needed.add(PACKAGES[library])
        else:
            raise SystemExit(f"error: {target.binary} needs {library}: name its package in scripts/packages/deb.py")
    return ", ".join(sorted(needed))


def copyright(release: Release) -> bytes:
    licence = release.source("LICENSE").decode().strip()
    _, owner, text = licence.split("\n\n", 2)
    indented = "\n".join(f" {line}" if line else " ." for line in text.split("\n"))
    lines = [
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/",
        f"Source: {release.names['REPOSITORY']}",
        "Comment: THIRD-PARTY-LICENCES.txt.gz beside this file has those of the crates inside.",
        "",
        "Files: *",
        f"Copyright: {owner.strip().removeprefix('Copyright (c) ')}",
        "License: Expat",
        indented,
    ]
    return ("\n".join(lines) + "\n").encode()


def changelog(release: Release, version: str) -> bytes:
    date = formatdate(release.time, usegmt=True).replace("GMT", "+0000")
    text = f"ralph ({version}) unstable; urgency=medium\n\n  * Release {release.version}; changelog.gz says what has changed.\n"
    return f"{text}\n -- {release.names['MAINTAINER']}  {date}\n".encode()


def files(release: Release, target: Target, version: str) -> list[File]:
    doc = "./usr/share/doc/ralph"
    share = lambda name: (release.share / name).read_bytes()
    # Libraries are crates that are compiled in; the package does not go to Debian, where a bug asks for it; build.rs says why the
    # program lies at fixed addresses.
    tags = ["embedded-library", "initial-upload-closes-no-bugs", "hardening-no-pie"]
    overrides = "".join(f"ralph: {tag} *\n" for tag in tags).encode()
    return [
        File("./usr/bin/ralph", target.program(), 0o755),
        File("./usr/share/man/man1/ralph.1.gz", compressed(share("ralph.1"))),
        release.shared("ralph.bash", "./usr/share/bash-completion/completions/ralph"),
        release.shared("_ralph", "./usr/share/zsh/vendor-completions/_ralph"),
        release.shared("ralph.fish", "./usr/share/fish/vendor_completions.d/ralph.fish"),
        File(f"{doc}/copyright", copyright(release)),
        File(f"{doc}/THIRD-PARTY-LICENCES.txt.gz", compressed(share("THIRD-PARTY-LICENCES.txt"))),
        File(f"{doc}/changelog.gz", compressed(release.source("CHANGELOG.md"))),
        File(f"{doc}/changelog.Debian.gz", compressed(changelog(release, version))),
        File("./usr/share/lintian/overrides/ralph", overrides),
    ]


def make(release: Release, targets: list[Target]) -> None:
    version = f"{release.version.replace('-', '~')}-1"
    for target in targets:
        if target.is_musl:
            continue
        content = files(release, target, version)
        control = "\n".join([
            "Package: ralph",
            f"Version: {version}",
            f"Architecture: {target.arch('deb')}",
            f"Maintainer: {release.names['MAINTAINER']}",
            f"Installed-Size: {sum(-(-len(file.content) // 1024) for file in content)}",
            f"Depends: {depends(target)}",
            "Recommends: ca-certificates",
            "Suggests: tmux, gh, libnotify-bin",
            "Section: devel",
            "Priority: optional",
            f"Homepage: {release.names['REPOSITORY']}",
            DESCRIPTION,
        ])
        md5 = "".join(f"{hashlib.md5(file.content).hexdigest()}  {file.path[2:]}\n" for file in content)
        about = [File("./control", control.encode()), File("./md5sums", md5.encode())]
        members = [
            ("debian-binary", b"2.0\n"),
            ("control.tar.gz", tar_gz(about, release.time)),
            ("data.tar.gz", tar_gz(content, release.time)),
        ]
        release.file(f"ralph_{version}_{target.arch('deb')}.deb", ar(members, release.time))
