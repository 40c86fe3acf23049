"""PPO in one file, on the batched shell: thousands of lanes are one environment.

    python scripts/train_cleanrl_style.py ExoFactory-v0 \\
        --observation full learned --seeds 0 1 2 3 4
    python scripts/train_cleanrl_style.py ExoCrowd-v0 --train-in reduced \\
        --set lanes=4096

Everything that learns is here, from top to bottom: the network, the rollouts,
the update. What it shares with scripts/train_sb3.py is the rest: arguments,
masks, evaluation, curves and their plot.

Four things make it fast. A step of the environment is one call for all lanes.
Observations stay whole numbers: a one-hot input has a single 1 per variable,
so its product with a matrix is a sum of rows, which are looked up. A thread
computes all of its part of a batch, forward and backward, so threads rarely
wait for each other. And lanes that ended wait for their reset in place
(AutoresetMode.NEXT_STEP), so nothing is ever copied for single lanes; those
resets count as steps.

A run that was stopped or killed is repeated from its start, finished ones are
kept. The agent is in agent.pt, whose weights torch.load reads with
weights_only=True; without that a file from others can run code.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import repeat
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from planners import replacing
from wrappers import AgentPolicy

try:
    import torch
    from torch import Tensor, nn
    from torch.utils.tensorboard import SummaryWriter

    from shared.script import run_script
    from training.runs import Recorder, Run
    from training.study import make_parser, run_study
    from training.threads import Map, keep_memory, side_by_side
except ModuleNotFoundError as error:
    raise SystemExit(f'error: there is no {error.name}: pip install "exo-envs[rl]"') from error

Observation = dict[str, NDArray[np.int64]]

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


@njit(cache=True, nogil=True, fastmath=True)
def add_up(rows: Any, table: Any, out: Any) -> None:
    """out += the sum of table[rows], four at a time: so out is stored a quarter as often."""
    fours = len(rows) // 4 * 4
    for j in range(0, fours, 4):
        a, b, c, d = table[rows[j]], table[rows[j + 1]], table[rows[j + 2]], table[rows[j + 3]]
        for h in range(len(out)):
            out[h] += (a[h] + b[h]) + (c[h] + d[h])
    for j in range(fours, len(rows)):
        a = table[rows[j]]
        for h in range(len(out)):
            out[h] += a[h]


@njit(cache=True, nogil=True, fastmath=True)
def add_rows(index: Any, table: Any, bias: Any, out: Any) -> None:
    """out[b] = bias + the sum of table[index[b]]; row 0 stands for nothing."""
    rows = np.empty(index.shape[1], dtype=np.int32)
    for b in range(len(out)):
        found = 0
        for v in range(index.shape[1]):
            rows[found] = index[b, v]
            found += index[b, v] > 0
        out[b] = bias
        add_up(rows[:found], table, out[b])


@njit(cache=True, nogil=True, fastmath=True)
def add_gradients(index: Any, gradient: Any, out: Any) -> None:
    """The reverse of add_rows: out[row] += the sum of the gradients of those who look it up."""
    starts = np.zeros(len(out) + 1, dtype=np.int64)
    for row in index.flat:
        starts[row + 1] += row > 0
    starts = np.cumsum(starts)
    free, users = starts.copy(), np.empty(starts[-1], dtype=np.int32)
    for b in range(index.shape[0]):
        for v in range(index.shape[1]):
            row = index[b, v]
            if row > 0:
                users[free[row]] = b
                free[row] += 1
    for row in range(len(out)):
        add_up(users[starts[row] : starts[row + 1]], gradient, out[row])


class Lookup(torch.autograd.Function):
    """A one-hot input times a matrix plus a bias, without the one-hot input."""

    @staticmethod
    def forward(context: Any, table: Tensor, bias: Tensor, index: Tensor) -> Tensor:
        context.rows, context.index = len(table), index.numpy()
        out = torch.empty(len(index), table.shape[1])
        add_rows(context.index, table.detach().numpy(), bias.detach().numpy(), out.numpy())
        return out

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None]:
        out = torch.zeros(context.rows, gradient.shape[1])
        add_gradients(context.index, gradient.contiguous().numpy(), out.numpy())
        return out, gradient.sum(dim=0), None


class Rows(nn.Module):
    """A layer that looks its inputs up."""

    def __init__(self, table: Tensor, bias: Tensor) -> None:
        super().__init__()
        self.table, self.bias = nn.Parameter(table), nn.Parameter(bias)

    def forward(self, index: Tensor) -> Tensor:
        return Lookup.apply(self.table, self.bias, index)


class Indices:
    """Observations as rows of tables: those of n in one, those of x in another.

    Value 0 of a variable of x has no row: the bias speaks for it, which halves the work where most
    variables are 0. Not so for n, whose gates are too different to share one.
    """

    def __init__(self, space: Any) -> None:
        self.sizes = [
            space[part].nvec if part in space.spaces else np.zeros(0, dtype=np.int64)
            for part in ("endogenous", "exogenous")
        ]
        n_sizes, x_sizes = self.sizes
        self.rows = [1 + int(n_sizes.sum()), 1 + int((x_sizes - 1).sum())]
        self._n_first = 1 + np.cumsum(n_sizes) - n_sizes
        self._x_before = np.cumsum(x_sizes - 1) - (x_sizes - 1)

    def __call__(self, observation: Observation) -> tuple[Tensor, Tensor]:
        """The rows, (B, k) and (B, m)."""
        n = observation["endogenous"]
        x = observation.get("exogenous", np.zeros((len(n), 0), dtype=np.int64))
        n_rows = (n + self._n_first).astype(np.int32)
        x_rows = np.where(x > 0, x + self._x_before, 0).astype(np.int32)
        return torch.from_numpy(n_rows), torch.from_numpy(x_rows)


class Agent(nn.Module):
    """Actor and critic, side by side: readings of x, each weighed by what n makes of it."""

    def __init__(self, indices: Indices, num_actions: int, width: int) -> None:
        super().__init__()
        self.num_actions = num_actions
        n_rows, x_rows = indices.rows
        width_of_both = 2 * width
        self.read = Rows(0.1 * torch.randn(x_rows, width_of_both), torch.zeros(width_of_both))
        self.gate = Rows(torch.randn(n_rows, width_of_both), torch.ones(width_of_both))
        self.shift = Rows(0.1 * torch.randn(n_rows, width_of_both), torch.zeros(width_of_both))
        self.actor = self._head(width, num_actions, gain=0.01)
        self.critic = self._head(width, 1, gain=1.0)

    def forward(self, n: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
        """Log-probabilities of the actions (B, A) and values (B,)."""
        features = torch.addcmul(self.shift(n), self.read(x), self.gate(n)).relu_()
        for_actor, for_critic = features.chunk(2, dim=1)
        return self.actor(for_actor).log_softmax(dim=1), self.critic(for_critic).squeeze(1)

    @staticmethod
    def _head(width: int, outputs: int, gain: float) -> nn.Sequential:
        head = nn.Sequential(
            nn.Linear(width, width), nn.ReLU(inplace=True), nn.Linear(width, outputs)
        )
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
        self.n = torch.zeros(steps + 1, lanes, k, dtype=torch.int32)
        self.x = torch.zeros(steps + 1, lanes, m, dtype=torch.int32)
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
    optimizer = torch.optim.Adam(agent.parameters(), eps=1e-5, fused=True)
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
    with torch.no_grad():
        return agent(*rows)[0].argmax(dim=1).numpy()


def collect(
    env: Any, agent: Agent, indices: Indices, rollout: Rollout, scale: float, in_parts: Map = map
) -> None:
    """Play; the first step follows the last of the time before."""
    rollout.n[0], rollout.x[0], rollout.ended[0] = rollout.n[-1], rollout.x[-1], rollout.ended[-1]
    log_probabilities = torch.zeros(env.num_envs, agent.num_actions)

    @torch.no_grad()
    def judge(t: int, lanes: slice) -> None:
        found = agent(rollout.n[t, lanes], rollout.x[t, lanes])
        log_probabilities[lanes], rollout.values[t, lanes] = found

    parts = [slice(part[0], part[-1] + 1) for part in torch.arange(env.num_envs).chunk(PARTS)]
    for t in range(len(rollout.rewards)):
        list(in_parts(judge, repeat(t), parts))
        # The largest of log-probabilities with Gumbel noise is a sample.
        noise = torch.empty_like(log_probabilities).exponential_().log()
        rollout.actions[t] = (log_probabilities - noise).argmax(dim=1)
        chosen = rollout.actions[t].unsqueeze(1)
        rollout.log_probabilities[t] = log_probabilities.gather(1, chosen).squeeze(1)
        observation, rewards, terminated, truncated, _ = env.step(rollout.actions[t].numpy())
        rollout.rewards[t] = torch.from_numpy(scale * rewards)
        rollout.terminated[t] = torch.from_numpy(terminated)
        rollout.ended[t + 1] = torch.from_numpy(terminated | truncated)
        rollout.n[t + 1], rollout.x[t + 1] = indices(observation)
    list(in_parts(judge, repeat(len(rollout.rewards)), parts))


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
    parameters = list(agent.parameters())

    def differentiate(part: Tensor, advantage: Tensor, size: int) -> tuple[Any, Any]:
        """What a part adds to the losses of a minibatch of some size, and to its gradients."""
        log_probabilities, values = agent(n[part], x[part])
        taken = log_probabilities.gather(1, actions[part].unsqueeze(1)).squeeze(1)
        ratio = (taken - before[part]).exp()
        clipped = ratio.clamp(1 - settings.clip, 1 + settings.clip)
        policy_loss = -torch.min(ratio * advantage, clipped * advantage).sum() / size
        value_loss = 0.5 * (values - targets[part]).square().sum() / size
        entropy = -(log_probabilities.exp() * log_probabilities).sum() / size
        loss = policy_loss + 0.5 * value_loss - entropy_weight * entropy
        losses = torch.stack([policy_loss, value_loss, entropy]).detach()
        return losses, torch.autograd.grad(loss, parameters)

    losses = torch.zeros(3)
    for _ in range(settings.epochs):
        shuffled = played[torch.randperm(len(played))]
        for batch in shuffled.chunk(settings.minibatches):
            advantage = advantages[batch]
            advantage = (advantage - advantage.mean()) / (advantage.std(correction=0) + 1e-8)
            parts = batch.chunk(PARTS), advantage.chunk(PARTS)
            done = list(in_parts(differentiate, *parts, repeat(len(batch))))
            losses = sum(loss for loss, _ in done)
            for parameter, *gradients in zip(parameters, *(part for _, part in done), strict=True):
                parameter.grad = sum(gradients[1:], start=gradients[0])
            nn.utils.clip_grad_norm_(parameters, 0.5)
            optimizer.step()
    return dict(zip(("policy_loss", "value_loss", "entropy"), losses.tolist(), strict=True))


def main(argv: Sequence[str] | None = None) -> int:
    arguments = make_parser(__doc__, steps=4_000_000).parse_args(argv)
    return run_study(arguments, "one-file-ppo", train, asdict(Settings()))


if __name__ == "__main__":
    run_script(main)
