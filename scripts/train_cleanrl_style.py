"""PPO in one file, on the batched shell: thousands of lanes are one environment.

    python scripts/train_cleanrl_style.py ExoFactory-v0 \\
        --observation full learned --seeds 0 1 2 3 4
    python scripts/train_cleanrl_style.py ExoCrowd-v0 --train-in reduced \\
        --set lanes=4096

Everything that learns is here, from top to bottom: the network, the rollouts,
the update. Its first layer is in training/lookups.py. What it shares with
scripts/train_sb3.py is the rest: arguments, masks, evaluation, curves and
their plot.

Five things make it fast. A step of the environment is one call for all lanes.
Observations stay whole numbers: a one-hot input has a single 1 per variable,
so its product with a matrix is a sum of rows, which are looked up. Gradients
are written out: d_x is that of the loss with respect to x, and what torch
would do in many small operations is one compiled loop. A thread computes all
of its part of a batch, forward and backward, so threads rarely wait for each
other. And lanes that ended wait for their reset in place
(AutoresetMode.NEXT_STEP), so nothing is ever copied for single lanes; those
resets count as steps.

A run that was stopped or killed is repeated from its start, finished ones are
kept. The agent is in agent.pt, whose weights torch.load reads with
weights_only=True; without that a file from others can run code.
"""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import repeat
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from planners.core.files import replacing
from wrappers import AgentPolicy

try:
    import torch
    from torch import Tensor, nn
    from torch.utils.tensorboard import SummaryWriter

    from shared.script import run_script
    from training.lookups import (
        Indices,
        Lookup,
        Observation,
        Rows,
        arrays,
        look_up,
        look_up_back,
        relu_back,
    )
    from training.runs import Recorder, Run
    from training.study import make_parser, run_study
    from training.threads import Map, keep_memory, side_by_side
except ModuleNotFoundError as error:
    raise SystemExit(f'error: there is no {error.name}: pip install "exo-envs[rl]"') from error

#: Parts of a batch that can be computed side by side. Sums are rounded part by part, so this is not
#: the number of cores: what is learned would depend on it.
PARTS = 2


@dataclass(frozen=True)
class Settings:
    """The hyper-parameters.

    Attributes:
        lanes: environments.
        rollout: steps of every lane between updates.
        epochs: over what was collected.
        minibatches: of an epoch.
        learning_rate: at the start; it falls to 0 on a line.
        entropy: the weight of the entropy at the start; it falls to 0 on a line, earlier. High,
            because whoever takes the penalties for granted soon stops to look for the rewards.
        trace: the lambda of generalised advantage estimation.
        clip: of the ratio of probabilities.
        width: of both layers, of actor and critic each.
    """

    lanes: int = 1024
    rollout: int = 32
    epochs: int = 3
    minibatches: int = 16
    learning_rate: float = 2e-3
    entropy: float = 1.0
    trace: float = 0.8
    clip: float = 0.2
    width: int = 128


# --- the network --------------------------------------------------------------------------

#: Those of the first layer, of the actor and of the critic: tables or matrices, each with its bias.
Weights = list[list[Tensor]]
#: What backward needs of forward: the features, and the hidden layers of actor and critic.
Trace = tuple[Lookup, list[Tensor]]


