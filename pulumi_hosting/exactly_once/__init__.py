"""What keeps a purchase from being made twice: idempotency keys, ownership tags, orders, shared reads and
locks.
"""
