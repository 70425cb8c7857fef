"""Shell tests: pushes by force, deletions outside the workspaces, and patterns of commands."""

import pytest

from mcpwrap.core.policy.rules import (
    ArgumentCondition,
    Condition,
    Equals,
    NegatedCondition,
    NegatedTest,
    Rule,
    Shell,
)
from mcpwrap.core.policy.shell.judge import judge_shell, shell_hit, with_workspaces
from mcpwrap.core.policy.tristate import FAILS, HOLDS, UNJUDGEABLE, Tristate

PUSHES = Shell("forces_a_push")
DELETES = Shell("deletes_outside", workspaces=("/w", "/home/a/p"))


@pytest.mark.parametrize(
    "args",
    [
        "--force", "-f", "origin main --force", "-uf origin main", "-fu", "--force-with-lease",
        "--force-with-lease=a:b origin", "--mirror", "--delete origin a", "-d origin a", "--forc",
        "--del origin a", "--prune origin", "origin +a", "origin +HEAD:a", "origin :a",
        "-o a -f", "origin a -- +b", "--repo x -f", "-4f",
    ],
)  # fmt: skip
def test_a_push_that_takes_away_commits(args: str) -> None:
    for git in ("git", "git -C d", "git -c a=b -c c=d --git-dir=e --no-pager", "/usr/bin/git"):
        assert judge_shell(f"{git} push {args}", PUSHES) is HOLDS, git


@pytest.mark.parametrize(
    "line",
    [
        "git push", "git push -u origin f", "git push origin fix-f", "git push origin a:b",
        "git push --follow-tags", "git push --fo", "git push origin :", "git push -o -f",
        "git push --push-option --force", "git push --dry-run --force", "git push -nf --dry-run",
        "git push -- -f", "git push --no-verify", "git push --force-if-includes",
        "git rm -f a", "git push-all --force", "git -C push status -f", "git fetch -f +a:b",
        "git stash push -f", "git", "git --version", "echo git push -f", "git commit -m 'push -f'",
    ],
)  # fmt: skip
def test_a_push_that_only_adds(line: str) -> None:
    assert judge_shell(line, PUSHES) is FAILS


@pytest.mark.parametrize(
    ("line", "truth"),
    [
        ("rm -rf a", FAILS),
        ("rm -rf a/../b ./c", FAILS),
        ("rm -rf .", HOLDS),
        ("rm -rf a/..", HOLDS),
        ("rm -rf ..", HOLDS),
        ("rm -rf ../a", HOLDS),
        ("rm -rf ..a", FAILS),
        ("rm -rf a b /c", HOLDS),
        ("rm -r -- -f /c", HOLDS),
        ("rm -rf -- -a", FAILS),
        ("rm --rec /c", HOLDS),
        ("rm --force /c", HOLDS),
        ("rm -v /c", FAILS),  # one file, and it must exist
        ("rm -- -rf /c", FAILS),
        ("rm -rf --help /c", FAILS),
        ("rm -rf", FAILS),
        ("rm -rf /w/a", FAILS),
        ("rm -rf /w//./a/", FAILS),
        ("rm -rf /w", HOLDS),
        ("rm -rf /w/", HOLDS),
        ("rm -rf /w/a/..", HOLDS),
        ("rm -rf /w2", HOLDS),
        ("rm -rf /home/a/p/*", FAILS),
        ("rm -rf /home/a", HOLDS),
        ("rm -rf /tmp/a /var/tmp/b", FAILS),
        ("rm -rf /tmp", HOLDS),
        ("rm -rf /../tmp/a", FAILS),
        ("rm -rf / ", HOLDS),
        ("rm -rf ~", HOLDS),
        ("rm -rf ~/../x", HOLDS),
        ("rm -rf $a", HOLDS),
        ("rm -rf $a/../b", HOLDS),
        ("rm -rf x/$a", FAILS),
        ("cd /w && rm -rf a", FAILS),
        ("cd /w && rm -rf .", HOLDS),
        ("cd /w/b && rm -rf ../a", FAILS),
        ("cd /w && rm -rf ../a", HOLDS),
        ("cd /etc && rm -rf *", HOLDS),
        ("rm -rf *", FAILS),
        ("find . -delete", FAILS),
        ("find -name a -delete", FAILS),
        ("find /w -delete", FAILS),
        ("find /w /etc -delete", HOLDS),
        ("find .. -delete", HOLDS),
        ("find /etc -name a", FAILS),
        ("find /etc -exec rm -rf {} +", HOLDS),
        ("shred /etc/a", HOLDS),
        ("shred a", FAILS),
        ("rimraf ~/a", HOLDS),
        ("dd if=a of=/dev/sda", HOLDS),
        ("dd if=/dev/sda of=a", FAILS),
        ("dd if=a of=/dev/null", FAILS),
        ("mkfs -t ext4 /dev/vdb", HOLDS),
        ("mkfs.ext4 a.img", FAILS),
        ("wipefs -a /dev/nvme0n1", HOLDS),
        ("cat a > /dev/sdb", HOLDS),
        ("> /dev/sdb", HOLDS),
        ("cat a > /dev/null", FAILS),
        ("git rm -rf /a", FAILS),
        ("git clean -fdx", FAILS),
        ("npm rm -rf /a", FAILS),
    ],
)
def test_deletions_outside(line: str, truth: Tristate) -> None:
    assert judge_shell(line, DELETES) is truth


