"""What a person or a pipeline asks about an account, a stack or a program: one file per question. Nothing
here changes the account, and nothing here prints; ``cli/`` does.
"""
