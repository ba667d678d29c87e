"""What the account does between two runs: each purchase, what may become of it, each next command."""