class Agent(nn.Module):
    """Actor and critic, side by side: readings of x, each weighed by what n makes of it.

    All weights are parts of one vector, which is what the optimizer sees.
    """

    def __init__(self, indices: Indices, num_actions: int, width: int) -> None:
        super().__init__()
        n_rows, x_rows = indices.rows
        width_of_both = 2 * width
        self.read = Rows(0.1 * torch.randn(x_rows, width_of_both), torch.zeros(width_of_both))
        self.gate = Rows(torch.randn(n_rows, width_of_both), torch.ones(width_of_both))
        self.shift = Rows(0.1 * torch.randn(n_rows, width_of_both), torch.zeros(width_of_both))
        self.actor = self._head(width, num_actions, gain=0.01)
        self.critic = self._head(width, 1, gain=1.0)
        self.requires_grad_(False)
        self.vector = nn.utils.parameters_to_vector(self.parameters())
        nn.utils.vector_to_parameters(self.vector, self.parameters())
        self.weights = self.split(self.vector)

    def split(self, vector: Tensor) -> Weights:
        """The weights, or their gradients, in such a vector."""
        parameters = [*self.parameters()]
        parts = vector.split([parameter.numel() for parameter in parameters])
        parts = [part.view_as(like) for part, like in zip(parts, parameters, strict=True)]
        return [parts[:6], parts[6:10], parts[10:]]

    def forward(self, n: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
        """Log-probabilities of the actions (B, A) and values (B,)."""
        logits, values, _ = self.judge(n, x, torch.arange(len(n)))
        return logits.log_softmax(dim=1), values.squeeze(1)

    def judge(self, n: Tensor, x: Tensor, chosen: Tensor) -> tuple[Tensor, Tensor, Trace]:
        """Logits of the actions (B, A) and values (B, 1) of the chosen samples."""
        first, *heads = self.weights
        found = look_up(first, n, x, chosen)
        hidden, outputs = [], []
        for features, (w, b, v, c) in zip(found.features.chunk(2, dim=1), heads, strict=True):
            hidden.append(torch.addmm(b, features, w.t()).relu_())
            outputs.append(torch.addmm(c, hidden[-1], v.t()))
        return *outputs, (found, hidden)

    def backward(self, trace: Trace, d_outputs: Sequence[Tensor], d_weights: Weights) -> None:
        """Set the gradients of the weights, given those of the logits and values."""
        found, hidden = trace
        d_features = torch.empty_like(found.features)
        inputs = zip(found.features.chunk(2, dim=1), d_features.chunk(2, dim=1), strict=True)
        for head, (features, d_inputs) in enumerate(inputs):
            w, _, v, _ = self.weights[1 + head]
            d_w, d_b, d_v, d_c = d_weights[1 + head]
            torch.mm(d_outputs[head].t(), hidden[head], out=d_v)
            torch.sum(d_outputs[head], dim=0, out=d_c)
            d_hidden = d_outputs[head] @ v
            relu_back(hidden[head].numpy(), d_hidden.numpy(), d_b.numpy())
            torch.mm(d_hidden.t(), features, out=d_w)
            torch.mm(d_hidden, w, out=d_inputs)
        look_up_back(found, d_features, self.weights[0], d_weights[0])

    @staticmethod
    def _head(width: int, outputs: int, gain: float) -> nn.Sequential:
        head = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, outputs))
        for layer, scale in ((head[0], 2**0.5), (head[2], gain)):
            nn.init.orthogonal_(layer.weight, scale)
            nn.init.zeros_(layer.bias)
        return head


# --- PPO ----------------------------------------------------------------------------------


class Rollout:
    """What all lanes did for some steps; the tensors are used again and again."""

    def __init__(self, settings: Settings, indices: Indices) -> None:
        steps, lanes = settings.rollout, settings.lanes
        k, m = (len(sizes) for sizes in indices.sizes)
        self.n = torch.from_numpy(np.zeros((steps + 1, lanes, k), dtype=indices.dtype))
        self.x = torch.from_numpy(np.zeros((steps + 1, lanes, m), dtype=indices.dtype))
        self.values = torch.zeros(steps + 1, lanes)
        self.actions = torch.zeros(steps, lanes, dtype=torch.int64)
        self.log_probabilities = torch.zeros(steps, lanes)
        self.rewards = torch.zeros(steps, lanes)
        self.terminated = torch.zeros(steps, lanes)
        self.ended = torch.zeros(steps + 1, lanes)  # before the step: the lane is only reset

    def advantages(self, discount: float, trace: float) -> Tensor:
        """Generalised advantage estimates, (steps, lanes).

        The observation after a step is always that of the same episode, cut off or not: so the
        value of a state in which an episode was cut off is there to be used.
        """
        steps = len(self.rewards)
        following = discount * self.values[1:] * (1 - self.terminated)
        errors = self.rewards + following - self.values[:-1]
        keep = discount * trace * (1 - self.ended[1:])
        advantages = torch.zeros_like(errors)
        latest = torch.zeros(errors.shape[1])
        for t in reversed(range(steps)):
            latest = errors[t] + keep[t] * latest
            advantages[t] = latest
        return advantages


