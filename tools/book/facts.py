"""Facts that the versions page quotes instead of typing: what is allowed, what is tested, on which Python."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

import yaml
from packaging.markers import Marker

_PIN = re.compile(r"^(?P<name>[a-z0-9._-]+)==(?P<version>[^ ;\\]+)(?: ; (?P<marker>[^\\]+))?", re.MULTILINE)
_TESTED = {"python_version": "3.11", "python_full_version": "3.11.7"}  # what all tests and outputs ran on


@dataclass(frozen=True)
class Package:
    """A package that the course stands on.

    Attributes:
        name: its name in the package registry.
        allowed: the bounds that pyproject.toml sets; "" where another package brings it along.
        tested: the version in the lock file for the Python that all tests run on.
    """

    name: str
    allowed: str
    tested: str


def tested_packages(root: Path) -> tuple[Package, ...]:
    """Returns the quoted packages, with bounds from pyproject.toml and versions from requirements.lock."""
    settings = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    project = settings["project"]
    wanted = [
        *project["dependencies"],
        *(item for group in project["optional-dependencies"].values() for item in group),
    ]
    bounds = dict(_split_requirement(requirement) for requirement in wanted)
    pins = {
        match["name"]: match["version"]
        for match in _PIN.finditer((root / "requirements.lock").read_text(encoding="utf-8"))
        if not match["marker"] or Marker(match["marker"]).evaluate(_TESTED)
    }
    return tuple(
        Package(name=name, allowed=bounds.get(name, ""), tested=pins[name])
        for name in settings["tool"]["course"]["quoted"]
    )


def _split_requirement(requirement: str) -> tuple[str, str]:
    name, bounds = re.findall(r"^([A-Za-z0-9._-]+)(?:\[[^\]]*\])?(.*)$", requirement.strip())[0]
    return name.lower(), bounds.strip()


def python_versions(root: Path) -> tuple[str, ...]:
    """Returns the Python versions on which every change is tested, as the workflow lists them."""
    workflow = yaml.safe_load((root / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8"))
    return tuple(workflow["jobs"]["test"]["strategy"]["matrix"]["python"])
