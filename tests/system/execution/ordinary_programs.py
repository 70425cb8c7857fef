"""Programs as agents write them, and the result of each: a table for `test_programs.py`.

The line of a traceback is part of the result: an agent repairs the line that it reads.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from textwrap import dedent

SALES = "city,month,amount\nOslo,1,10\nOslo,2,30\nBergen,1,5\nTromsø,2,7\n"


@dataclass(frozen=True)
class Program:
    """Code, and its result: the whole of it, but fragments of `stderr`, and the start of `hint`."""

    code: str
    stdout: str = ""
    value: str | None = None
    stderr: tuple[str, ...] = ()  # in this order
    exit_code: int = 0
    hint: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    images: tuple[str, ...] = ()  # files of /out that come as image content, with their types
    links: tuple[str, ...] = ()  # those that come as resource links


def _program(code: str, **result: object) -> Program:
    return Program(dedent(code).lstrip("\n"), **result)  # type: ignore[arg-type]


def _line(number: int, function: str = "<module>") -> str:
    return f'File "/tmp/main.py", line {number}, in {function}'


PROGRAMS: dict[str, Program] = {
    # ------------------------------------------------------------------------------ results
    "prints": _program("for n in range(3):\n    print(n, end=' ')\nprint()", stdout="0 1 2 \n"),
    "ends with an expression": _program("5 * 6", value="30"),
    "prints, and ends with an expression": _program(
        """
        words = "the quick brown the fox the".split()
        print(len(words))
        {word: words.count(word) for word in sorted(set(words))}
        """,
        stdout="6\n",
        value="{'brown': 1, 'fox': 1, 'quick': 1, 'the': 3}",
    ),
    "forgets to print": _program(
        "total = sum(range(10))", hint="no output; print() or end with an expression"
    ),
    "exits with a status": _program(
        """
        import sys

        def main() -> int:
            print("checked")
            return 3

        if __name__ == "__main__":
            sys.exit(main())
        """,
        stdout="checked\n",
        exit_code=3,
    ),
    # ------------------------------------------------------------------------------ data
    "reads CSV": _program(
        """
        import csv
        import statistics

        with open("/in/sales.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        amounts = [int(row["amount"]) for row in rows]
        print(len(rows), statistics.mean(amounts), rows[-1]["city"])
        """,
        files={"sales.csv": SALES},
        stdout="4 13 Tromsø\n",
    ),
    "writes JSON": _program(
        """
        import json
        from pathlib import Path

        text = Path("/in/sales.csv").read_text()
        rows = [line.split(",") for line in text.splitlines()]
        Path("/out/sales.json").write_text(json.dumps(rows, ensure_ascii=False))
        """,
        files={"sales.csv": SALES},
        value="115",
        links=("sales.json application/json",),
    ),
    "groups by pandas": _program(
        """
        import pandas as pd

        frame = pd.read_csv("/in/sales.csv")
        print(frame.shape)
        frame.groupby("city")["amount"].sum()
        """,
        files={"sales.csv": SALES},
        stdout="(4, 3)\n",
        value="city\nBergen     5\nOslo      40\nTromsø     7\nName: amount, dtype: int64",
    ),
    "pivots by pandas, and writes CSV": _program(
        """
        import pandas as pd

        frame = pd.read_csv("/in/sales.csv")
        table = frame.pivot_table(index="city", columns="month", values="amount", fill_value=0)
        table.astype(int).to_csv("/out/table.csv")
        print(open("/out/table.csv").read(), end="")
        """,
        files={"sales.csv": SALES},
        stdout="city,1,2\nBergen,5,0\nOslo,10,30\nTromsø,0,7\n",
        links=("table.csv text/csv",),
    ),
    "solves by numpy": _program(
        """
        import numpy as np

        a = np.array([[3.0, 1.0], [1.0, 2.0]])
        x = np.linalg.solve(a, np.array([9.0, 8.0]))
        print(x.round(6).tolist())
        big = np.random.default_rng(1).random((400, 400))
        bool(np.allclose(big @ np.linalg.inv(big), np.eye(400)))
        """,
        stdout="[2.0, 3.0]\n",
        value="True",
    ),
    "queries sqlite": _program(
        """
        import sqlite3

        with sqlite3.connect("/tmp/shop.db") as db:
            db.execute("CREATE TABLE item (name TEXT, price REAL)")
            db.executemany("INSERT INTO item VALUES (?, ?)", [("tea", 2.5), ("coffee", 4.0)])
        db.execute("SELECT name FROM item WHERE price > ?", (3,)).fetchall()
        """,
        value="[('coffee',)]",
    ),
    "uses dates and decimals": _program(
        """
        from datetime import datetime, timedelta
        from decimal import Decimal
        from zoneinfo import ZoneInfo

        start = datetime(2026, 3, 29, 1, 30, tzinfo=ZoneInfo("Europe/Oslo"))
        print((start.astimezone(ZoneInfo("UTC")) + timedelta(hours=1)).isoformat())
        print(Decimal("0.1") + Decimal("0.2"))
        """,
        stdout="2026-03-29T01:30:00+00:00\n0.3\n",
    ),
    "packs files": _program(
        """
        import gzip
        import hashlib
        import tempfile
        import zipfile

        with tempfile.TemporaryDirectory() as folder:
            with gzip.open(f"{folder}/a.gz", "wt") as file:
                file.write("a" * 1000)
            with zipfile.ZipFile("/out/all.zip", "w") as archive:
                archive.write(f"{folder}/a.gz", "a.gz")
        print(hashlib.sha256(b"a").hexdigest()[:8], zipfile.ZipFile("/out/all.zip").namelist())
        """,
        stdout="ca978112 ['a.gz']\n",
        links=("all.zip application/zip",),
    ),
    "uses characters of all lengths": _program(
        """
        text = "naïve Ωmega 日本語 👩‍👩‍👧 שלום"
        print(text, len(text), text.encode()[-2:])
        names = {"größe": 1}
        print(open("/in/Daten + 表.txt").read(), file=open("/out/Ergebnis 表.txt", "w"))
        names
        """,
        files={"Daten + 表.txt": "Grüße, 世界 🌍"},
        stdout="naïve Ωmega 日本語 👩‍👩‍👧 שלום 26 b'\\xd7\\x9d'\n",
        value="{'größe': 1}",
        links=("Ergebnis 表.txt text/plain",),
    ),
    # ------------------------------------------------------------------------------ pictures
    "leaves a plot open": _program(
        """
        import matplotlib.pyplot as plt

        plt.plot([1, 2, 3], [1, 4, 9])
        plt.title("Squares + 平方")
        plt.show()
        """,
        stderr=("figure 1: Glyph 24179 ",),  # DejaVu has no Chinese characters
        images=("figure-1.png image/png",),
    ),
    "saves a plot": _program(
        """
        import matplotlib
        matplotlib.use("Agg")
        import matplotlib.pyplot as plt

        figure, axes = plt.subplots()
        axes.bar(["a", "b"], [3, 5])
        figure.savefig("/out/bars.png", dpi=80)
        print("saved")
        """,
        stdout="saved\n",
        images=("bars.png image/png",),  # once
    ),
    "plots by pandas": _program(
        """
        import pandas as pd

        frame = pd.read_csv("/in/sales.csv")
        axes = frame.plot.bar(x="city", y="amount", figsize=(30, 10))
        """,
        files={"sales.csv": SALES},
        images=("figure-1.png image/png",),
    ),
    "makes several figures": _program(
        """
        import matplotlib.pyplot as plt
        import numpy as np

        t = np.linspace(0, 1, 200)
        for frequency in (1, 5):
            plt.figure()
            plt.plot(t, np.sin(2 * np.pi * frequency * t), label=f"{frequency} Hz")
            plt.legend()
        """,
        images=("figure-1.png image/png", "figure-2.png image/png"),
    ),
    "draws by pillow": _program(
        """
        from PIL import Image, ImageDraw

        image = Image.new("RGB", (200, 100), "white")
        ImageDraw.Draw(image).ellipse((20, 20, 180, 80), fill="red")
        image.save("/out/ellipse.jpg")
        image.size
        """,
        value="(200, 100)",
        images=("ellipse.jpg image/jpeg",),
    ),
    # ------------------------------------------------------------------------------ concurrency
    "gathers by asyncio": _program(
        """
        import asyncio

        async def work(number):
            await asyncio.sleep(0.01)
            return await asyncio.to_thread(pow, number, 2)

        async def main():
            return await asyncio.gather(*(work(number) for number in range(5)))

        print(asyncio.run(main()))
        """,
        stdout="[0, 1, 4, 9, 16]\n",
    ),
    "runs a subprocess by asyncio": _program(
        """
        import asyncio
        import sys

        async def main():
            child = await asyncio.create_subprocess_exec(
                sys.executable, "-c", "print(6 * 7)", stdout=asyncio.subprocess.PIPE
            )
            out, _ = await child.communicate()
            return child.returncode, out

        asyncio.run(main())
        """,
        value="(0, b'42\\n')",
    ),
    "uses a pool of threads": _program(
        """
        from concurrent.futures import ThreadPoolExecutor
        from threading import Lock

        lock, total = Lock(), 0

        def add(number):
            global total
            with lock:
                total += number
            return number

        with ThreadPoolExecutor(8) as pool:
            print(sum(pool.map(add, range(100))), total)
        """,
        stdout="4950 4950\n",
    ),
    "uses a pool of processes": _program(
        """
        from concurrent.futures import ProcessPoolExecutor

        def is_prime(n):
            return n > 1 and all(n % d for d in range(2, int(n**0.5) + 1))

        if __name__ == "__main__":
            with ProcessPoolExecutor(max_workers=4) as pool:
                print(list(pool.map(is_prime, [2, 91, 97])))
        """,
        stdout="[True, False, True]\n",
    ),
    "sends its own classes to a pool": _program(
        """
        import multiprocessing
        from dataclasses import dataclass
        from multiprocessing import shared_memory

        @dataclass
        class Point:
            x: int

        def double(point):
            return Point(point.x * 2)

        if __name__ == "__main__":
            for method in ("fork", "spawn"):
                with multiprocessing.get_context(method).Pool(2) as pool:
                    print(method, pool.map(double, [Point(1), Point(2)]))
            block = shared_memory.SharedMemory(create=True, size=16)
            block.buf[:2] = b"ok"
            print(bytes(block.buf[:2]), multiprocessing.Lock().acquire())
            block.close()
            block.unlink()
        """,
        stdout="fork [Point(x=2), Point(x=4)]\nspawn [Point(x=2), Point(x=4)]\nb'ok' True\n",
    ),
    "runs other programs": _program(
        """
        import os
        import subprocess

        print(subprocess.run(["sort"], input="b\\na\\n", capture_output=True, text=True).stdout)
        print(subprocess.check_output("echo $HOME; pwd", shell=True, text=True), end="", flush=True)
        os.system("echo by the shell")
        """,
        stdout="a\nb\n\n/tmp\n/tmp\nby the shell\n",
        value="0",
    ),
    "logs and warns": _program(
        """
        import logging
        import warnings

        logging.basicConfig(level=logging.INFO, format="%(levelname)s %(lineno)d %(message)s")
        logging.info("begun")
        warnings.warn("old")
        print("done")
        """,
        stdout="done\n",
        stderr=("INFO 5 begun\n", "/tmp/main.py:6: UserWarning: old\n"),
    ),
    "tests itself": _program(
        """
        import unittest

        class Sums(unittest.TestCase):
            def test_right(self):
                self.assertEqual(1 + 1, 2)

            def test_wrong(self):
                self.assertEqual(1 + 1, 3)

        if __name__ == "__main__":
            unittest.main()
        """,
        stderr=(_line(8, "test_wrong"), "AssertionError: 2 != 3", "FAILED (failures=1)"),
        exit_code=1,
    ),
    # ------------------------------------------------------------------------------ mistakes
    "has a syntax error": _program(
        """
        numbers = [1, 2, 3]
        for number in numbers
            print(number)
        """,
        stderr=('File "/tmp/main.py", line 2', "for number in numbers", "SyntaxError: expected"),
        exit_code=1,
    ),
    "is indented wrongly": _program(
        """
        def double(x):
            y = 2 * x
              return y
        """,
        stderr=('File "/tmp/main.py", line 3', "IndentationError: unexpected indent"),
        exit_code=1,
    ),
    "imports a wrong name": _program(
        """
        import math
        from math import sqroot
        """,
        stderr=(_line(2), "ImportError: cannot import name 'sqroot'"),
        exit_code=1,
    ),
    "imports a package that is not there": _program(
        """
        import os

        import sklearn.linear_model
        """,
        stderr=(_line(3), "ModuleNotFoundError: No module named 'sklearn'"),
        exit_code=1,
        hint="sklearn is not installed, and runs of this server cannot add packages; there are ",
    ),
    "calls pip": _program(
        """
        import subprocess
        import sys

        subprocess.check_call([sys.executable, "-m", "pip", "install", "requests"])
        """,
        stderr=("No module named pip", _line(4), "CalledProcessError"),
        exit_code=1,
        hint="code cannot install packages, and this server has no index; there are ",
    ),
    "is a cell of a notebook": _program(
        """
        !pip install pandas
        import pandas
        """,
        stderr=('File "/tmp/main.py", line 1', "SyntaxError: invalid syntax"),
        exit_code=1,
        hint="code cannot install packages, and this server has no index; there are ",
    ),
    "awaits at top level": _program(
        """
        import asyncio
        await asyncio.sleep(0)
        """,
        stderr=('File "/tmp/main.py", line 2', "SyntaxError: 'await' outside function"),
        exit_code=1,
        hint="code is a script, not a notebook: put `await` into a function and use asyncio.run()",
    ),
    "asks for input": _program(
        """
        name = input("Your name: ")
        print("Hello", name)
        """,
        stdout="Your name: ",
        stderr=(_line(1), "EOFError: EOF when reading a line"),
        exit_code=1,
        hint="standard input is empty, so input() fails: write the values into the code or `files`",
    ),
    "fails in a function": _program(
        """
        def average(values):
            # of no values
            return sum(values) / len(values)

        print("begun")
        average(
            [],
        )
        """,
        stdout="begun\n",
        stderr=(_line(6), "average(\n", _line(3, "average"), "ZeroDivisionError: division by zero"),
        exit_code=1,
    ),
    "fails in a pool": _program(
        """
        from multiprocessing import Pool

        def invert(n):
            return 1 / n

        if __name__ == "__main__":
            with Pool(2) as pool:
                pool.map(invert, [1, 0])
        """,
        stderr=(_line(4, "invert"), _line(8), "ZeroDivisionError: division by zero"),
        exit_code=1,
    ),
    "misses a column": _program(
        """
        import pandas as pd

        frame = pd.read_csv("/in/sales.csv")
        frame["price"].mean()
        """,
        files={"sales.csv": SALES},
        stderr=(_line(4), "KeyError: 'price'"),
        exit_code=1,
    ),
    "opens a file by its name alone": _program(
        """
        import pandas as pd
        pd.read_csv("sales.csv")
        """,
        files={"sales.csv": SALES},
        stderr=(_line(2), "FileNotFoundError: [Errno 2] No such file or directory: 'sales.csv'"),
        exit_code=1,
        hint="files of the argument `files` are in /in: open /in/sales.csv",
    ),
    "opens a file of the machine": _program(
        """
        with open("/home/alice/notes.txt") as file:
            print(file.read())
        """,
        stderr=(_line(1), "FileNotFoundError"),
        exit_code=1,
        hint="a run sees no files of the machine or of earlier calls: pass them by `files`",
    ),
    "writes outside of its folders": _program(
        """
        from pathlib import Path
        Path("/in/more.txt").write_text("x")
        """,
        files={"sales.csv": SALES},
        stderr=(_line(2), "Error: [Errno "),
        exit_code=1,
        hint="write to /tmp or /out: all else is read-only",
    ),
    "fetches by urllib": _program(
        """
        import urllib.request

        with urllib.request.urlopen("https://example.com/data.json", timeout=5) as reply:
            print(reply.status)
        """,
        stderr=(_line(3), "urllib.error.URLError: <urlopen error"),
        exit_code=1,
        hint="runs have no network: fetch with your other tools and pass the bytes by `files`",
    ),
    "wants a window": _program(
        """
        import tkinter
        tkinter.Tk()
        """,
        stderr=(_line(2), "_tkinter.TclError: no display name"),
        exit_code=1,
        hint="runs have no display: draw with matplotlib, or write an image to /out",
    ),
    "recurses for ever": _program(
        """
        def down(n):
            return down(n + 1)
        down(0)
        """,
        stderr=(_line(3), _line(2, "down"), "RecursionError: maximum recursion depth exceeded"),
        exit_code=1,
    ),
    "asks for too much memory": _program(
        """
        import numpy as np
        np.ones((100_000, 100_000))
        """,
        stderr=(_line(2), "Unable to allocate 74.5 GiB"),
        exit_code=1,
        hint="memory is limited (runs.memory): handle the data in chunks",
    ),
    "uses a name that it forgot to define": _program(
        "print(sorted(values))",
        stderr=(_line(1), "NameError: name 'values' is not defined"),
        exit_code=1,
        hint="every call starts empty: variables and imports of earlier calls are gone",
    ),
    "crashes the interpreter": _program(
        """
        import ctypes
        print("before")
        ctypes.string_at(0)
        """,
        stdout="before\n",
        stderr=("Fatal Python error: Segmentation fault", 'File "/tmp/main.py", line 3'),
        exit_code=139,
    ),
}
