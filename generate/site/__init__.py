"""The documentation site: pages by hand from ``docs/``, pages of the declarations, built by MkDocs."""