def train(run: Run, recorder: Recorder) -> None:
    """Train one agent, from the start."""
    settings = Settings(**run.hyperparameters)
    recorder.rewind(-1)
    for file in run.folder.glob("events.*"):
        file.unlink()  # TensorBoard's log of a run that was stopped
    torch.manual_seed(run.seed)
    keep_memory()
    env = run.task.vector_env(run.mask, run.world, settings.lanes)
    mdp = env.unwrapped.mdp
    indices = Indices(env.single_observation_space)
    agent = Agent(indices, mdp.num_actions, settings.width)
    optimizer = torch.optim.Adam([agent.vector], eps=1e-5, fused=True)
    policy = AgentPolicy(lambda observation: best_actions(agent, indices(observation)), env)
    rollout = Rollout(settings, indices)
    rollout.n[-1], rollout.x[-1] = indices(stagger(env, mdp.horizon, run.seed))
    batch = settings.lanes * settings.rollout
    with SummaryWriter(str(run.folder)) as board, side_by_side(run.threads) as in_parts:
        for steps in range(0, run.steps, batch):
            if recorder.due(steps):
                board.add_scalar("eval/mean_return", recorder.record(steps, policy).mean, steps)
            left = 1 - steps / run.steps
            optimizer.param_groups[0]["lr"] = settings.learning_rate * left
            collect(env, agent, indices, rollout, run.task.reward_scale, in_parts)
            advantages = rollout.advantages(mdp.discount, settings.trace)
            weight = settings.entropy * max(0.0, 1.2 * left - 0.2)
            losses = update(agent, optimizer, rollout, advantages, weight, settings, in_parts)
            for name, value in losses.items():
                board.add_scalar(f"train/{name}", value, steps + batch)
        final = len(range(0, run.steps, batch)) * batch
        weights = io.BytesIO()  # torch would hide why a file cannot be written
        torch.save(agent.state_dict(), weights)
        with replacing(run.folder / "agent.pt") as part:
            part.write_bytes(weights.getvalue())
        board.add_scalar("eval/mean_return", recorder.record(final, policy).mean, final)


def stagger(env: Any, horizon: int, seed: int) -> Observation:
    """Start the lanes at different times: or all episodes would end in the same step."""
    observation, _ = env.reset(seed=seed)
    rng = np.random.default_rng(seed)
    for k in range(min(horizon, env.num_envs)):
        actions = rng.integers(env.single_action_space.n, size=env.num_envs)
        _, _, terminated, truncated, _ = env.step(actions)
        lanes = (np.arange(env.num_envs) % horizon == k) | terminated | truncated
        observation, _ = env.reset(options={"reset_mask": lanes})
    return observation


def best_actions(agent: Agent, rows: tuple[Tensor, Tensor]) -> NDArray[np.int64]:
    return agent(*rows)[0].argmax(dim=1).numpy()


def collect(
    env: Any, agent: Agent, indices: Indices, rollout: Rollout, scale: float, in_parts: Map = map
) -> None:
    """Play; the first step follows the last of the time before."""
    rollout.n[0], rollout.x[0], rollout.ended[0] = rollout.n[-1], rollout.x[-1], rollout.ended[-1]
    steps = len(rollout.rewards)
    noise = torch.empty(steps, env.num_envs, env.single_action_space.n).exponential_()

    def judge(t: int, lanes: Tensor) -> None:
        logits, values, _ = agent.judge(rollout.n[t], rollout.x[t], lanes)
        here = slice(lanes[0], lanes[-1] + 1)
        rollout.values[t, here] = values.squeeze(1)
        if t < steps:
            found = noise[t, here], rollout.actions[t, here], rollout.log_probabilities[t, here]
            choose(logits.numpy(), *arrays(found))

    parts = torch.arange(env.num_envs).chunk(PARTS)
    for t in range(steps):
        list(in_parts(judge, repeat(t), parts))
        observation, rewards, terminated, truncated, _ = env.step(rollout.actions[t].numpy())
        rollout.rewards[t] = torch.from_numpy(scale * rewards)
        rollout.terminated[t] = torch.from_numpy(terminated)
        rollout.ended[t + 1] = torch.from_numpy(terminated | truncated)
        rollout.n[t + 1], rollout.x[t + 1] = indices(observation)
    list(in_parts(judge, repeat(steps), parts))


@njit(cache=True, nogil=True)
def log_softmax(logits: Any) -> None:
    """In place, for one sample."""
    largest = logits.max()
    total = np.float32(0)
    for a in range(len(logits)):
        logits[a] -= largest
        total += math.exp(logits[a])
    log_total = math.log(total)
    for a in range(len(logits)):
        logits[a] -= log_total


