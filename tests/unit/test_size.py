"""What `make size` counts."""

from __future__ import annotations

from tests.size import page, size_of

SOURCE = '''"""An idea,
told in two lines."""

# A reason.
X = 1  # a remark beside code is code


def f() -> str:
    """What it gives."""

    return """text
# that is no comment
"""
'''


def test_docstrings_are_comments_and_texts_are_code() -> None:
    size = size_of("a/b.py", SOURCE)
    assert (size.code, size.comment, size.blank) == (5, 4, 4)


def test_a_function_has_as_many_lines_as_it_has_code() -> None:
    assert size_of("a/b.py", SOURCE).functions == ((4, "a/b.py:f"),)


def test_a_folder_counts_its_own_modules_and_their_lines() -> None:
    sizes = [size_of(path, "X = 1\n") for path in ("a/__init__.py", "a/b.py", "a/c/d.py")]
    rows = {
        line.split()[0]: line.split()[1:]
        for line in page([*sizes, size_of("e/f.py", SOURCE)]).splitlines()
    }
    assert rows["a"] == ["1", "2", "0", "0"]
    assert rows["a/c"] == ["1", "1", "0", "0"]
    assert rows["all"] == ["3", "8", "4", "4"]
