"""The collection's own unit tests. They live with it, so that ansible-test finds them; they count here as
well.
"""

from ansible_collections.hosting.cloud.tests.unit.plugins.module_utils.test_results import *  # noqa: F403  # whatever stands there
from ansible_collections.hosting.cloud.tests.unit.plugins.module_utils.test_run_memory import *  # noqa: F403  # the same
