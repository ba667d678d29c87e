"""What an operation reports: engine events, and lines on the terminal."""
