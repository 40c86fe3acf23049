"""Small RDDL descriptions: a walker that actions move, and weather that nothing does."""

DOMAIN = """
domain small {{
    types {{
        cell : object;
        mood : {{ @calm, @windy, @stormy }};
        {types}
    }};
    pvariables {{
        NEXT(cell, cell) : {{ non-fluent, bool, default = false }};
        GOAL(cell) : {{ non-fluent, bool, default = false }};
        at(cell) : {{ state-fluent, bool, default = false }};
        weather : {{ state-fluent, mood, default = @calm }};
        move : {{ action-fluent, bool, default = false }};
        {fluents}
    }};
    cpfs {{
        at'(?c) = if (move ^ (weather ~= @stormy))
            then exists_{{?d : cell}} [at(?d) ^ NEXT(?d, ?c)]
            else at(?c);
        weather' = switch (weather) {{
            case @calm : Discrete(mood, @calm : 0.5, @windy : 0.3, @stormy : 0.2),
            case @windy : Discrete(mood, @calm : 0.2, @windy : 0.2, @stormy : 0.6),
            default : @calm
        }};
        {cpfs}
    }};
    reward = {reward};
    {blocks}
}}
"""

INSTANCE = """
non-fluents small_nf {{
    domain = small;
    objects {{ cell : {{ c1, c2, c3 }}; }};
    non-fluents {{ NEXT(c1, c2); NEXT(c2, c3); NEXT(c3, c1); GOAL(c3); }};
}}
instance small_1 {{
    domain = small;
    non-fluents = small_nf;
    init-state {{ at(c1); {initial} }};
    max-nondef-actions = {most};
    horizon = {horizon};
    discount = 0.9;
}}
"""

REWARD = "(sum_{?c : cell} [GOAL(?c) ^ at(?c)]) - 0.5 * (weather == @stormy) - 0.1 * move"


def small(
    *, fluents="", cpfs="", reward=REWARD, blocks="", initial="", most="1", horizon=8, types=""
):
    """The texts of domain and instance."""
    domain = DOMAIN.format(fluents=fluents, cpfs=cpfs, reward=reward, blocks=blocks, types=types)
    return domain, INSTANCE.format(initial=initial, most=most, horizon=horizon)


def with_fluent(kind, expression, *, name="extra", default="0", **others):
    """The same with one more state fluent and the expression of its next value."""
    fluent = f"{name} : {{ state-fluent, {kind}, default = {default} }};"
    return small(fluents=fluent, cpfs=f"{name}' = {expression};", **others)
