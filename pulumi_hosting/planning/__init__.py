"""What a run will do and what it costs: check, diff, plan and apply, written once for every frontend."""
