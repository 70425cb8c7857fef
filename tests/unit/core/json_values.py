"""Strategies of JSON values, decoded."""

from hypothesis import strategies as st

from mcpwrap.core.protocol.json_value import Json

# In an agent's message the gate refuses keys with a control character, and those of languages,
# which Hypothesis knows, because it draws words of mcpwrap's sources.
_OF_LANGUAGES = ("__", "$", "json_class", "prototype")
KEYS = st.text(st.characters(exclude_categories=["Cs", "Cc"])).filter(
    lambda key: not key.startswith(_OF_LANGUAGES)
)
# Values that survive encoding and decoding, also with large numbers.
FINITE: st.SearchStrategy[Json] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**40), 10**40)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=15,
)
# Few keys, so that a path finds some; and infinite numbers.
OF_FEW_KEYS: st.SearchStrategy[Json] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from("xyz") | st.text(), inner),
    max_leaves=8,
)
