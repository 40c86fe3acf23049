"""A picture and a short film of an agent that sees what its mask keeps."""

from __future__ import annotations

from pathlib import Path

import gymnasium as gym
from PIL import Image

from planners import Policy
from shared.drawing import backend

COLOURS = 128  # a palette makes the files small
EPISODES = 9  # of which one is filmed


def draws_pictures(env: gym.Env) -> bool:
    return "rgb_array" in env.metadata["render_modes"]


def picture_settings(env: gym.Env) -> dict[str, str]:
    """What makes an environment draw pictures: flat ones where there is no PyBullet."""
    has_backends = getattr(env.unwrapped, "backends", ())
    settings = {"render_mode": "rgb_array"}
    return settings | ({"render_backend": backend()} if has_backends else {})


def save_picture(env: gym.Env, path: Path, seed: int) -> None:
    """The start of an episode."""
    env.reset(seed=seed)
    Image.fromarray(env.render()).save(path, optimize=True)


def typical_seed(env: gym.Env, policy: Policy, first: int) -> int:
    """Of some episodes the one with the median return: a film should show what is usual."""
    earned = {}
    for seed in range(first, first + EPISODES):
        observation, _ = env.reset(seed=seed)
        earned[seed], ended = 0.0, False
        while not ended:
            observation, reward, terminated, truncated, _ = env.step(policy(observation))
            earned[seed] += float(reward)
            ended = terminated or truncated
    return sorted(earned, key=earned.__getitem__)[EPISODES // 2]


def save_film(env: gym.Env, policy: Policy, path: Path, seed: int, most_frames: int) -> str:
    """A typical episode, or the beginning of one, as an animated GIF; what happens in it."""
    observation, _ = env.reset(seed=typical_seed(env, policy, seed))
    frames, earned, ended = [env.render()], 0.0, False
    while not ended and len(frames) < most_frames:
        observation, reward, terminated, truncated, _ = env.step(policy(observation))
        frames.append(env.render())
        earned += float(reward)
        ended = terminated or truncated
    palette = Image.fromarray(frames[0]).quantize(COLOURS)
    images = [
        Image.fromarray(frame).quantize(palette=palette, dither=Image.Dither.NONE)
        for frame in frames
    ]
    pause = 1000 // env.metadata["render_fps"]
    durations = [*[pause] * (len(images) - 1), 5 * pause]
    images[0].save(path, save_all=True, append_images=images[1:], duration=durations, loop=0)
    what = "one episode" if ended else f"the first {len(frames) - 1} steps of an episode"
    return f"{what}, which earned {earned:g}"
