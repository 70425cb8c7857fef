"""Numbers of things in sentences."""


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, whose plural ends in `s`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
