"""PURE: requests that wait for a person's approval: document, queue, authorization, throttle."""
