"""The source plugin (PulumiPlugin.yaml), as Pulumi starts it: ``python <this folder> <engine>``."""

from pulumi_hosting.provider.plugin.__main__ import main

main()
