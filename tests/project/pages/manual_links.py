"""Sphinx extension: links to manual pages, from mcpwrap.toml(5) in a text and to their sections."""

import re
from collections.abc import Iterator
from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

REFERENCE = re.compile(r"(mcpwrap[\w.-]*)\((\d)\)")
# Nodes whose text stays as it is.
UNCHANGED = (nodes.title, nodes.reference, nodes.literal_block, pending_xref)
SECTION = re.compile(r"\((\d)\)")


class ManualLinks(SphinxTransform):
    """Links in the text of one page."""

    default_priority = 500

    def apply(self, **_: Any) -> None:
        """Replace each reference to an existing page."""
        for strong in list(self.document.findall(nodes.strong)):
            self._replace_strong(strong)
        for text in list(self.document.findall(nodes.Text)):
            if not any(isinstance(above, UNCHANGED) for above in _above(text)):
                self._replace_text(text)

    def _replace_strong(self, name: nodes.strong) -> None:
        r"""Link **mcpwrap**\(1), whose section is in the next text."""
        after = name.next_node(nodes.Text, descend=False, siblings=True)
        # After an escape such as `\(` the text has a NUL, which `astext` removes.
        found = SECTION.match(after.astext()) if after is not None else None
        if found and self._has(name.astext(), found[1]):
            place = name.parent
            place.replace(after, nodes.Text(after.astext()[found.end() :]))
            place.replace(name, self._link(name.astext(), found[1]))

    def _replace_text(self, text: nodes.Text) -> None:
        place, content = text.parent, text.astext()
        if not isinstance(place, nodes.literal):
            place.replace(text, list(self._parts(content)))
            return
        whole = REFERENCE.fullmatch(content)
        if whole and self._has(whole[1], whole[2]):
            place.parent.replace(place, self._link(whole[1], whole[2]))

    def _parts(self, content: str) -> Iterator[nodes.Node]:
        end = 0
        for found in REFERENCE.finditer(content):
            if self._has(found[1], found[2]):
                yield nodes.Text(content[end : found.start()])
                yield self._link(found[1], found[2])
                end = found.end()
        yield nodes.Text(content[end:])

    def _has(self, name: str, section: str) -> bool:
        document = _document(name, section)
        return document in self.env.found_docs and document != self.env.docname

    def _link(self, name: str, section: str) -> pending_xref:
        return pending_xref(
            "",
            nodes.inline("", f"{name}({section})"),
            refdomain="std",
            reftype="doc",
            reftarget=f"/{_document(name, section)}",
            refdoc=self.env.docname,
            refexplicit=True,
            refwarn=True,
        )


class ManualAnchors(SphinxTransform):
    """Anchors of a manual page's sections, for links by path.

    myst-parser finds only those of Markdown.
    """

    default_priority = 500

    def apply(self, **_: Any) -> None:
        """Add the sections to those that myst-parser finds."""
        metadata: dict[str, Any] = self.env.metadata[self.env.docname]
        if "myst_slugs" not in metadata:
            metadata["myst_slugs"] = {
                anchor: (section.line, anchor, section.next_node(nodes.title).astext())
                for section in self.document.findall(nodes.section)
                for anchor in section["ids"]
            }


def _document(name: str, section: str) -> str:
    return f"docs/{name}.{section}"


def _above(node: nodes.Node) -> Iterator[nodes.Node]:
    while node.parent is not None:
        node = node.parent
        yield node


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the transforms."""
    app.add_transform(ManualLinks)
    app.add_transform(ManualAnchors)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
