"""Failures that an operator can act on, and the exit statuses of `mcpwrap`."""

EXIT_OK = 0
EXIT_FAILED = 1  # the machine did not do what was asked; what had changed is said
EXIT_USAGE = 2  # the command line or the configuration is wrong; nothing was changed
EXIT_WOULD_CHANGE = 10  # `plan`: `apply` would change something


class McpwrapError(Exception):
    """A failure the operator can act on. Anything else that escapes is a bug in mcpwrap."""

    exit_code = EXIT_FAILED

    def __init__(self, problem: str, *, where: str, fix: str) -> None:
        super().__init__(f"{where}: {problem}\n  fix: {fix}")
        self.problem = problem
        self.where = where
        self.fix = fix


class UsageError(McpwrapError):
    """What was typed or configured cannot be carried out; nothing was changed."""

    exit_code = EXIT_USAGE
