"""Reader of the index of secrets on this machine."""

from mcpwrap.core.wire import secret_index
from mcpwrap.core.wire.secret_index import SecretIndex, SecretIndexError
from mcpwrap.errors import McpwrapError
from mcpwrap.linux.root_files import read_roots_own
from mcpwrap.plan import paths


def read() -> SecretIndex:
    """Return the index of secrets; on a new machine it is empty.

    Raises:
        McpwrapError: the index is damaged, or an account other than root could have written it. A
            guess could bring back an older value.
    """
    try:
        return secret_index.decode(read_roots_own(paths.SECRETS))
    except FileNotFoundError:
        return SecretIndex()
    except SecretIndexError as error:
        raise McpwrapError(
            str(error), where=paths.SECRETS, fix=error.fix, code="E-SECRET-INDEX-DAMAGED"
        ) from error
