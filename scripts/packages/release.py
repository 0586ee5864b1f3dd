"""What all packages of a release are made of."""

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from reproducible import File

DESCRIPTION = "Runs coding agents in a loop until the work is proven done"


@dataclass(frozen=True)
class Target:
    """A machine that ralph is built for. `arch` has its names in other places."""

    triple: str
    binary: Path

    @property
    def cpu(self) -> str:
        return self.triple.split("-")[0]

    @property
    def is_musl(self) -> bool:
        return self.triple.endswith("musl")

    def arch(self, of: str) -> str:
        return {
            "npm": {"x86_64": "x64", "aarch64": "arm64"},
            "deb": {"x86_64": "amd64", "aarch64": "arm64"},
        }[of][self.cpu]

    def program(self) -> bytes:
        return self.binary.read_bytes()

    def readelf(self, option: str) -> str:
        call = ["readelf", "--wide", option, str(self.binary)]
        env = {**os.environ, "LC_ALL": "C"}
        return subprocess.run(call, check=True, capture_output=True, text=True, env=env).stdout

    def libraries(self) -> list[str]:
        """The shared libraries that the program needs."""
        return re.findall(r"\(NEEDED\).*\[(.+)\]", self.readelf("--dynamic"))

    def glibc(self) -> tuple[int, int]:
        """The oldest glibc that the program starts with."""
        versions = re.findall(r"Name: GLIBC_(\d+)\.(\d+)", self.readelf("--version-info"))
        return max([(int(major), int(minor)) for major, minor in versions], default=(2, 0))


@dataclass(frozen=True)
class Release:
    """`sources` is the unpacked crate, `share` has what the program prints about itself: manual page and completions."""

    version: str
    time: int
    out: Path
    sources: Path
    share: Path
    names: dict[str, str]

    def file(self, name: str, content: bytes) -> None:
        (self.out / name).write_bytes(content)

    def source(self, path: str) -> bytes:
        return (self.sources / path).read_bytes()

    def readme(self) -> bytes:
        """README.md for readers who have not the files beside it: its links lead to the repository, as of this version."""

        def absolute(link: re.Match[str]) -> str:
            shown_as = "raw" if link[1] else "blob"
            return f"{link[1]}[{link[2]}]({self.names['REPOSITORY']}/{shown_as}/v{self.version}/"

        text = self.source("README.md").decode()
        return re.sub(r"(!?)\[([^\]]*)\]\((?!https?:|#)", absolute, text).encode()

    def shared(self, name: str, path: str) -> File:
        return File(path, (self.share / name).read_bytes())

    def licences(self, folder: str) -> list[File]:
        return [
            File(f"{folder}LICENSE", self.source("LICENSE")),
            self.shared("THIRD-PARTY-LICENCES.txt", f"{folder}THIRD-PARTY-LICENCES.txt"),
        ]
