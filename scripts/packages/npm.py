"""Packages for npm: one for each machine with the program in it, and the one that people install, which starts it."""

import json
from pathlib import Path

from release import DESCRIPTION, Release, Target
from reproducible import File, tar_gz

LAUNCHER = Path(__file__).parents[2] / "packaging/npm"


def name_of(target: Target) -> str:
    return f"ralph-linux-{target.arch('npm')}-{'musl' if target.is_musl else 'glibc'}"


def manifest(release: Release, name: str, **more: object) -> File:
    about = {
        "name": f"{release.names['NPM_SCOPE']}/{name}",
        "version": release.version,
        "description": DESCRIPTION,
        "license": "MIT",
        "repository": {"type": "git", "url": f"git+{release.names['REPOSITORY']}.git"},
        **more,
    }
    return File("package/package.json", (json.dumps(about, indent=2) + "\n").encode())


def pack(release: Release, name: str, files: list[File]) -> None:
    scope = release.names["NPM_SCOPE"].removeprefix("@")
    files = [*files, *release.licences("package/")]
    release.file(f"{scope}-{name}-{release.version}.tgz", tar_gz(files, release.time, with_folders=False))


def make(release: Release, targets: list[Target]) -> None:
    for target in targets:
        about = manifest(
            release,
            name_of(target),
            os=["linux"],
            cpu=[target.arch("npm")],
            libc=["musl" if target.is_musl else "glibc"],
            # Yarn would leave the program in a zip file.
            preferUnplugged=True,
        )
        text = f"The program of {release.names['NPM_SCOPE']}/ralph for {target.triple}. Install that package instead.\n"
        files = [about, File("package/README.md", text.encode())]
        pack(release, name_of(target), [*files, File("package/bin/ralph", target.program(), 0o755)])
    launcher = manifest(
        release,
        "ralph",
        bin={"ralph": "bin/ralph"},
        os=["linux"],
        optionalDependencies={f"{release.names['NPM_SCOPE']}/{name_of(target)}": release.version for target in targets},
    )
    start = (LAUNCHER / "ralph.sh").read_text().replace("@SCOPE@", release.names["NPM_SCOPE"])
    pack(
        release,
        "ralph",
        [
            launcher,
            File("package/README.md", release.readme()),
            File("package/bin/ralph", start.encode(), 0o755),
        ],
    )
