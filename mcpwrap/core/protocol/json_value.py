"""Python type of a JSON value."""

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]
