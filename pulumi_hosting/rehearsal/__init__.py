"""Runs Pulumi programs against an emulator: the engines, the steps of a rehearsal, the check of the
account.
"""
