"""The typed methods of the client, one file per area of the API. What they send and get back is said by the table of operations."""
