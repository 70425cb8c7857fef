"""Lock of an environment: what uv writes, and nothing else."""

import pytest

from mcpwrap.core.execution.packages import package_lock
from mcpwrap.core.execution.packages.package_errors import PackageError

A, B = "a" * 64, "b" * 64
TEXT = f"""\
numpy==2.1 \\
    --hash=sha256:{B} \\
    --hash=sha256:{A}
a-b==1!1.0+cpu \\
    --hash=sha256:{A}
"""


def test_a_lock_has_a_canonical_text() -> None:
    lock = package_lock.parse(TEXT)
    assert lock.versions() == {"a-b": "1!1.0+cpu", "numpy": "2.1"}
    assert lock.text().startswith(f"a-b==1!1.0+cpu \\\n    --hash=sha256:{A}\nnumpy==2.1 \\\n")
    assert package_lock.parse(lock.text()) == lock
    assert package_lock.parse("").text() == ""


def test_the_name_depends_on_hashes_and_interpreter() -> None:
    lock = package_lock.parse(TEXT)
    names = {
        lock.environment_name("3.11 linux"),
        lock.environment_name("3.12 linux"),
        package_lock.parse(TEXT.replace(B, "c" * 64)).environment_name("3.11 linux"),
    }
    assert len(names) == 3
    assert all(len(name) == 64 for name in names)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("numpy==1\n", "not a name"),  # without a hash
        (f"numpy==1 --hash=md5:{A}\n", "not a name"),
        (f"numpy @ https://example.org/x.whl --hash=sha256:{A}\n", "not a name"),
        (f"-r /etc/passwd --hash=sha256:{A}\n", "not a name"),
        (f"--index-url=x\nnumpy==1 --hash=sha256:{A}\n", "not a name"),
        (f"numpy==1 --hash=sha256:{A} ; python_version > '3'\n", "not a name"),
        (f"Numpy==1 --hash=sha256:{A}\n", "not a name"),
        (f"\nnumpy==1 --hash=sha256:{A}\n", "not a name"),
        (f"x==1 --hash=sha256:{A}\nx==2 --hash=sha256:{A}\n", "two versions"),
        ("".join(f"x{n}==1 --hash=sha256:{A}\n" for n in range(513)), "more than 512"),
        ("x" * (1024**2 + 1), "too long"),
    ],
)
def test_another_line_is_refused(text: str, problem: str) -> None:
    with pytest.raises(PackageError, match=problem) as caught:
        package_lock.parse(text)
    assert caught.value.code == "E-PACKAGE-LOCK"
