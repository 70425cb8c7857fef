"""The default policy in force: what is refused, what still passes, and who changes it.

Each story has a call that a rule refuses or holds, and its twin that passes: the calls of ordinary
work that look alike. `the_same_happens` stories take the mechanism away with the one line that an
operator has for it, `default_policy: disabled`, and then the refused call reaches its server.
"""
