"""PURE: OAuth metadata, authorization response, and stored tokens."""
