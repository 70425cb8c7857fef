"""JSON value as it is in Python."""

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]
