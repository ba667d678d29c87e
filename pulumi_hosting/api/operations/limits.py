"""Limits of the API (API document, "Limits", "Idempotency", "Sandbox"). Rate limits hold per key and fixed
window.
"""

WINDOW_SECONDS = 60
NORMAL_PER_WINDOW = 120
EXPENSIVE_PER_WINDOW = 20
INVALID_KEYS_PER_WINDOW = 30
MAX_BODY_BYTES = 64 * 1024
KEY_LENGTH = range(16, 129)
KEY_MEMORY_SECONDS = 7 * 24 * 3600
SANDBOX_SERVER_SECONDS = 24 * 3600
