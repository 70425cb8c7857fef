"""Clients that play conversations.json against real servers, and the recorder between them.

They run in a machine, each where its own library is; see tests/system/tools/record_messages.py.
"""
