"""What serves Pulumi: dynamic and native resources, the plugin, and the generated classes of `sdk/`.

Importable without Pulumi's SDK: the lists in `sdk/` tell what `pulumi_hosting` offers. Modules that need the
SDK import it.
"""
