"""JSON parsers as servers use them. Each reads lines of hex and prints its reading of each.

A line in: one message, in hex. A line out: `refused`, or the message in a JSON that no parser reads
in two ways: a string as the hex of its bytes, a number as `["n", TEXT]`, an array as
`["a", ELEMENT...]`, an object as `["o", [KEY, VALUE]...]`.
"""
