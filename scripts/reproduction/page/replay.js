// The replay: an episode of ExoCrowd, drawn from the values of its variables.
"use strict";

(() => {
  const $ = (name) => document.getElementById(`replay-${name}`);
  if (!$("data")) return;
  const episodes = JSON.parse($("data").textContent);
  let episode, step, timer = null;

  // --- what values mean -----------------------------------------------------------------

  // The things of a state, from the names and values of variables; what is not among them is
  // undefined, because nobody sees it.
  function decode(names, values) {
    const places = episode.tables.length + 1; // the tables, and a hand
    const world = { occupied: new Map(), agents: new Map(), objects: new Map() };
    names.forEach((name, i) => {
      const parts = name.split("_");
      if (parts[0] === "occupancy") {
        world.occupied.set(parts[1] * episode.columns + Number(parts[2]), values[i] === 1);
      } else if (parts[0] === "object") {
        const object = { name, number: Number(parts[1]), place: values[i] % places };
        object.isGoal = values[i] >= places;
        object.isHeld = object.place === places - 1;
        world.objects.set(object.number, object);
      } else {
        const key = `${parts[0]}_${parts[1]}`;
        const agent = world.agents.get(key) ?? { name: key, isPorter: parts[0] === "porter" };
        agent[parts[2]] = values[i];
        world.agents.set(key, agent);
      }
    });
    return world;
  }

  const goalOf = (world) => [...world.objects.values()].find((object) => object.isGoal);

  // --- drawing --------------------------------------------------------------------------

  function draw(parent, tag, attributes = {}, text) {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    if (text !== undefined) element.textContent = text;
    parent.append(element);
    return element;
  }

  const explain = (element, text) => draw(element, "title", {}, text);
  const corner = (cell) => [cell % episode.columns, Math.floor(cell / episode.columns)];

  const signs = {
    robot: (g, x, y) => draw(g, "circle", { class: "robot", cx: x, cy: y, r: 0.26 }),
    person(g, x, y, kind) {
      draw(g, "path", { class: `person ${kind}`, d: `M${x - 0.15} ${y + 0.2}a.15 .22 0 0 1 .3 0z` });
      draw(g, "circle", { class: `person ${kind}`, cx: x, cy: y - 0.09, r: 0.1 });
    },
    ring: (g, x, y) => draw(g, "circle", { class: "ring", cx: x, cy: y + 0.03, r: 0.25 }),
    object: (g, x, y) => draw(g, "rect", { class: "object", x: x - 0.08, y: y - 0.08, width: 0.16, height: 0.16 }),
    goal(g, x, y) {
      const points = [...Array(10).keys()].map((k) => {
        const reach = k % 2 ? 0.11 : 0.25;
        return [x + reach * Math.sin((k * Math.PI) / 5), y - reach * Math.cos((k * Math.PI) / 5)];
      });
      draw(g, "polygon", { class: "goal", points: points.join(" ") });
    },
    kept: (g, x, y) => draw(g, "rect", { class: "kept", x: x - 0.45, y: y - 0.45, width: 0.9, height: 0.9 }),
    occupied: (g, x, y) => draw(g, "circle", { class: "occupied", cx: x, cy: y, r: 0.38 }),
    unknown: (g, x, y) => draw(g, "rect", { class: "unknown", x: x - 0.5, y: y - 0.5, width: 1, height: 1 }),
    heat: (g, x, y, share) =>
      draw(g, "rect", { class: "heat", x: x - 0.5, y: y - 0.5, width: 1, height: 1, opacity: share }),
    chance: (g, x, y, share) => draw(g, "circle", { class: "chance", cx: x, cy: y, r: 0.45 * Math.sqrt(share) }),
    way: (g, x1, y1, x2, y2, toGoal) =>
      draw(g, "line", { class: toGoal ? "way to-goal" : "way", x1, y1, x2, y2 }),
  };

  // The k-th of n things that share a place, around its middle.
  function slot([x, y], k, n, width, depth) {
    const columns = Math.min(n, Math.max(2, Math.ceil(Math.sqrt((n * width) / depth))));
    const rows = Math.ceil(n / columns);
    const row = Math.floor(k / columns);
    const inRow = Math.min(columns, n - row * columns);
    return [
      x + (((k % columns) + 0.5) / inRow - 0.5) * width,
      y + ((row + 0.5) / rows - 0.5) * depth,
    ];
  }

  // An empty floor with a strip on its right for what is in somebody's hand, and nowhere on it.
  function floor(svg) {
    svg.replaceChildren();
    svg.setAttribute("viewBox", `-.05 -.05 ${episode.columns + 1.25} ${episode.rows + 0.1}`);
    for (let cell = 0; cell < episode.rows * episode.columns; cell++) {
      const [x, y] = corner(cell);
      draw(svg, "rect", { class: (x + y) % 2 ? "tile other" : "tile", x, y, width: 1, height: 1 });
    }
    return svg;
  }

  function tables(svg) {
    episode.tables.forEach((cell, number) => {
      const [x, y] = corner(cell);
      const top = draw(svg, "rect", { class: "table", x: x + 0.08, y: y + 0.06, width: 0.84, height: 0.44, rx: 0.06 });
      explain(top, `table ${number}`);
    });
  }

  const tableTop = (number) => {
    const [x, y] = corner(episode.tables[number]);
    return [x + 0.5, y + 0.28];
  };

  // Agents whose cell is known, and the robot: side by side in their cells. Returns their spots.
  function people(svg, world, robot, marked) {
    const byCell = new Map();
    const put = (who, cell) => byCell.set(cell, [...(byCell.get(cell) ?? []), who]);
    if (robot !== null) put({ name: "robot" }, robot);
    for (const agent of world.agents.values()) if (agent.cell !== undefined) put(agent, agent.cell);
    const spots = new Map();
    for (const [cell, group] of byCell) {
      const [x, y] = corner(cell);
      const atTable = episode.tables.includes(cell);
      group.forEach((who, k) => {
        const middle = [x + 0.5, y + (atTable ? 0.72 : 0.5)];
        spots.set(who.name, slot(middle, k, group.length, 0.86, atTable ? 0.4 : 0.7));
      });
    }
    for (const [name, [x, y]] of spots) {
      const g = draw(svg, "g");
      explain(g, name.replace("_", " "));
      if (name === "robot") signs.robot(g, x, y);
      else signs.person(g, x, y, name.split("_")[0]);
      if (marked.has(name)) signs.ring(g, x, y);
    }
    return spots;
  }

  // Objects on their tables, in the hands of porters who are drawn, or else on the strip.
  function objects(svg, world, spots) {
    const onTable = new Map();
    const astray = [];
    const where = new Map();
    for (const object of world.objects.values()) {
      const holder = spots.get(`porter_${object.number}`);
      if (!object.isHeld) onTable.set(object.place, [...(onTable.get(object.place) ?? []), object]);
      else if (holder) where.set(object, [holder[0] + 0.14, holder[1] + 0.08]);
      else astray.push(object);
    }
    for (const [place, group] of onTable) {
      group.forEach((object, k) => where.set(object, slot(tableTop(place), k, group.length, 0.78, 0.36)));
    }
    astray.forEach((object, k) => where.set(object, [episode.columns + 0.6, 1.2 + 0.55 * k]));
    if (astray.length) draw(svg, "text", { x: episode.columns + 0.6, y: 0.5 }, "in a hand");
    const ordered = [...where].sort(([a], [b]) => a.isGoal - b.isGoal); // nothing hides the goal
    for (const [object, [x, y]] of ordered) {
      const g = draw(svg, "g");
      explain(g, object.name.replace("_", " ") + (object.isGoal ? ", the goal" : ""));
      (object.isGoal ? signs.goal : signs.object)(g, x, y);
    }
  }

  // Where porters are known to be going.
  function ways(svg, world, spots) {
    for (const agent of world.agents.values()) {
      const from = spots.get(agent.name);
      if (!agent.isPorter || !from || agent.destination === undefined) continue;
      const goal = goalOf(world);
      signs.way(svg, ...from, ...tableTop(agent.destination), goal?.name.split("_")[1] === agent.name.split("_")[1]);
    }
  }

  function arrow(svg, robot, action) {
    const [dx, dy] = { up: [0, -1], down: [0, 1], left: [-1, 0], right: [1, 0] }[action] ?? [0, 0];
    if (robot === null || (dx === 0 && dy === 0)) return;
    const [x, y] = corner(robot).map((value) => value + 0.5);
    const [tipX, tipY] = [x + 0.8 * dx, y + 0.8 * dy];
    const wing = (side) => `M${tipX - 0.16 * dx + side * dy} ${tipY - 0.16 * dy + side * dx}L${tipX} ${tipY}`;
    draw(svg, "path", {
      class: "arrow",
      d: `M${x + 0.35 * dx} ${y + 0.35 * dy}L${tipX} ${tipY}${wing(0.14)}${wing(-0.14)}`,
    });
  }

  // --- the panels -----------------------------------------------------------------------

  function showThere(now) {
    const world = decode(episode.names, now.there);
    const kept = new Set(episode.mask.map((name) => name.split("_").slice(0, 2).join("_")));
    const svg = floor($("there"));
    tables(svg);
    const spots = people(svg, world, now.robot, kept);
    objects(svg, world, spots);
    arrow(svg, now.robot, episode.actions[now.action]);
    $("there-note").textContent =
      `${world.agents.size} agents, ${world.objects.size} objects: ${episode.names.length} variables. ` +
      "Agents that the mask keeps stand in a ring.";
    svg.setAttribute("aria-label", `Everything on the floor; ${goalText(goalOf(world))}`);
  }

  function showSeen(now) {
    const world = decode(episode.mask, now.seen);
    const svg = floor($("seen"));
    for (let cell = 0; cell < episode.rows * episode.columns; cell++) {
      const [x, y] = corner(cell).map((value) => value + 0.5);
      if (!world.occupied.has(cell)) signs.unknown(svg, x, y);
      else signs.kept(svg, x, y);
      if (world.occupied.get(cell)) signs.occupied(svg, x, y);
    }
    tables(svg);
    const spots = people(svg, world, now.robot, new Set());
    ways(svg, world, spots);
    objects(svg, world, spots);
    const known = (count, all, what) => `${count} of ${all} ${what}`;
    const all = decode(episode.names, now.there);
    $("seen-note").textContent =
      `${known(episode.mask.length, episode.names.length, "variables")}: the occupancy of ` +
      `${known(world.occupied.size, all.occupied.size, "cells")}, something of ` +
      `${known(world.agents.size, all.agents.size, "agents")}, ${known(world.objects.size, all.objects.size, "objects")}.`;
    svg.setAttribute("aria-label", `What the mask keeps; ${goalText(goalOf(world))}`);
  }

  function goalText(goal) {
    if (!goal) return "the goal is not seen";
    return `the goal, ${goal.name.replace("_", " ")}, is ${goal.isHeld ? "in a hand" : `on table ${goal.place}`}`;
  }

  function showForecast(now) {
    const svg = floor($("forecast"));
    const { cells, objects: forecastObjects } = episode.forecast;
    const chosen = document.querySelector("#replay-ahead input:checked");
    const over = now.occupancy === undefined || !chosen;
    for (const control of document.querySelectorAll("#replay-ahead input, #replay-object")) control.disabled = over;
    if (over) {
      tables(svg);
      $("forecast-note").textContent = chosen
        ? "The episode is over: there is nothing left to plan."
        : "This mask is small enough to be planned with exactly: no forecasts are needed.";
      svg.setAttribute("aria-label", $("forecast-note").textContent);
      return;
    }
    const h = Number(chosen.value);
    for (let cell = 0; cell < episode.rows * episode.columns; cell++) {
      const [x, y] = corner(cell).map((value) => value + 0.5);
      const share = now.occupancy[h][cells.indexOf(cell)];
      if (share === undefined) signs.unknown(svg, x, y);
      else explain(signs.heat(svg, x, y, share / 100), `occupied with ${share} %`);
    }
    tables(svg);
    const shares = now.places[h][forecastObjects.indexOf(chosenObject(now))];
    (shares ?? []).forEach((share, place) => {
      if (share === 0) return;
      const isHand = place === episode.tables.length;
      const [x, y] = isHand ? [episode.columns + 0.6, 1.2] : tableTop(place);
      explain(signs.chance(svg, x, y, share / 100), `${isHand ? "in a hand" : `on table ${place}`} with ${share} %`);
      draw(svg, "text", { x, y, class: "on-table" }, `${share}%`);
    });
    if (shares) draw(svg, "text", { x: episode.columns + 0.6, y: 0.5 }, "in a hand");
    if (now.robot !== null) signs.robot(svg, ...corner(now.robot).map((value) => value + 0.5));
    const steps = episode.ahead[h] === 1 ? "one step from now" : `${episode.ahead[h]} steps from now`;
    $("forecast-note").textContent =
      `The stronger its colour, the likelier a cell is occupied ${steps}. The discs say where the ` +
      "object will be then.";
    svg.setAttribute("aria-label", `Forecast, ${steps}`);
  }

  // The object whose forecast is shown: the goal, unless another one was asked for.
  function chosenObject(now) {
    const value = $("object").value;
    return value === "goal" ? goalOf(decode(episode.mask, now.seen))?.number : Number(value);
  }

  function showExpected(now) {
    const values = now.expected ?? [];
    const [low, high] = [Math.min(0, ...values), Math.max(1, ...values)];
    $("expected").replaceChildren();
    values.forEach((value, action) => {
      const chosen = action === now.action ? "chosen" : "";
      const cell = (className, text) => {
        const element = document.createElement("div");
        element.className = className;
        element.textContent = text;
        $("expected").append(element);
        return element;
      };
      cell(chosen, episode.actions[action]);
      const fill = document.createElement("div");
      fill.className = `fill ${chosen}`;
      fill.style.width = `${(100 * (value - low)) / (high - low)}%`;
      cell("track", "").append(fill);
      cell(chosen, value.toFixed(0));
    });
    if (!values.length) $("expected").textContent = "–";
  }

  function showStatus(now) {
    const before = episode.steps.slice(0, step);
    const earned = before.reduce((sum, past, t) => sum + episode.discount ** t * past.reward, 0);
    const goal = goalText(goalOf(decode(episode.names, now.there)));
    const move = { stay: "stays" }[episode.actions[now.action]] ?? `goes ${episode.actions[now.action]}`;
    const pay = { [-1]: `, crashes and pays ${-now.reward}`, 1: ` and is paid ${now.reward}` }[Math.sign(now.reward)] ?? "";
    const what = now.action === undefined ? "the episode is over" : `the robot ${move}${pay}`;
    $("status").textContent = `Step ${step}: ${what}. ${goal[0].toUpperCase()}${goal.slice(1)}. Earned so far: ${earned.toFixed(0)}.`;
  }

  // --- controls -------------------------------------------------------------------------

  function show(next) {
    const last = episode.steps.length - 1;
    step = Math.max(0, Math.min(next, last));
    const now = episode.steps[step];
    $("slider").value = step;
    $("number").textContent = `${step} of ${last}`;
    // Not `disabled`: that would take the keyboard away from the button that was just used.
    for (const name of ["first", "back"]) $(name).setAttribute("aria-disabled", step === 0);
    for (const name of ["forward", "last"]) $(name).setAttribute("aria-disabled", step === last);
    showThere(now);
    showSeen(now);
    showForecast(now);
    showExpected(now);
    showStatus(now);
  }

  function choose(number) {
    pause();
    episode = episodes[number];
    $("slider").max = episode.steps.length - 1;
    const earlier = document.querySelector("#replay-ahead input:checked")?.value ?? "0";
    for (const old of document.querySelectorAll("#replay-ahead label")) old.remove();
    episode.ahead.forEach((h, index) => {
      const label = document.createElement("label");
      const input = document.createElement("input");
      Object.assign(input, { type: "radio", name: "ahead", value: index, checked: String(index) === earlier });
      input.addEventListener("change", () => show(step));
      label.append(input, ` ${h}`);
      $("ahead").append(label);
    });
    $("object").replaceChildren(new Option("the goal", "goal"));
    for (const object of episode.forecast.objects) $("object").append(new Option(`object ${object}`, object));
    show(0);
  }

  function pause() {
    clearInterval(timer);
    timer = null;
    $("play").textContent = "Play";
    $("play").setAttribute("aria-label", "Play");
  }

  function play() {
    if (timer) return pause();
    if (step === episode.steps.length - 1) show(0);
    $("play").textContent = "Pause";
    $("play").setAttribute("aria-label", "Pause");
    timer = setInterval(() => {
      show(step + 1);
      if (step === episode.steps.length - 1) pause();
    }, 700);
  }

  const moves = {
    first: () => show(0),
    back: () => show(step - 1),
    forward: () => show(step + 1),
    last: () => show(Infinity),
  };
  for (const [name, move] of Object.entries(moves)) {
    $(name).addEventListener("click", () => { pause(); move(); });
  }
  $("play").addEventListener("click", play);
  $("slider").addEventListener("input", () => { pause(); show(Number($("slider").value)); });
  $("object").addEventListener("change", () => show(step));
  $("episode").addEventListener("change", () => choose(Number($("episode").value)));
  $("player").addEventListener("keydown", (event) => {
    const key = { Home: "first", ArrowLeft: "back", ArrowRight: "forward", End: "last" }[event.key];
    const tag = event.target.tagName;
    if (tag === "SELECT" || tag === "INPUT") return; // they have uses for the keys themselves
    if (key) { pause(); moves[key](); }
    else if (event.key === " " && tag !== "BUTTON") play();
    else return;
    event.preventDefault();
  });

  // --- the legend, and the first picture ------------------------------------------------

  const legend = {
    robot: (g) => { signs.robot(g, 0.5, 0.5); },
    goal: (g) => { signs.goal(g, 0.5, 0.5); },
    object: (g) => { signs.object(g, 0.5, 0.5); },
    porter: (g) => { signs.person(g, 0.5, 0.5, "porter"); },
    wanderer: (g) => { signs.person(g, 0.5, 0.5, "wanderer"); },
    "agent that the mask keeps": (g) => { signs.person(g, 0.5, 0.5, "porter"); signs.ring(g, 0.5, 0.5); },
    "where a porter is seen to go": (g) => { signs.way(g, 0, 0.5, 1, 0.5, false); },
    "cell whose occupancy the mask keeps": (g) => { signs.kept(g, 0.5, 0.5); },
    "occupied": (g) => { signs.kept(g, 0.5, 0.5); signs.occupied(g, 0.5, 0.5); },
    "cell the mask ignores": (g) => { signs.unknown(g, 0.5, 0.5); },
    "occupied with 20 %": (g) => { signs.heat(g, 0.5, 0.5, 0.2); },
    "with 80 %": (g) => { signs.heat(g, 0.5, 0.5, 0.8); },
    "the object will be here": (g) => { signs.chance(g, 0.5, 0.5, 0.6); },
  };
  const defs = draw($("player"), "svg", { width: 0, height: 0, "aria-hidden": "true" });
  const hatch = draw(draw(defs, "defs"), "pattern", {
    id: "hatch", width: 0.2, height: 0.2, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)",
  });
  draw(hatch, "line", { class: "hatch", x1: 0, y1: 0, x2: 0, y2: 0.2 });
  for (const [text, sign] of Object.entries(legend)) {
    const item = document.createElement("li");
    const isSmall = ["robot", "goal", "object", "porter", "wanderer"].includes(text);
    const viewBox = isSmall ? ".2 .2 .6 .6" : "0 0 1 1";
    const svg = draw(item, "svg", { viewBox, "aria-hidden": "true" });
    sign(svg);
    item.append(text);
    $("legend").append(item);
  }
  episodes.forEach((one, number) => $("episode").append(new Option(one.title, number)));
  choose(0);
})();
