"""What keeps a purchase from being made twice: idempotency keys, ownership tags, orders and locks."""
