"""Train an agent of Stable-Baselines3, and see what a mask does for it.

    python scripts/train_sb3.py ExoFactory-v0 --algorithm ppo \\
        --observation full learned --steps 2e6 --seeds 0 1 2 3 4
    python scripts/train_sb3.py ExoCrowd-v0 --observation oracle \\
        --mask 'occupancy_*,object_*'
    tensorboard --logdir outputs/training

Agents see all exogenous variables, those of the learned mask, those that
--mask names, or none; with --train-in reduced they are trained in the reduced
model of what they see. They are evaluated in the full environment, on
exogenous trajectories shared with the planner's policy and with an idle one.

A run that was stopped or killed goes on with the same command, from its last
checkpoint. DQN's hold the replay buffer (0.6 GB on ExoCrowd with all
variables; --set buffer_size=50000 is less). Checkpoints are pickles, which run
code when they are loaded: go on only in folders that you trust.

In TensorBoard eval/mean_return is the return of that evaluation;
rollout/ep_rew_mean is not discounted, and scaled as the network sees it.
"""

from __future__ import annotations

import contextlib
import io
import pickle
import random
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers.vector import TransformReward

from wrappers import AgentPolicy, FlatVectorObservation

try:
    import torch
    from stable_baselines3 import A2C, DQN, PPO
    from stable_baselines3.common.base_class import BaseAlgorithm
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.utils import LinearSchedule
    from stable_baselines3.common.vec_env import VecMonitor
    from torch import nn

    from shared.script import run_script
    from training.runs import Recorder, Run
    from training.study import make_parser, run_study
    from wrappers.sb3 import GatedExtractor, SB3VecEnv
except ModuleNotFoundError as error:
    raise SystemExit(f'error: there is no {error.name}: pip install "exo-envs[rl]"') from error

ALGORITHMS = {"ppo": PPO, "a2c": A2C, "dqn": DQN}

#: What all have: the lanes, how observations are written, and the network.
SHARED = {"lanes": 512, "encoding": "one-hot", "network": "gated", "width": 128}
#: ``entropy`` is ``ent_coef`` at the start: it falls to 0, as the learning rate does.
ON_POLICY = {**SHARED, "learning_rate": 2e-3, "gae_lambda": 0.8, "entropy": 1.0}
DEFAULTS: dict[str, dict[str, Any]] = {
    "ppo": {**ON_POLICY, "n_steps": 32, "batch_size": 2048, "n_epochs": 3},
    "a2c": {**ON_POLICY, "n_steps": 8, "normalize_advantage": True},
    "dqn": {
        **SHARED,
        "lanes": 32,
        "learning_rate": 5e-4,
        "batch_size": 256,
        "buffer_size": 200_000,
        "learning_starts": 10_000,
        "train_freq": 2,
        "gradient_steps": 4,
        "target_update_interval": 10_000,
        "exploration_fraction": 0.5,
    },
}


def train(run: Run, recorder: Recorder) -> None:
    """Train one agent, from its last checkpoint if there is one."""
    env = Environment(run)
    checkpoints = Checkpoints(run.folder)
    model = checkpoints.load(ALGORITHMS[run.algorithm], env)
    if model is None:
        model = make_model(run, env)
        recorder.rewind(-1)
    else:
        recorder.rewind(model.num_timesteps)
    policy = AgentPolicy(model, env.observed)
    watch = Watch(recorder, policy, lambda: checkpoints.save(model, env), run.hyperparameters)
    left = max(0, run.steps - model.num_timesteps)
    model.learn(left, watch, log_interval=10, tb_log_name="sb3", reset_num_timesteps=False)
    checkpoints.save(model, env)
    watch.evaluate()


class Environment:
    """The lanes that SB3 trains on."""

    def __init__(self, run: Run) -> None:
        settings = run.hyperparameters
        lanes = run.task.vector_env(
            run.mask, run.world, settings["lanes"], autoreset_mode=AutoresetMode.SAME_STEP
        )
        # One-hot in bytes: the buffers are a quarter as large.
        dtype = "uint8" if settings["encoding"] == "one-hot" else "float32"
        #: What the agent sees; rewards do not matter for that.
        self.observed = FlatVectorObservation(lanes, settings["encoding"], dtype=dtype)
        scale = run.task.reward_scale
        self.adapter = SB3VecEnv(TransformReward(self.observed, lambda rewards: rewards * scale))
        self.for_sb3 = VecMonitor(self.adapter)
        self.discount = run.task.mdp.discount
        one_hot = settings["encoding"] == "one-hot"
        sizes = run.task.mdp.endogenous_sizes
        self.endogenous_columns = int(sizes.sum()) if one_hot else len(sizes)


def make_model(run: Run, env: Environment) -> BaseAlgorithm:
    """A new agent."""
    settings = dict(run.hyperparameters)
    width = settings.pop("width")
    network: dict[str, Any] = {"net_arch": [width, width], "activation_fn": nn.ReLU}
    if settings.pop("network") == "gated":
        network |= {
            "net_arch": [width],
            "features_extractor_class": GatedExtractor,
            "features_extractor_kwargs": {"endogenous": env.endogenous_columns, "width": width},
        }
        if run.algorithm != "dqn":  # the critic reads other things than the actor
            network["share_features_extractor"] = False
    for name in ("lanes", "encoding"):
        settings.pop(name)
    if "entropy" in settings:
        settings["ent_coef"] = settings.pop("entropy")
        settings["learning_rate"] = LinearSchedule(settings["learning_rate"], 0.0, 1.0)
    return ALGORITHMS[run.algorithm](
        "MlpPolicy",
        env.for_sb3,
        gamma=env.discount,
        seed=run.seed,
        policy_kwargs=network,
        tensorboard_log=str(run.folder),
        device="cpu",
        **settings,
    )


