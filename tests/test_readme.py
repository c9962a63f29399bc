"""The README's Python is run as it stands."""

import re
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"
BLOCKS = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_examples_run(block, capsys):
    exec(compile(block, str(README), "exec"), {})
    assert capsys.readouterr().out


def test_there_is_an_example():
    assert BLOCKS
