"""Names and formats of well-known secrets. They guard against accident, for these only."""

# Globs, in lower case.
NAMES = (
    *("*password*", "*passwd*", "*passphrase*", "*secret*", "*credential*", "*private_key*"),
    *("*access_key*", "*api_key*", "*apikey*", "*api-key*", "authorization", "cookie", "token"),
    *("*_token", "*-token", "bearer*", "*accesstoken*", "*authtoken*"),
)
# In the syntax of RE2.
VALUES = (
    r"\b(sk|pk|rk)[-_][A-Za-z0-9_-]{16,}",
    r"\b(ghp|gho|ghu|ghs|ghr|github_pat|glpat|xox[abprs])[-_][A-Za-z0-9_-]{10,}",
    r"\b(AKIA|ASIA)[0-9A-Z]{16}\b",
    r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*",
    r"(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(-----END [A-Z ]*PRIVATE KEY-----|\z)",
    r"(?i)\bbearer +[A-Za-z0-9._~+/-]{8,}=*",
    r"://[^/\s:@]*:[^/\s@]+@",
)
