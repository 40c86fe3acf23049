"""The words of the report, for a reader who has not read the paper."""

from __future__ import annotations

from types import MappingProxyType

GLOSSARY = MappingProxyType(
    {
        "endogenous": "The part of a state that the agent's actions change, such as where the "
        "robot is. It is written n.",
        "exogenous": "The part of a state that changes by itself, whatever the agent does, such "
        "as where other people walk. It is written x and has many variables.",
        "mask": "The exogenous variables that the agent looks at. It plans in a reduced model, "
        "which has the endogenous part and these variables only.",
        "return": "What an episode pays, later rewards discounted. Returns are those of the "
        "reduced model's policy, played in the full environment.",
        "λ": "The cost weight: what each variable of a mask costs, in units of return.",
        "J": "What a mask is worth: the mean return of its policy, less λ for each of its "
        "variables. Learners look for the mask with the highest J.",
        "brute force": "The learner that estimates J of every mask. It finds the best one, where "
        "there are few variables.",
        "greedy": "The learner that adds single variables as long as J increases. With "
        "heuristics it starts from a mask that was made by hand.",
        "first phase": "The variables that pay by themselves: those whose value changes the "
        "reward. The paper's algorithm begins with them.",
        "full": "Both phases: after the first one, variables are added that tell how those of "
        "the mask will change. The paper's rule chooses them by a score, ours by statistical "
        "tests at a stated level.",
        "trial": "One run of a learner with a seed of its own. All learners meet the same seeds.",
        "±": "Half of a 95 % interval of the mean over trials (Student's t). A single trial has "
        "none.",
    }
)
