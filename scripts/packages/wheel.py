"""Wheels: the program is the script that pip puts into the environment's folder of programs."""

import base64
import hashlib

from release import DESCRIPTION, Release, Target
from reproducible import File, zipped


def platforms(target: Target) -> list[str]:
    if target.is_musl:
        return [f"musllinux_1_1_{target.cpu}"]
    # The first version that has the tag, and all of Rust's programs start with. A pip before 20.3 takes the older name alone.
    major, minor = max(target.glibc(), (2, 17))
    older = [f"manylinux2014_{target.cpu}"] if (major, minor) == (2, 17) else []
    return [*older, f"manylinux_{major}_{minor}_{target.cpu}"]


def digest(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


def make(release: Release, targets: list[Target]) -> None:
    name, version = release.names["PYPI"], release.version
    distribution = f"{name.replace('-', '_')}-{version}"
    for target in targets:
        info = f"{distribution}.dist-info"
        tags = platforms(target)
        metadata = [
            "Metadata-Version: 2.4",
            f"Name: {name}",
            f"Version: {version}",
            f"Summary: {DESCRIPTION}",
            f"Project-URL: Source, {release.names['REPOSITORY']}",
            "License-Expression: MIT",
            "License-File: LICENSE",
            "License-File: THIRD-PARTY-LICENCES.txt",
            "Description-Content-Type: text/markdown",
        ]
        wheel = ["Wheel-Version: 1.0", "Generator: ralph", "Root-Is-Purelib: false", *(f"Tag: py3-none-{tag}" for tag in tags)]
        text = lambda lines: "".join(f"{line}\n" for line in lines).encode()
        files = [
            File(f"{distribution}.data/scripts/ralph", target.program(), 0o755),
            *release.licences(f"{info}/licenses/"),
            File(f"{info}/METADATA", text(metadata) + b"\n" + release.readme()),
            File(f"{info}/WHEEL", text(wheel)),
        ]
        record = [f"{file.path},sha256={digest(file.content)},{len(file.content)}" for file in files]
        record_path = f"{info}/RECORD"
        files.append(File(record_path, text([*record, f"{record_path},,"])))
        release.file(f"{distribution}-py3-none-{'.'.join(tags)}.whl", zipped(files, release.time))
