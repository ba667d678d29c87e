"""What one run shares: the client, the clock, the reads, who owns what, and the errors all of it raises."""
