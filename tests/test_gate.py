"""The gate does as a newcomer does: the README's commands in their order, PyTorch after them, and then what was skipped without it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import tallies

import softfloat

CHECKOUT = Path(__file__).parent.parent
RUN, SKIPPED = CHECKOUT / ".ci" / "run", CHECKOUT / ".ci" / "skipped"
pytestmark = pytest.mark.skipif(not RUN.exists(), reason="not in a checkout")

REPORT = """<testsuites><testsuite>
<testcase classname="" name="tests.test_site"><skipped message="collection skipped">('x', 1, "could not import 'a'")</skipped></testcase>
<testcase classname="tests.torch.test_amp" name="test_x[0.5-a::b]"><skipped message="could not import 'torch'"/></testcase>
<testcase classname="tests.torch.test_amp" name="test_z"/>
<testcase classname="softfloat.torch" name="__init__"/>
<testcase classname="" name="softfloat.torch.__init__"><skipped message="unable to import module"/></testcase>
<testcase classname="" name="softfloat.torch.emulation"><skipped message="unable to import module"/></testcase>
<testcase classname="docs.tutorial.md" name="tutorial.md"><skipped message="all tests skipped by +SKIP option"/></testcase>
</testsuite></testsuites>"""


def test_the_commands_of_the_readme_in_order_and_pytorch_after_them() -> None:
    script = RUN.read_text(encoding="utf-8")
    readme = (CHECKOUT / "README.md").read_text(encoding="utf-8")
    installs = re.findall(r"^## (.*)\n\n```sh\npip install", readme, re.MULTILINE)
    assert len(installs) == 3
    assert re.findall(r'^[^#\n]*readme "(.*)"', script, re.MULTILINE) == installs
    last = script.index(f'readme "{installs[-1]}"')
    assert "torch==" not in script[:last]
    assert last < script.index("torch==") < script.index(".ci/skipped")


def test_what_was_skipped_is_named_as_pytest_names_it(tmp_path: Path) -> None:
    report = tmp_path / "tests.xml"
    report.write_text(REPORT, encoding="utf-8")
    done = subprocess.run([sys.executable, str(SKIPPED), str(report)], cwd=CHECKOUT, capture_output=True, text=True)
    names = ["docs/tutorial.md::tutorial.md", "softfloat/torch", "tests/test_site.py"]
    assert (done.stdout.splitlines(), done.stderr) == ([*names, "tests/torch/test_amp.py::test_x[0.5-a::b]"], "")
    report.write_text(re.sub("<skipped.*?(/>|</skipped>)", "", REPORT), encoding="utf-8")
    done = subprocess.run([sys.executable, str(SKIPPED), str(report)], cwd=CHECKOUT, capture_output=True, text=True)
    assert (done.returncode, "nothing was skipped" in done.stderr) == (1, True)


def test_what_two_runs_held_against_outside_data_is_counted_together(tmp_path: Path) -> None:
    """The second runs what the first skipped; the page is made of both."""
    kept, key, other = (
        tmp_path / "counts.json",
        ("MPFR", "add", "half", "to_odd"),
        ("TestFloat", "mul", "half", "to_odd"),
    )
    assert tallies.kept_with(kept, {key: (3, 0)}) == {key: (3, 0)}
    assert tallies.kept_with(kept, {key: (2, 1), other: (5, 0)}) == {key: (5, 1), other: (5, 0)}
    assert tallies.kept_with(kept, {}) == {key: (5, 1), other: (5, 0)}
    runs = re.findall(r"^.*--conformance-counts=\S*", RUN.read_text(encoding="utf-8"), re.MULTILINE)
    assert ["junitxml" in runs[0], len(runs)] == [True, 2]


def test_counts_of_workers_are_kept_once(tmp_path: Path) -> None:
    command, found = (
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/reference/test_reference.py"],
        [],
    )
    for workers in ("0", "2"):
        kept = tmp_path / f"counts{workers}.json"
        more = "-n", workers, "-m", "conformance", "-k", "sqrt", f"--conformance-counts={kept}"
        subprocess.run([*command, *more], cwd=CHECKOUT, check=True, capture_output=True, timeout=300)
        found.append(sorted(json.loads(kept.read_text(encoding="utf-8"))))
    assert found[0] == found[1] != []


RELEASE, WORKFLOW = CHECKOUT / ".ci" / "release", CHECKOUT / ".ci" / "release.yml"


def release(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(RELEASE), *arguments], cwd=CHECKOUT, capture_output=True, text=True)


def test_a_release_is_refused_before_anything_is_built(tmp_path: Path) -> None:
    """Of a tag that is not the version's."""
    done = release(str(tmp_path / "release"), "v0.0.999")
    assert done.returncode == 1
    version = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    assert f"the tag is v0.0.999, and pyproject.toml has {version}" in done.stderr
    assert not list((tmp_path / "release").iterdir())
    done = release()
    assert (done.returncode, done.stderr) == (2, ".ci/release FOLDER [TAG]\n")


def test_the_version_stands_in_two_places() -> None:
    version = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    assert version == softfloat.__version__
    assert (CHECKOUT / "CHANGELOG.md").read_text(encoding="utf-8").split("\n## ")[1].startswith(f"{version} (")


def test_the_workflow_publishes_what_the_script_built_and_tried() -> None:
    yaml: Any = pytest.importorskip("yaml")
    workflow = yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))
    jobs = workflow["jobs"]
    assert workflow["permissions"] == {"contents": "read"}
    (run,) = (step["run"] for step in jobs["build"]["steps"] if "run" in step)
    assert run.startswith(".ci/release build/release ")
    paths = {step["with"]["path"] for step in jobs["build"]["steps"] if "upload" in step.get("uses", "")}
    assert paths == {"build/release/dist", "build/release/site"}
    assert (jobs["platforms"]["needs"], jobs["publish"]["needs"], jobs["site"]["needs"]) == (
        "build",
        ["build", "platforms"],
        "publish",
    )
    for name in ("publish", "site"):
        assert jobs[name]["if"] == "github.event_name == 'push'"
    assert not any("if" in jobs[name] for name in ("build", "platforms"))
    versions = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["classifiers"]
    assert all(
        f"Programming Language :: Python :: {x}" in versions for x in jobs["platforms"]["strategy"]["matrix"]["python"]
    )
