"""Fields of a valid request."""

FIELDS: dict[str, object] = {
    "run": "ab12", "code": "print(1)", "files": {}, "packages": "",
    "seconds": 60, "output": 1000, "cpus": 1,
}  # fmt: skip
