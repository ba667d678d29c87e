from .cli import offline

if __name__ == "__main__":
    offline(prog_name="python -m pulumi_hosting.offline")