@njit(cache=True, nogil=True)
def choose(logits: Any, noise: Any, actions: Any, log_probabilities: Any) -> None:
    """Sample actions: of bells that ring after exponential times, each rings first that often."""
    for b in range(len(logits)):
        log_softmax(logits[b])
        soonest = np.float32(np.inf)
        for a in range(logits.shape[1]):
            time = noise[b, a] * math.exp(-logits[b, a])
            if time < soonest:
                soonest, actions[b] = time, a
        log_probabilities[b] = logits[b, actions[b]]


@njit(cache=True, nogil=True)
def differentiate_losses(
    outputs: Any, chosen: Any, advantages: Any, steps: Any, size: int, clip: float, weight: float
) -> Any:
    """Losses of policy and values, and the entropy; gradients take the place of logits and values.

    The loss is policy_loss + 0.5 * value_loss - weight * entropy; all are means of size steps.
    """
    (logits, values), (actions, before, targets) = outputs, steps
    policy_loss, value_loss, mean_entropy = 0.0, 0.0, 0.0
    for b in range(len(chosen)):
        at, advantage, log_p = chosen[b], advantages[b], logits[b]
        log_softmax(log_p)
        ratio = math.exp(log_p[actions[at]] - before[at])
        bounded = min(max(ratio, 1 - clip), 1 + clip)
        clipped = bounded * advantage < ratio * advantage and bounded != ratio
        error = values[b, 0] - targets[at]
        entropy = np.float32(0)
        for a in range(len(log_p)):
            entropy -= math.exp(log_p[a]) * log_p[a]
        policy_loss -= min(ratio * advantage, bounded * advantage) / size
        value_loss += 0.5 * error**2 / size
        mean_entropy += entropy / size
        d_taken = 0.0 if clipped else -ratio * advantage
        for a in range(len(log_p)):
            p = math.exp(log_p[a])
            d_policy = d_taken * ((a == actions[at]) - p)
            d_entropy = -p * (log_p[a] + entropy)
            log_p[a] = (d_policy - weight * d_entropy) / size
        values[b, 0] = 0.5 * error / size
    return np.array([policy_loss, value_loss, mean_entropy])


def update(
    agent: Agent,
    optimizer: torch.optim.Optimizer,
    rollout: Rollout,
    advantages: Tensor,
    entropy_weight: float,
    settings: Settings,
    in_parts: Map = map,
) -> dict[str, float]:
    """Improve the agent with what was collected; steps in which a lane was reset are left out."""
    n, x = rollout.n[:-1].flatten(0, 1), rollout.x[:-1].flatten(0, 1)
    actions, before = rollout.actions.flatten(), rollout.log_probabilities.flatten()
    targets = (advantages + rollout.values[:-1]).flatten()
    advantages = advantages.flatten()
    played = (rollout.ended[:-1].flatten() == 0).nonzero().squeeze(1)
    steps = arrays((actions, before, targets))
    gradients = torch.empty(PARTS, len(agent.vector))

    def differentiate(part: Tensor, advantage: Tensor, d_weights: Weights, size: int) -> Any:
        """Set the gradients of a part of a minibatch of some size, and return its losses."""
        *outputs, trace = agent.judge(n, x, part)
        given = arrays(outputs), part.numpy(), advantage.numpy(), steps, size
        losses = differentiate_losses(*given, settings.clip, entropy_weight)
        agent.backward(trace, outputs, d_weights)
        return losses

    d_weights = [agent.split(gradient) for gradient in gradients]
    losses = np.zeros(3)
    for _ in range(settings.epochs):
        shuffled = played[torch.randperm(len(played))]
        for batch in shuffled.chunk(settings.minibatches):
            advantage = advantages[batch]
            advantage = (advantage - advantage.mean()) / (advantage.std(correction=0) + 1e-8)
            parts = batch.chunk(PARTS), advantage.chunk(PARTS), d_weights
            done = list(in_parts(differentiate, *parts, repeat(len(batch))))
            losses = sum(done)
            agent.vector.grad = gradients[0]
            for gradient in gradients[1 : len(done)]:
                agent.vector.grad += gradient
            nn.utils.clip_grad_norm_([agent.vector], 0.5)
            optimizer.step()
    return dict(zip(("policy_loss", "value_loss", "entropy"), losses.tolist(), strict=True))


def main(argv: Sequence[str] | None = None) -> int:
    arguments = make_parser(__doc__, steps=4_000_000).parse_args(argv)
    return run_study(arguments, "one-file-ppo", train, asdict(Settings()))


if __name__ == "__main__":
    run_script(main)
