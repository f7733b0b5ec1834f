"""The decaying clip for verl: B_s = max(0.2 * B0, B0 * (1 - s / S)), set before each update of the actor.

verl reads `actor.clip_ratio` (and `clip_ratio_low`, `clip_ratio_high`) from its configuration on every update. Import
this module in the process that runs the actor and wrap its update: `install(ActorClass, total_steps, b0)`.
"""


def clip_bound(step, total_steps, b0):
    return max(0.2 * b0, b0 * (1 - step / total_steps))


def install(actor_class, total_steps, b0, method="update_policy"):
    """Wraps `actor_class.update_policy` so that update number s runs with the bound of step s."""
    original = getattr(actor_class, method)

    def with_schedule(self, data, *args, **kwargs):
        step = int(data.meta_info.get("global_steps", 1)) - 1 if hasattr(data, "meta_info") else 0
        bound = clip_bound(step, total_steps, b0)
        for key in ("clip_ratio", "clip_ratio_low", "clip_ratio_high"):
            self.config[key] = bound
        return original(self, data, *args, **kwargs)

    setattr(actor_class, method, with_schedule)
