"""Runs Pulumi programs against an emulator: the engines, the steps of a rehearsal, and the check of the account after each."""
