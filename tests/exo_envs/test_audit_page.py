"""The page about audits prints what it says."""

import re
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "auditing.md"
EXAMPLE = re.compile(
    r"<!-- complete example: run as a test -->\n```python\n(.*?)```\n\n```text\n(.*?)```", re.DOTALL
)


def without_shares(text):
    """In how many states something was seen may depend on the version of Gymnasium."""
    return re.sub(r"\d+%", "some %", text)


def test_the_examples_print_what_the_page_says(capsys):
    examples = EXAMPLE.findall(PAGE.read_text(encoding="utf-8"))
    assert len(examples) == 4
    namespace = {}
    for code, said in examples:
        exec(compile(code, str(PAGE), "exec"), namespace)
        printed = capsys.readouterr().out
        assert without_shares(printed) == without_shares(said)


def test_the_tables_name_every_kind_and_way():
    from exo_envs.audit import results

    page = PAGE.read_text(encoding="utf-8")
    ways = (results.DIRECTLY, results.THROUGH_OTHERS, results.OUT_OF_SIGHT)
    assert [word for word in (*results.KINDS, *ways) if f'"{word}"' not in page] == []
