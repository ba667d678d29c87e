"""One reflection of the resource models and operations; generators and frontends read it."""
