# Judges the path of a request as it was sent. Input: `CHANNEL URL PATH`; output: `CHANNEL OK
# path_=sound` or `CHANNEL ERR`. Squid has written bytes over 0x7e, controls and spaces in PATH as `%XX`.

# `%XX` stands for one printable ASCII character other than # % / ? \, or for a byte of a character in
# well-formed UTF-8 (RFC 3629, section 4): no overlong form, no surrogate, no `%u002e`, no lone `%`.
# What follows `?` is the query.
/^[0-9]+ .* \/([^ ?%]|%(2[0-246-9a-e]|3[0-9a-e]|[46][0-9a-f]|5[0-9abd-f]|7[0-9a-e]|(c[2-9a-f]|d[0-9a-f]|(e0%[ab]|e[1-9a-cef]%[89ab]|ed%[89])[0-9a-f]|(f0%[9ab]|f[1-3]%[89ab]|f4%8)[0-9a-f]%[89ab][0-9a-f])%[89ab][0-9a-f]))*([?][^ ]*)?$/I!s/ .*/ ERR/
s/ .* .*/ OK path_=sound/
