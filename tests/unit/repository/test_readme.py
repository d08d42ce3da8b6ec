"""What the README shows works."""

from __future__ import annotations

import re
from pathlib import Path

from experiments.model import load_experiment
from tests.unit.repository import rooms


def test_the_files_in_the_readme_are_valid_and_mean_what_it_says(tmp_path: Path) -> None:
    text = (rooms.ROOT / "README.md").read_text(encoding="utf-8")
    block = re.search(r"```yaml\n(.*?)```", text, re.DOTALL)
    assert block is not None
    lines = block.group(1).splitlines()
    names = re.fullmatch(r"# (\S+) +# (\S+)", lines[0])
    assert names is not None
    column = names.start(2) - len("# ")
    (tmp_path / names.group(1)).write_text("\n".join(line[:column].rstrip() for line in lines))
    (tmp_path / names.group(2)).write_text("\n".join(line[column:] for line in lines))
    experiment = load_experiment(tmp_path / names.group(2))
    assert len(experiment.fabric.hosts) == 8
    assert [model.kind for model in experiment.model.transport_models()] == ["tcp", "mrc"]
    assert experiment.model.repeat == 3
