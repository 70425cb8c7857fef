"""Sphinx extension: links to manual pages, from mcpwrap.toml(5) in a text and to their sections."""

import re
from collections.abc import Iterator
from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

REFERENCE = re.compile(r"(mcpwrap[\w.-]*)\((\d)\)")
SECTION = re.compile(r"\((\d)\)")


class ManualLinks(SphinxTransform):
    """Links in the text of one page. Titles and existing links stay as they are."""

    default_priority = 500

    def apply(self, **_: Any) -> None:
        """Replace each reference whose page there is."""
        for text in list(self.document.findall(nodes.Text)):
            if not any(isinstance(above, nodes.title | nodes.reference) for above in _above(text)):
                self._apply(text)

    def _apply(self, text: nodes.Text) -> None:
        place, content = text.parent, str(text)
        if isinstance(place, nodes.strong):  # **mcpwrap**\(1): the section is in the next text
            after = place.next_node(nodes.Text, descend=False, siblings=True)
            found = after is not None and SECTION.match(str(after))
            if found and self._has(content, found[1]):
                outside = place.parent
                outside.replace(after, nodes.Text(str(after)[found.end() :]))
                outside.replace(place, self._link(content, found[1], place.deepcopy()))
            return
        whole = REFERENCE.fullmatch(content)
        if isinstance(place, nodes.literal):
            if whole and self._has(whole[1], whole[2]):
                place.parent.replace(place, self._link(whole[1], whole[2], place.deepcopy()))
            return
        if not isinstance(place, nodes.literal_block):
            place.replace(text, list(self._parts(content)))

    def _parts(self, content: str) -> Iterator[nodes.Node]:
        end = 0
        for found in REFERENCE.finditer(content):
            if self._has(found[1], found[2]):
                yield nodes.Text(content[end : found.start()])
                yield self._link(found[1], found[2], nodes.Text(found[1]))
                end = found.end()
        yield nodes.Text(content[end:])

    def _has(self, name: str, section: str) -> bool:
        document = _document(name, section)
        return document in self.env.found_docs and document != self.env.docname

    def _link(self, name: str, section: str, shown: nodes.Node) -> pending_xref:
        if isinstance(shown, nodes.literal):
            inner: list[nodes.Node] = [shown]
        else:
            inner = [shown, nodes.Text(f"({section})")]
        return pending_xref(
            "",
            nodes.inline("", "", *inner),
            refdomain="std",
            reftype="doc",
            reftarget=f"/{_document(name, section)}",
            refdoc=self.env.docname,
            refexplicit=True,
            refwarn=True,
        )


class ManualAnchors(SphinxTransform):
    """Anchors of a manual page's sections, for links by path.

    myst-parser finds those of Markdown alone.
    """

    default_priority = 500

    def apply(self, **_: Any) -> None:
        """Add the sections to what myst-parser looks up."""
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
