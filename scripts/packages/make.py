"""Makes the files of a release from programs that are built: make.py OUT VERSION TIME SOURCES SHARE TRIPLE=PROGRAM...

SOURCES is the unpacked crate, SHARE has the manual page and the completions, the environment the names of packaging/names
and, in GLIBC, the newest version of glibc that the programs may need, if there is a limit.
"""

import hashlib
import os
import sys
from pathlib import Path

import crates
import deb
import npm
import wheel
from release import Release, Target
from reproducible import File, tar_gz

PACKAGING = Path(__file__).parents[2] / "packaging"
NAMES = ("REPOSITORY", "CRATE", "NPM_SCOPE", "PYPI", "MAINTAINER")
SHARED = {
    "ralph.1": "man/man1/ralph.1",
    "ralph.bash": "completions/ralph.bash",
    "_ralph": "completions/_ralph",
    "ralph.fish": "completions/ralph.fish",
}


def archives(release: Release, targets: list[Target]) -> None:
    """As `install.sh` and `cargo binstall` find them."""
    for target in targets:
        folder = f"ralph-{release.version}-{target.triple}"
        files = [
            File(f"{folder}/ralph", target.program(), 0o755),
            File(f"{folder}/README.md", release.readme()),
            File(f"{folder}/CHANGELOG.md", release.source("CHANGELOG.md")),
            *release.licences(f"{folder}/"),
            *(release.shared(name, f"{folder}/{path}") for name, path in SHARED.items()),
        ]
        release.file(f"{folder}.tar.gz", tar_gz(files, release.time))


def recipes(release: Release) -> None:
    """Those that name this very release."""
    crate = f"{release.names['CRATE']}-{release.version}.crate"
    words = {**release.names, "VERSION": release.version}
    words["SHA256"] = hashlib.sha256((release.out / crate).read_bytes()).hexdigest()
    for path in ("install.sh", "homebrew/ralph.rb"):
        text = (PACKAGING / path).read_text()
        for name, word in words.items():
            text = text.replace(f"@{name}@", word)
        release.file(Path(path).name, text.encode())


def hold(targets: list[Target]) -> None:
    """Refuses a program that would not start with the oldest glibc that it is made for."""
    if limit := os.environ.get("GLIBC"):
        for target in targets:
            needed = target.glibc()
            if needed > tuple(int(number) for number in limit.split(".")):
                needs = ".".join(map(str, needed))
                raise SystemExit(
                    f"error: the program for {target.triple} needs glibc {needs}, and {limit} has to do: "
                    "'readelf --version-info' shows what it calls"
                )


def main(out: str, version: str, time: str, sources: str, share: str, *built: str) -> None:
    names = {name: os.environ[name] for name in NAMES}
    release = Release(version, int(time), Path(out), Path(sources), Path(share), names)
    targets = [Target(triple, Path(program)) for triple, _, program in (target.partition("=") for target in built)]
    hold(targets)
    found, needs = crates.crates(release, targets)
    (release.share / "THIRD-PARTY-LICENCES.txt").write_text(crates.licences(found))
    release.file(f"ralph-{version}.cdx.json", crates.bill_of_materials(release, found, needs))
    for make in (archives, npm.make, wheel.make, deb.make):
        make(release, targets)
    recipes(release)
    release.file("SHA256SUMS", crates.sums(release.out).encode())


main(*sys.argv[1:])
