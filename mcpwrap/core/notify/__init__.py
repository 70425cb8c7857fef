"""PURE: notifications about approvals and configuration drift."""
