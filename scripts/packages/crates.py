"""The crates inside the program: their licences, and a bill of materials."""

import hashlib
import json
import subprocess
import tomllib
from datetime import datetime, timezone
from pathlib import Path

from release import Release, Target

LICENCE_FILES = ("licen", "copying", "notice", "unlicense", "copyright")


def crates(release: Release, targets: list[Target]) -> tuple[list[dict], dict[str, set[str]]]:
    """The crates that are compiled for these targets, sorted, and of each one those that it needs."""
    platforms = [word for target in targets for word in ("--filter-platform", target.triple)]
    call = ["cargo", "metadata", "--format-version=1", "--locked", *platforms]
    metadata = json.loads(subprocess.run(call, check=True, capture_output=True, cwd=release.sources).stdout)
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    needs: dict[str, set[str]] = {}
    waiting = [metadata["resolve"]["root"]]
    while waiting:
        crate = waiting.pop()
        if crate not in needs:
            is_compiled = lambda need: any(kind["kind"] != "dev" for kind in need["dep_kinds"])
            needs[crate] = {need["pkg"] for need in nodes[crate]["deps"] if is_compiled(need)}
            waiting += needs[crate]
    found = [package for package in metadata["packages"] if package["id"] in needs]
    return sorted(found, key=lambda package: (package["name"], package["version"])), needs


def licences(found: list[dict]) -> str:
    """A list of the crates, and each text once with the crates that have it."""
    texts: dict[str, list[str]] = {}
    lines = ["ralph contains the standard library of Rust (MIT OR Apache-2.0), and these crates:", ""]
    for crate in found:
        name = f"{crate['name']} {crate['version']}"
        lines.append(f"- {name}: {crate['license'] or 'see its text'}")
        for file in sorted(Path(crate["manifest_path"]).parent.iterdir()):
            if file.is_file() and file.name.lower().startswith(LICENCE_FILES):
                text = file.read_text(errors="replace").replace("\r\n", "\n").strip()
                texts.setdefault(text, []).append(name)
    for text, users in texts.items():
        lines += ["", "-" * 80, "Of: " + ", ".join(dict.fromkeys(users)), "", text]
    return "\n".join(lines) + "\n"


def bill_of_materials(release: Release, found: list[dict], needs: dict[str, set[str]]) -> bytes:
    """CycloneDX, without what differs from build to build."""
    locked = tomllib.loads(release.source("Cargo.lock").decode())["package"]
    sums = {(crate["name"], crate["version"]): crate.get("checksum") for crate in locked}
    reference = {crate["id"]: f"pkg:cargo/{crate['name']}@{crate['version']}" for crate in found}

    def component(crate: dict) -> dict:
        name, version = crate["name"], crate["version"]
        made = {"type": "library", "bom-ref": reference[crate["id"]], "name": name, "version": version}
        made["purl"] = reference[crate["id"]]
        if crate["license"]:
            made["licenses"] = [{"expression": crate["license"].replace("/", " OR ")}]
        if checksum := sums.get((name, version)):
            made["hashes"] = [{"alg": "SHA-256", "content": checksum}]
        return made

    is_own = lambda crate: crate["source"] is None
    own = next(component(crate) for crate in found if is_own(crate))
    bill = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(release.time, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": {**own, "type": "application"},
        },
        "components": [component(crate) for crate in found if not is_own(crate)],
        "dependencies": [
            {"ref": reference[crate["id"]], "dependsOn": sorted(reference[need] for need in needs[crate["id"]])}
            for crate in found
        ],
    }
    return (json.dumps(bill, indent=1) + "\n").encode()


def sums(out: Path) -> str:
    """The checksums of all files in a folder, as `sha256sum --check` reads them."""
    files = sorted(file for file in out.iterdir() if file.name != "SHA256SUMS")
    return "".join(f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in files)