@pytest.mark.parametrize(
    ("line", "truth"),
    [
        ("psql -c 'DROP TABLE a'", HOLDS),
        ("psql -c'TRUNCATE a'", HOLDS),
        ("psql -Atc 'DROP TABLE a'", HOLDS),
        ("psql -At 'DROP TABLE a'", FAILS),
        ("cat <<E | psql\nDROP TABLE a;\nE", HOLDS),
        ("psql -X --command='DELETE FROM a' db", HOLDS),
        ("psql -c 'DELETE FROM a WHERE b = 1'", FAILS),
        ("psql -c 'SELECT 1' 'DROP TABLE a'", FAILS),  # the name of a user
        ("psql -c 'the drop'", FAILS),
        ("psql", FAILS),
        ("psql <<E\nDROP TABLE a;\nE", HOLDS),
        ("psql <<< 'DROP TABLE a'", HOLDS),
        ("echo 'DROP TABLE a' | sudo -u b psql", HOLDS),
        ("cat a | psql", FAILS),
        ("mysql -e 'DROP TABLE a'", HOLDS),
        ("sqlite3 -batch a.db 'DROP TABLE a'", HOLDS),
        ("sqlite3 'DROP TABLE a'", FAILS),  # the name of a database
        ("echo 'DROP TABLE a'", FAILS),
        ("psql -c 'DROP TABLE a", UNJUDGEABLE),
        ("psql -c 'SELECT 1", FAILS),
    ],
)
def test_sql_for_a_client(line: str, truth: Tristate) -> None:
    assert judge_shell(line, Shell("drops_data")) is truth


