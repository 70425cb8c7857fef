"""Secrets of one server, opened by its capability at the start and at each reload."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mcpwrap.core.secrets import capability as capabilities
from mcpwrap.core.secrets.capability import CapabilityError, Secret
from mcpwrap.errors import with_name
from mcpwrap.linux import clocks

BUNDLES = Path("/run/mcpwrap/bundle")


@dataclass(slots=True)
class Secrets:
    """Opened secrets, in memory. `load` replaces all of them, or none."""

    name: str
    keys: Sequence[str]
    invocation_id: str
    credential: Path
    _held: dict[str, Secret] = field(default_factory=dict)
    _capability: capabilities.Capability | None = None

    def load(self) -> None:
        """Open the present bundle.

        Raises:
            CapabilityError: it cannot be opened, or has an older version of a secret.
        """
        now = clocks.now()
        try:
            if self._capability is None:
                self._capability = capabilities.accept(
                    self.credential.read_bytes(),
                    name=self.name,
                    invocation_id=self.invocation_id,
                    now=now,
                )
            self._held = capabilities.open_bundle(
                (BUNDLES / self.name / "bundle").read_bytes(),
                self._capability,
                keys=self.keys,
                held=self._held,
                now=now,
            )
        except CapabilityError as error:  # root's refusal has a name already
            raise CapabilityError(with_name(str(error), code="E-WRAPPER-SECRETS")) from error
        except OSError as error:
            raise CapabilityError(
                f"the secrets cannot be read: {error.strerror} [E-WRAPPER-SECRETS]"
            ) from error

    def values(self) -> dict[str, str]:
        """Return every value by its key."""
        return {key: secret.value for key, secret in self._held.items()}