class Watch(BaseCallback):
    """Lets the entropy's weight fall, evaluates and makes checkpoints between rollouts."""

    def __init__(
        self,
        recorder: Recorder,
        policy: AgentPolicy,
        save: Callable[[], None],
        hyperparameters: dict[str, Any],
    ) -> None:
        super().__init__()
        self._recorder, self._policy, self._save = recorder, policy, save
        self._entropy = hyperparameters.get("entropy")

    def _on_rollout_start(self) -> None:
        if self._entropy is not None:
            left = 1 - self.model.num_timesteps / self._recorder.run.steps
            self.model.ent_coef = self._entropy * max(0.0, 1.2 * left - 0.2)
        if self._recorder.due(self.model.num_timesteps):
            self._save()
            self.evaluate()

    def _on_step(self) -> bool:
        return True

    def evaluate(self) -> None:
        """On the task's trajectories."""
        steps = self.model.num_timesteps
        estimate = self._recorder.record(steps, self._policy)
        self.logger.record("eval/mean_return", estimate.mean)
        self.logger.record("eval/standard_error", estimate.standard_error)
        self.logger.dump(steps)


class Checkpoints:
    """The last checkpoint of a run: the model, the state of the lanes, the random generators.

    A run that goes on from it does what it would have done, up to rounding: torch may add up in
    another order. Each checkpoint is a folder that gets its name when it is whole.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def save(self, model: BaseAlgorithm, env: Environment) -> None:
        """Make a checkpoint, then remove older ones."""
        target = self._folder / f"checkpoint-{model.num_timesteps}"
        if target.exists():  # the run was stopped between a checkpoint and its evaluation
            return
        part = self._folder / f".{uuid4().hex}"
        part.mkdir()
        archive = io.BytesIO()  # torch would hide why a file cannot be written
        model.save(archive)
        (part / "model.zip").write_bytes(archive.getvalue())
        if isinstance(model, DQN):
            model.save_replay_buffer(part / "buffer.pkl")
        state = {
            "lanes": env.adapter.get_state(),
            "episodes": (env.for_sb3.episode_returns, env.for_sb3.episode_lengths),
            "numpy": np.random.get_state(),  # noqa: NPY002 (SB3 draws from it)
            "python": random.getstate(),
            "torch": torch.get_rng_state(),
            "actions": model.action_space.np_random,
        }
        (part / "state.pkl").write_bytes(pickle.dumps(state))
        older = self._all()
        part.rename(target)
        for folder in older:
            shutil.rmtree(folder, ignore_errors=True)

    def load(self, algorithm: type[BaseAlgorithm], env: Environment) -> BaseAlgorithm | None:
        """The model of the last checkpoint, ready to go on; None if there is none."""
        if not (all_of_them := self._all()):
            return None
        folder = max(all_of_them, key=_steps_of)
        try:
            state = pickle.loads((folder / "state.pkl").read_bytes())  # noqa: S301 (our own)
            model = algorithm.load(
                folder / "model.zip", env=env.for_sb3, device="cpu", force_reset=False
            )
            if isinstance(model, DQN):
                model.load_replay_buffer(folder / "buffer.pkl")
            self._restore(state, model, env)
        except (MemoryError, PermissionError):
            raise
        except Exception as error:  # damaged pickles raise whatever they like
            raise SystemExit(
                f"error: {folder} is damaged ({type(error).__name__}: {error}), or of other "
                "versions; delete it to start this run anew"
            ) from error
        return model

    @staticmethod
    def _restore(state: dict[str, Any], model: BaseAlgorithm, env: Environment) -> None:
        env.adapter.seed(0)
        env.for_sb3.reset()  # monitors and lanes want to be reset once
        env.adapter.set_state(state["lanes"])
        env.for_sb3.episode_returns, env.for_sb3.episode_lengths = state["episodes"]
        np.random.set_state(state["numpy"])  # noqa: NPY002
        random.setstate(state["python"])
        torch.set_rng_state(state["torch"])
        model.action_space._np_random = state["actions"]

    def _all(self) -> list[Path]:
        return list(self._folder.glob("checkpoint-*"))


def _steps_of(folder: Path) -> int:
    with contextlib.suppress(ValueError):
        return int(folder.name.rpartition("-")[2])
    return -1


def main(argv: Sequence[str] | None = None) -> int:
    parser = make_parser(__doc__, steps=1_000_000)
    parser.add_argument("--algorithm", choices=ALGORITHMS, default="ppo")
    arguments = parser.parse_args(argv)
    start = time.perf_counter()
    code = run_study(arguments, arguments.algorithm, train, DEFAULTS[arguments.algorithm])
    print(f"All of it took {time.perf_counter() - start:.0f} s.")
    return code


if __name__ == "__main__":
    run_script(main)
