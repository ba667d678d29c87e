"""Steps: what is done to one resource."""