@pytest.mark.parametrize(
    ("pattern", "line", "truth"),
    [
        ("a b", "a b", HOLDS),
        ("a b", "a", FAILS),
        ("a b", "a c b", FAILS),
        ("a b", "a -x b", HOLDS),
        ("a b", "a -x v b", HOLDS),  # v may be the value of -x
        ("a b", "a -x=v c b", FAILS),
        ("a b", "a -x v c b", FAILS),
        ("a b", "a bc", FAILS),
        ("a b", "b a", FAILS),
        ("a b", "a b --help", FAILS),
        ("a b", "a b --dry-run", HOLDS),  # a program that does not know it may go on
        ("kubectl b", "kubectl b --dry-run=client", FAILS),
        ("kubectl b", "kubectl b --dry-run=none", HOLDS),
        ("helm b", "helm b --dry-run", FAILS),
        ("helm b", "helm b --dry-run=false", HOLDS),
        ("a b c", "a b c", HOLDS),
        ("a b c", "a b x c", FAILS),
        ("a * c", "a b c", HOLDS),
        ("a * c", "a -p v b c", HOLDS),
        ("a b|c d*", "a c def x", HOLDS),
        ("a|b* c", "bxy c", HOLDS),
        ("a --force|-f", "a x -f", HOLDS),
        ("a --force|-f", "a x --force=yes", HOLDS),
        ("a --force|-f", "a x --force=false", FAILS),
        ("a --force|-f", "a x -vf", HOLDS),
        ("a --force|-f", "a -- -f", FAILS),
        ("a -v", "a --verbose", FAILS),
        ("a -destroy", "a -destroy", HOLDS),
        ("a -destroy", "a -d", FAILS),
        ("a b -v", "a -v", FAILS),
        ("a -r -f", "a -rf", HOLDS),
        ("a -r -f", "a -r", FAILS),
    ],
)
def test_patterns_of_commands(pattern: str, line: str, truth: Tristate) -> None:
    assert judge_shell(line, Shell("runs", ("never this", pattern))) is truth


@pytest.mark.parametrize(
    ("test", "text", "truth"),
    [
        (PUSHES, "git push -f\n'", HOLDS),  # a shell carries it out before it finds the error
        (PUSHES, "git push '", UNJUDGEABLE),
        (PUSHES, "git status '", FAILS),
        (PUSHES, "don't push", FAILS),
        (DELETES, "rm -rf '", UNJUDGEABLE),
        (DELETES, "find . '-delete", UNJUDGEABLE),
        (DELETES, "the farm's gate", FAILS),
        (DELETES, "dd '", FAILS),
        (Shell("runs", ("a b*c|d",)), "a bxc '", UNJUDGEABLE),
        (Shell("runs", ("a b*c|d",)), "a x '", FAILS),
        (DELETES, "rm -rf " + "a" * 70_000, UNJUDGEABLE),
        (DELETES, "ls " + "a" * 70_000, FAILS),
        (DELETES, "sh -c 'echo \"' && rm -r x", UNJUDGEABLE),
    ],
)
def test_what_cannot_be_parsed_is_judged_by_its_words(
    test: Shell, text: str, truth: Tristate
) -> None:
    assert judge_shell(text, test) is truth


@pytest.mark.parametrize(
    ("text", "hit"),
    [
        ("ls && rm  -rf '/a b' | cat", "rm -rf '/a b'"),
        ("sh -c 'cd /; rm -rf x'", "rm -rf x"),
        ("sudo rm -r\\\nf /a", "sudo rm -rf /a"),
        ("rm -rf /a\x1b[0m\u202e", "rm -rf /a [0m"),
        ("rm -rf /" + "a" * 200, "rm -rf /" + "a" * 109 + "..."),
        ("rm -rf a", ""),
    ],
)
def test_the_command_that_hit_is_named(text: str, hit: str) -> None:
    assert shell_hit(text, DELETES) == hit


@pytest.mark.parametrize(
    ("condition", "placed"),
    [
        (ArgumentCondition("a", Shell("runs", ("b",))),
         ArgumentCondition("a", Shell("runs", ("b",), ("/w",)))),
        (ArgumentCondition("a", NegatedTest(Shell("runs"))),
         ArgumentCondition("a", NegatedTest(Shell("runs", (), ("/w",))))),
        (NegatedCondition(ArgumentCondition("a", Shell("runs"))),
         NegatedCondition(ArgumentCondition("a", Shell("runs", (), ("/w",))))),
        (ArgumentCondition("a", Equals("1")), ArgumentCondition("a", Equals("1"))),
    ],
)  # fmt: skip
def test_shell_tests_know_the_workspaces(condition: Condition, placed: Condition) -> None:
    beside = ArgumentCondition("b", Shell("forces_a_push"))
    rule = Rule(name="r", action="block", tools=("t",), when=(condition, beside))
    assert with_workspaces(rule, ()) == rule
    assert with_workspaces(rule, ("/w",)).when[0] == placed
