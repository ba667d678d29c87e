"""Pulumi asks, and only here. ``dynamic`` holds the resource classes of form one; ``adapter`` serves them and any other form."""
