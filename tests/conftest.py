"""What every test relies on: no window opens, and generated examples are the same in every run."""

import os

# Read once, when pygame is first imported. Assigned, because a desktop session sets its own.
os.environ["SDL_VIDEODRIVER"] = "dummy"
os.environ["PYGAME_HIDE_SUPPORT_PROMPT"] = "1"

from hypothesis import HealthCheck, settings

# A deadline, or a check of how fast examples are drawn, would fail by chance on a busy machine
# and on the call that compiles a kernel.
settings.register_profile(
    "default",
    derandomize=True,
    deadline=None,
    max_examples=50,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
# For hunting: pytest --hypothesis-profile=thorough
settings.register_profile(
    "thorough", settings.get_profile("default"), derandomize=False, max_examples=2000
)
settings.load_profile("default")
