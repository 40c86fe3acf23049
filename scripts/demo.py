"""A first look: play an episode of every environment, and leave it as a small film.

bash scripts/demo.sh [--output FOLDER] [--steps N]
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import gymnasium as gym
import numpy as np
from PIL import Image

from exo_envs.registration import ENVIRONMENTS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("outputs"), help="where films go")
    parser.add_argument("--steps", type=int, default=20, help="the length of an episode at most")
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    for env_id in ENVIRONMENTS:
        env = gym.make(env_id)
        print(f"\n{env_id}: {env.unwrapped.mdp}")
        modes = env.metadata["render_modes"]
        env.close()
        print(f"  the start, as text:\n\n{show_start(env_id)}\n")
        if "rgb_array" in modes:
            film = arguments.output / f"{env_id}.gif"
            total = play(env_id, film, arguments.steps)
            print(f"  random actions earned {total:g}; the film is {film}")
        print(f"  512 lanes at once: {vector_speed(env_id):,.0f} steps a second")


def show_start(env_id: str) -> str:
    """The first state as text, shortened to what fits a screen."""
    with gym.make(env_id, render_mode="ansi") as env:
        env.reset(seed=0)
        lines = env.render().splitlines()
    more = f"... and {len(lines) - 24} lines more" if len(lines) > 24 else ""
    return "\n".join(f"    {line}".rstrip() for line in [*lines[:24], more]).rstrip()


def play(env_id: str, film: Path, max_steps: int) -> float:
    """Play one episode with random actions and film it; the undiscounted return."""
    total = 0.0
    with gym.make(env_id, render_mode="rgb_array") as env:
        env.reset(seed=0)
        rng = np.random.default_rng(0)
        frames = [Image.fromarray(env.render())]
        for _ in range(max_steps):
            _, reward, terminated, truncated, _ = env.step(rng.integers(env.action_space.n))
            total += reward
            frames.append(Image.fromarray(env.render()))
            if terminated or truncated:
                break
        fps = env.metadata["render_fps"]
    frames[0].save(film, save_all=True, append_images=frames[1:], duration=1000 // fps, loop=0)
    return total


def vector_speed(env_id: str, seconds: float = 0.5) -> float:
    """Steps per second of the vector environment with 512 lanes."""
    env = gym.make_vec(env_id, num_envs=512)
    env.reset(seed=0)
    actions = env.action_space.sample()
    env.step(actions)
    steps, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        env.step(actions)
        steps += env.num_envs
    return steps / (time.perf_counter() - start)


if __name__ == "__main__":
    main()
