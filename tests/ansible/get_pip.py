"""Stands in for the pip installer that ansible-test would download: Python brings one along."""

import subprocess
import sys

wanted = [word for word in sys.argv[1:] if word not in ("--no-setuptools", "--no-wheel")]
subprocess.run([sys.executable, "-m", "ensurepip", "--default-pip"], check=True, stdout=subprocess.DEVNULL)
if wanted:
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", *wanted], check=True)
