// What answers the reader: the theme, tips on pictures, the box about a number, the explorer and the sliders.
// Nothing is fetched or stored. Text from data is only ever set as text, so none of it can become markup.
"use strict";
(() => {
  // texts of the page's language; what stands in braces is filled in
  const SAY = JSON.parse(document.getElementById("texts").textContent);
  const phrase = (key, fields = {}) => SAY[key].replace(/\{(\w+)\}/g, (_, name) => fields[name]);
  const SVG = "http://www.w3.org/2000/svg";
  const all = (what, within = document) => [...within.querySelectorAll(what)];
  const clamp = (x, low, high) => Math.min(Math.max(x, low), high);

  function make(name, attributes = {}, ...inside) {
    const svg = /^(svg|g|path|line|circle|text|polyline)$/.test(name);
    const made = svg ? document.createElementNS(SVG, name) : document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...inside.filter((one) => one !== null));
    return made;
  }

  // Numbers in words, as the program writes them (description.styled)

  const number = (value) =>
    Number(Math.abs(value) < 1000 ? value.toPrecision(3) : value.toFixed(0)).toLocaleString("en-US", { maximumFractionDigits: 20 });
  const signed = (value, shown) => (value < 0 ? "\u2212" : "+") + shown.replace("-", "");
  const WRITE = {
    share: (value) => `${(100 * value).toFixed(1)}%`,
    points: (value) => phrase("points", { value: (100 * value).toFixed(1) }),
    count: (value) => value.toLocaleString("en-US"),
    number,
  };
  function difference(value, style) {
    if (value === 0) return "0";
    if (style === "share" || style === "points") return signed(value, phrase("points", { value: (100 * value).toFixed(1) }));
    return signed(value, style === "count" ? value.toLocaleString("en-US") : number(value));
  }
  const onAxis = (value, style) =>
    style === "share" ? `${+(100 * value).toFixed(2)}%` : style === "points" ? `${+(100 * value).toFixed(2)}` : value.toLocaleString("en-US", { maximumFractionDigits: 6 });

  // The theme: as the system has it, or as chosen for as long as the page is open

  function theme(button) {
    const themes = ["auto", "light", "dark"];
    button.hidden = false;
    button.addEventListener("click", () => {
      const next = themes[(themes.indexOf(document.documentElement.dataset.theme || "auto") + 1) % 3];
      if (next === "auto") delete document.documentElement.dataset.theme;
      else document.documentElement.dataset.theme = next;
      button.textContent = phrase("theme", { theme: SAY[next] || next });
    });
  }

  function navigation() {
    const links = new Map(all(".side a").map((link) => [link.hash.slice(1), link]));
    const seen = new Set();
    const watch = new IntersectionObserver((entries) => {
      for (const entry of entries) entry.isIntersecting ? seen.add(entry.target.id) : seen.delete(entry.target.id);
      const first = [...links.keys()].find((id) => seen.has(id));
      for (const [id, link] of links) id === first ? link.setAttribute("aria-current", "true") : link.removeAttribute("aria-current");
    }, { rootMargin: "-20% 0px -55% 0px" });
    for (const id of links.keys()) watch.observe(document.getElementById(id));
    const menu = document.querySelector(".menu");
    menu.addEventListener("click", (event) => { if (event.target.closest("a")) menu.open = false; });
  }

  // One tip for all pictures; it stands above what it is about, inside the window

  const tip = make("div", { class: "tip", role: "status", hidden: "" });
  document.body.append(tip);
  function place(box, target, below) {
    const at = target.getBoundingClientRect();
    const size = box.getBoundingClientRect();
    const left = clamp(at.left + at.width / 2 - size.width / 2, 8, document.documentElement.clientWidth - size.width - 8);
    const above = at.top - size.height - 8;
    const top = below && at.bottom + size.height + 8 < innerHeight || above < 60 ? at.bottom + 8 : above;
    box.style.left = `${left + scrollX}px`;
    box.style.top = `${top + scrollY}px`;
  }
  function say(words, target) {
    tip.textContent = words;
    tip.hidden = false;
    place(tip, target, false);
  }
  const hush = () => { tip.hidden = true; };

  // Marks are small, so that the nearest one speaks; with the keyboard a picture is one stop and arrows go on from there
  function pictures(box) {
    const marks = all("svg [aria-label]", box);
    let lit = null;
    function light(mark) {
      if (lit) lit.classList.remove("lit");
      lit = mark;
      if (!mark) return hush();
      mark.classList.add("lit");
      say(mark.getAttribute("aria-label").replace(": ", "\n").replaceAll("; ", "\n"), mark);
    }
    function nearest(event) {
      let best = null, least = 30;
      for (const mark of marks) {
        const at = mark.getBoundingClientRect();
        const away = Math.hypot(event.clientX - clamp(event.clientX, at.left, at.right), event.clientY - clamp(event.clientY, at.top, at.bottom));
        if (away < least || (away === 0 && event.target === mark)) [best, least] = [mark, away];
      }
      return best;
    }
    box.addEventListener("pointermove", (event) => { const mark = nearest(event); if (mark !== lit) light(mark); });
    box.addEventListener("pointerdown", (event) => light(nearest(event)));
    box.addEventListener("pointerleave", (event) => { if (event.pointerType === "mouse") light(null); });
    box.addEventListener("blur", () => light(null));
    box.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (!step || !marks.length) return;
      event.preventDefault();
      light(marks[lit ? (marks.indexOf(lit) + step + marks.length) % marks.length : step > 0 ? 0 : marks.length - 1]);
    });
  }

  // The box about a number: what it is, what that means, where it comes from

  const box = make("div", { class: "box", role: "dialog", "aria-label": phrase("about"), hidden: "" });
  document.body.append(box);
  let asked = null;
  function about(target) {
    const cell = target.closest("td");
    const table = cell && cell.closest("table");
    const head = cell && table.tHead.rows[0].cells[cell.cellIndex];
    const link = head && head.querySelector("a");
    const term = cell ? link && link.hash.slice(5) : target.dataset.term;
    const row = cell && all("th", cell.parentNode).map((one) => one.textContent).join(", ");
    const value = cell ? cell.querySelector(".v").textContent : target.textContent;
    const reach = (cell || target.parentNode).querySelector(".reach");
    const title = term && document.getElementById(`def-${term}`);
    const close = make("button", { type: "button", "aria-label": phrase("close") }, "\u00d7");
    close.addEventListener("click", shut);
    box.replaceChildren(
      close,
      make("p", { class: "what" }, cell ? `${row}: ${head.textContent}` : target.parentNode.querySelector("h2").firstChild.textContent.trim()),
      make("p", { class: "figure" }, value, reach ? make("span", { class: "reach" }, reach.textContent) : null),
    );
    if (title) {
      box.append(make("p", {}, make("strong", {}, title.textContent), `. ${title.nextElementSibling.textContent}`));
      const worse = title.nextElementSibling.nextElementSibling;
      if (worse && worse.className === "worse") box.append(make("p", {}, worse.textContent));
      box.append(make("p", {}, make("a", { href: `#def-${term}` }, phrase("definitions"))));
    }
    const line = document.body.dataset.version === "internal" ? phrase("line", { line: target.dataset.n }) : "";
    box.append(make("p", { class: "source" }, phrase("source", { source: (table || target).dataset.source }) + line));
    box.hidden = false;
    place(box, target, true);
    asked = target;
    close.focus({ preventScroll: true });
  }
  function shut() {
    box.hidden = true;
    if (asked) asked.focus({ preventScroll: true });
    asked = null;
  }

  // A table's box is one stop of the keyboard; Enter goes into its numbers, arrows from one to the next, Escape out
  function walk(event) {
    const cell = event.target.closest("td[data-n]");
    const region = event.target.closest(".scroll");
    if (!region) return;
    const go = (next) => { if (next) { next.tabIndex = -1; next.focus(); event.preventDefault(); } };
    if (!cell && event.target === region && event.key === "Enter") return go(region.querySelector("td[data-n]"));
    if (!cell) return;
    const beside = (row, column) => row && row.cells[column] && row.cells[column].matches("[data-n]") ? row.cells[column] : null;
    const row = cell.parentNode;
    if (event.key === "Enter") { event.preventDefault(); about(cell); }
    if (event.key === "Escape") { event.stopPropagation(); region.focus(); }
    if (event.key === "ArrowRight") go(beside(row, cell.cellIndex + 1));
    if (event.key === "ArrowLeft") go(beside(row, cell.cellIndex - 1));
    if (event.key === "ArrowDown") go(beside(row.nextElementSibling, cell.cellIndex));
    if (event.key === "ArrowUp") go(beside(row.previousElementSibling, cell.cellIndex));
  }

  function numbers() {
    document.addEventListener("click", (event) => {
      const target = event.target.closest("[data-n]");
      if (target) { if (target.tagName === "TD") target.tabIndex = -1; about(target); }
      else if (!box.hidden && (!box.contains(event.target) || event.target.closest("a"))) { asked = null; shut(); }
    });
    document.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && (!box.hidden || !tip.hidden)) { hush(); if (!box.hidden) shut(); }
      else walk(event);
    });
  }

  // Axes of the pictures that are drawn here

  function ticks(low, high, root, pixels, gap) {
    const found = [];
    if (root) {
      for (let power = Math.floor(Math.log10(high)) - 3; power <= Math.log10(high); power++)
        for (const digit of [1, 2, 5]) found.push(digit * 10 ** power);
      found.unshift(0);
    } else {
      const rough = (high - low) / 5, unit = 10 ** Math.floor(Math.log10(rough));
      const step = unit * [1, 2, 5, 10].find((one) => one * unit >= rough);
      for (let k = Math.ceil(low / step); k * step <= high * 1.0001; k++) found.push(k * step);
    }
    const kept = [];  // from the far end, where they have room
    for (const one of found.filter((one) => one <= high * 1.0001).reverse())
      if (!kept.length || Math.abs(pixels(one) - pixels(kept[0])) >= gap) kept.unshift(one);
    return kept;
  }

  const SHAPES = [
    "M0,-6a6,6 0 1,0 .001,0Z", "M-5.3,-5.3h10.6v10.6h-10.6Z", "M0,-6.8L6.6,5.2h-13.2Z", "M0,-7.3L6.4,0L0,7.3L-6.4,0Z",
    "M0,6.8L6.6,-5.2h-13.2Z", "M-2.2,-6.4h4.4v4.2h4.2v4.4h-4.2v4.2h-4.4v-4.2h-4.2v-4.4h4.2Z",
  ];

  function explorer(root) {
    const data = JSON.parse(root.querySelector("script").textContent);
    const kinds = [...new Set(data.rows.map((row) => row.kind))];
    const [stage, keys, panel] = [".stage", ".keys", ".scroll"].map((what) => root.querySelector(what));
    const axis = Object.fromEntries(all("[data-axis]", root).map((one) => [one.dataset.axis, one]));
    const pick = Object.fromEntries(all("[data-pick]", root).map((one) => [one.dataset.pick, one]));
    const shape = (kind) => SHAPES[kinds.indexOf(kind) % SHAPES.length];
    const colour = (kind) => `var(--c${kinds.indexOf(kind) % 6 + 1})`;
    let turn = "A";

    function draw() {
      const [x, y] = [+axis.x.value, +axis.y.value], guess = data.guesses[y];
      const points = data.rows.map((row, id) => ({ id, row, x: row.cells[x], y: row.cells[y], guess: guess === undefined ? null : row.cells[guess].value }))
        .filter((point) => point.x.value !== null && point.y.value !== null);
      const worse = (p, q) => q.x.value <= p.x.value && q.y.value <= p.y.value && (q.x.value < p.x.value || q.y.value < p.y.value);
      for (const point of points) point.front = !points.some((other) => worse(point, other));

      const width = clamp(stage.clientWidth, 280, 820), height = clamp(width * 0.62, 300, 440);
      const [left, right, top, bottom] = [52, 24, 26, 46];
      const ends = (cells) => cells.flatMap((cell) => [cell.value, cell.low ?? cell.value, cell.high ?? cell.value]);
      const xs = ends(points.map((point) => point.x)), ys = [...ends(points.map((point) => point.y)), ...points.map((point) => point.guess ?? 0)];
      const [x0, x1] = [Math.min(0, ...xs), Math.max(...xs, 1e-9) * 1.03], [y0, y1] = [Math.min(0, ...ys), Math.max(...ys, 1e-9) * 1.05];
      // most useful settings have small errors: a root gives them room, where a few are far out
      const middle = [...points.map((point) => point.x.value)].sort((a, b) => a - b)[points.length >> 1] || 0;
      const rooted = x0 >= 0 && x1 > 4 * middle;
      const px = (value) => left + (width - left - right) * (rooted ? Math.sqrt(Math.max(value, 0) / x1) : (value - x0) / (x1 - x0));
      const py = (value) => height - bottom - (height - top - bottom) * (value - y0) / (y1 - y0);
      const svg = make("svg", { class: "plot", viewBox: `0 0 ${width} ${height}`, width, height, role: "group", "aria-label": phrase("against", { risk: data.columns[y].title, cost: data.columns[x].title }) });

      for (const value of ticks(y0, y1, false, py, 24))
        svg.append(make("line", { x1: left, x2: width - right, y1: py(value), y2: py(value), stroke: "var(--grid)" }),
          make("text", { x: left - 8, y: py(value) + 4, "text-anchor": "end" }, onAxis(value, data.columns[y].style)));
      for (const value of ticks(x0, x1, rooted, px, 48))
        svg.append(make("line", { x1: px(value), x2: px(value), y1: top, y2: height - bottom, stroke: "var(--grid)" }),
          make("text", { x: px(value), y: height - bottom + 18, "text-anchor": "middle" }, onAxis(value, data.columns[x].style)));
      svg.append(make("line", { x1: left, x2: width - right, y1: py(y0), y2: py(y0), stroke: "var(--muted)" }),
        make("text", { class: "tick-name", x: width - right, y: height - 6, "text-anchor": "end" }, `${data.columns[x].title} \u2192 ${phrase("worse")}${rooted ? phrase("rooted") : ""}`),
        make("text", { class: "tick-name", x: 0, y: 12 }, `\u2191 ${phrase("worse")}  ${data.columns[y].title}`));

      // between two settings of the front there is none: its line goes in steps
      const front = points.filter((point) => point.front).sort((p, q) => p.x.value - q.x.value || q.y.value - p.y.value);
      const steps = front.flatMap((p, k) => k ? [[px(p.x.value), py(front[k - 1].y.value)], [px(p.x.value), py(p.y.value)]] : [[px(p.x.value), py(p.y.value)]]);
      svg.append(make("polyline", { points: steps.map((one) => one.map((n) => n.toFixed(1)).join()).join(" "), fill: "none", stroke: "var(--muted)", "stroke-width": 1.5, "stroke-dasharray": "5 4" }));

      const spots = points.flatMap((p) => [[p.x.value, p.y.value], [p.x.value, p.guess]]).filter(([, value]) => value !== null);
      const taken = spots.map(([across, up]) => [px(across) - 7, px(across) + 7, py(up)]);
      for (const point of [...points].sort((p, q) => q.front - p.front || p.x.value - q.x.value)) svg.append(mark(point, px, py));
      for (const point of [...front, ...points.filter((one) => !one.front)]) {
        // above the line of the front if there is room, else below it
        const wide = 6.8 * point.row.name.length, x = px(point.x.value), y = py(point.y.value);
        const spot = [[x + 8, y - 12], [x - 8 - wide, y - 12], [x + 8, y + 13], [x - 8 - wide, y + 13]].find(([from, at]) =>
          from > left && from + wide < width && !taken.some(([a, b, h]) => a < from + wide && b > from && Math.abs(h - at) < 12));
        if (!spot || width < 420 && !point.front) continue;  // its tip and the lists have the name
        taken.push([spot[0], spot[0] + wide, spot[1]]);
        svg.append(make("text", { class: "label", x: spot[0], y: spot[1] + 4, "aria-hidden": "true" }, point.row.name));
      }
      stage.replaceChildren(svg);
      legend(guess !== undefined, points.length < data.rows.length);
    }

    function mark(point, px, py) {
      const [x, y] = [px(point.x.value), py(point.y.value)], tint = colour(point.row.kind);
      const letters = ["A", "B"].filter((one) => pick[one].value === String(point.id)).join("");
      const lines = data.columns.map((column, k) => k < 2 || point.row.cells[k].value === null ? null : `${column.title}: ${point.row.cells[k].text}${point.row.cells[k].reach ? ` (${point.row.cells[k].reach})` : ""}`);
      const words = [`${point.row.name} (${point.row.kind})`, point.front ? null : phrase("beaten"), ...lines].filter(Boolean);
      const group = make("g", { class: "point", tabindex: 0, role: "button", "aria-label": words.join("; "), "aria-pressed": letters ? "true" : "false", "data-row": point.id });
      const rule = (from) => group.append(make("line", { ...from, stroke: tint, "stroke-width": 1.5, "stroke-opacity": 0.65 }));
      if (point.y.low != null) rule({ x1: x, x2: x, y1: py(point.y.low), y2: py(point.y.high) });
      if (point.x.low != null) rule({ y1: y, y2: y, x1: px(point.x.low), x2: px(point.x.high) });
      if (point.guess !== null) group.append(make("line", { x1: x - 8, x2: x + 8, y1: py(point.guess), y2: py(point.guess), stroke: "var(--ink)", "stroke-width": 2 }));
      group.append(make("circle", { cx: x, cy: y, r: 15, fill: letters ? "var(--warnground)" : "transparent", stroke: letters ? "var(--ink)" : "none" }),
        make("path", { class: "mark", d: shape(point.row.kind), transform: `translate(${x.toFixed(1)},${y.toFixed(1)})`, fill: point.front ? tint : "var(--paper)", stroke: tint, "stroke-width": 2 }));
      if (letters) group.append(make("text", { class: "pick", x, y: y - 19, "text-anchor": "middle" }, letters));
      const speak = () => say(words.join("\n"), group.querySelector(".mark"));
      for (const when of ["pointerenter", "focus"]) group.addEventListener(when, speak);
      for (const when of ["pointerleave", "blur"]) group.addEventListener(when, hush);
      group.addEventListener("click", () => choose(point.id));
      group.addEventListener("keydown", (event) => {
        if (event.key === "Enter" || event.key === " ") { event.preventDefault(); choose(point.id); }
      });
      return group;
    }

    function legend(guessing, missing) {
      const entry = (inside, words) => make("li", {}, make("svg", { width: 18, height: 16, viewBox: "-9 -8 18 16", "aria-hidden": "true" }, inside), make("span", {}, words));
      keys.replaceChildren(...kinds.map((kind) => entry(make("path", { d: shape(kind), fill: colour(kind) }), kind)),
        entry(make("path", { d: SHAPES[0], fill: "none", stroke: "var(--muted)", "stroke-width": 2 }), phrase("hollow")),
        entry(make("path", { d: "M-9,0H9", stroke: "var(--muted)", "stroke-width": 1.5, "stroke-dasharray": "5 4" }), phrase("front")));
      if (guessing) keys.append(entry(make("path", { d: "M-8,0H8", stroke: "var(--ink)", "stroke-width": 2 }), phrase("guessing")));
      if (missing) keys.append(make("li", {}, phrase("not_drawn")));
    }

    function choose(id) {
      pick[turn].value = String(id);
      turn = turn === "A" ? "B" : "A";
      update();
      const again = stage.querySelector(`[data-row="${id}"]`);  // it was drawn anew
      if (again) again.focus({ preventScroll: true });
    }

    function compare() {
      panel.hidden = pick.A.value === "" || pick.B.value === "";
      if (panel.hidden) return;
      const [a, b] = [data.rows[pick.A.value], data.rows[pick.B.value]];
      const body = make("tbody");
      data.columns.forEach((column, k) => {
        if (k < data.first) return;
        const [one, other] = [a.cells[k], b.cells[k]];
        const cell = (from) => make("td", { class: "n" }, from.text, from.reach ? make("span", { class: "reach" }, from.reach) : null);
        const both = one.value !== null && other.value !== null, change = both ? other.value - one.value : null;
        body.append(make("tr", {}, make("th", { scope: "row" }, column.title), cell(one), cell(other),
          make("td", { class: "n", "data-difference": k }, both ? difference(change, column.style) : "\u2013"),
          make("td", {}, both ? verdict(one, other, change, column.worse) : "\u2013")));
      });
      const head = [phrase("measure"), `A: ${a.name}`, `B: ${b.name}`, "B \u2212 A", phrase("better")];
      panel.replaceChildren(make("table", {}, make("caption", { class: "away" }, phrase("both", { a: a.name, b: b.name })),
        make("thead", {}, make("tr", {}, ...head.map((words, k) => make("th", { scope: "col", class: k && k < 4 ? "n" : "" }, words)))), body));
    }

    function verdict(one, other, change, worse) {
      if (change === 0) return phrase("same");
      if (!worse) return "neither";
      const better = (change > 0) === (worse === "higher") ? phrase("a_better") : phrase("b_better");
      const overlap = one.low != null && other.low != null && one.low <= other.high && other.low <= one.high;
      return better + (overlap ? phrase("overlap") : "");
    }

    function update() { draw(); compare(); }
    root.hidden = false;
    root.addEventListener("change", update);
    new ResizeObserver(draw).observe(stage);
    update();
  }

  // What one noisy count gives away (attack.infer.onelevel: marginal and posterior), exact: a sum over all noise that counts

  const logit = (p) => Math.log(p) - Math.log1p(-p);
  const expit = (x) => x >= 0 ? 1 / (1 + Math.exp(-x)) : Math.exp(x) / (1 + Math.exp(x));
  function release(rate, prior) {
    const far = Math.ceil(Math.sqrt(40 / rate)) + 2;
    let total = 0, belief = 0, square = 0;
    for (let n = -far; n <= far; n++) {
      const mass = Math.exp(-rate * n * n);
      total += mass;
      belief += mass * expit(logit(prior) + rate * (2 * n + 1));
      square += mass * n * n;
    }
    return { average: belief / total, ratio: belief / total / prior, deviation: Math.sqrt(square / total) };
  }

  function sliders(root) {
    const data = JSON.parse(root.querySelector("script").textContent);
    const [stage, panel] = [".stage", ".scroll"].map((what) => root.querySelector(what));
    const limits = { prior: [0.01, 0.99], rho: [0.001, 10], u: [-20, 20] };
    const slide = (name) => root.querySelector(`[data-for="${name}"]`), type = (name) => root.querySelector(`[data-number="${name}"]`);
    const state = {};
    const out = (name, value, words) => {
      const output = root.querySelector(`[data-out="${name}"]`);
      output.textContent = words;
      output.dataset.value = value;  // in full
    };

    function set(name, value, from) {
      if (!Number.isFinite(value)) return;
      state[name] = clamp(name === "u" ? Math.round(value) : value, ...limits[name]);
      if (from !== "range") slide(name).value = name === "rho" ? Math.log10(state.rho) : state[name];
      if (from !== "number") type(name).value = name === "rho" ? +state.rho.toPrecision(3) : state[name];
      if (name === "rho" && from === "range") state.rho = +type("rho").value;  // what is shown is what is computed
      slide(name).setAttribute("aria-valuetext", type(name).value);
    }

    function update() {
      const rate = data.scale * state.rho, found = release(rate, state.prior);
      const posterior = expit(logit(state.prior) + rate * (2 * state.u - 1));
      out("average", found.average, WRITE.share(found.average));
      out("ratio", found.ratio, `${found.ratio.toFixed(2)}\u00d7`);
      out("posterior", posterior, WRITE.share(posterior));
      out("deviation", found.deviation, number(found.deviation));
      draw(found.average);
      if (!data.levels.length) return;
      const rows = data.levels.map(({ name, rho }) => {
        const level = release(data.scale * rho, state.prior);
        return make("tr", {}, make("th", { scope: "row" }, name), make("td", { class: "n" }, number(rho)),
          make("td", { class: "n", "data-value": level.average }, WRITE.share(level.average)), make("td", { class: "n" }, `${level.ratio.toFixed(2)}\u00d7`));
      });
      const head = SAY.levels;
      panel.replaceChildren(make("table", {}, make("caption", { class: "away" }, phrase("at_prior")),
        make("thead", {}, make("tr", {}, ...head.map((words, k) => make("th", { scope: "col", class: k ? "n" : "" }, words)))), make("tbody", {}, ...rows)));
    }

    function draw(average) {
      const width = clamp(stage.clientWidth, 280, 720), height = 250, [left, right, top, bottom] = [46, 16, 26, 58];
      const px = (rho) => left + (width - left - right) * (Math.log10(rho) + 3) / 4;
      const py = (belief) => height - bottom - (height - top - bottom) * belief;
      const svg = make("svg", { class: "plot", viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": phrase("over_rho", { prior: WRITE.share(state.prior) }) });
      for (const belief of [0, 0.25, 0.5, 0.75, 1])
        svg.append(make("line", { x1: left, x2: width - right, y1: py(belief), y2: py(belief), stroke: "var(--grid)" }), make("text", { x: left - 8, y: py(belief) + 4, "text-anchor": "end" }, `${100 * belief}%`));
      for (const rho of [0.001, 0.01, 0.1, 1, 10])
        svg.append(make("text", { x: px(rho), y: height - bottom + 18, "text-anchor": "middle" }, String(rho)));
      const curve = Array.from({ length: 101 }, (_, k) => 10 ** (k / 25 - 3)).map((rho) => `${px(rho).toFixed(1)},${py(release(data.scale * rho, state.prior).average).toFixed(1)}`);
      svg.append(make("line", { x1: left, x2: width - right, y1: py(state.prior), y2: py(state.prior), stroke: "var(--muted)", "stroke-dasharray": "4 4" }),
        make("polyline", { points: curve.join(" "), fill: "none", stroke: "var(--c1)", "stroke-width": 2.5 }));
      let [low, high] = [-1e9, -1e9];  // the ends of the names in two rows
      for (const { name, rho } of [...data.levels].sort((a, b) => a.rho - b.rho)) {
        const x = px(clamp(rho, 0.001, 10)), wide = 6.6 * name.length, from = clamp(x - wide / 2, 0, width - wide);
        const row = from > low + 8 ? 0 : from > high + 8 ? 1 : 2;
        svg.append(make("line", { x1: x, x2: x, y1: height - bottom - 5, y2: height - bottom + 5, stroke: "var(--ink)", "stroke-width": 2 }));
        if (row === 2) continue;  // its row of the table has the name
        row ? high = from + wide : low = from + wide;
        svg.append(make("text", { class: "tick-name", x: from, y: height - bottom + 34 + 15 * row }, name));
      }
      svg.append(make("text", { class: "tick-name", x: 0, y: 12 }, phrase("after")),
        make("text", { x: width - right, y: py(0) - 8, "text-anchor": "end" }, phrase("rho")),
        make("text", { x: left + 6, y: py(state.prior) - 6 }, phrase("prior")),
        make("circle", { cx: px(state.rho), cy: py(average), r: 6, fill: "var(--c2)", stroke: "var(--paper)", "stroke-width": 2 }));
      stage.replaceChildren(svg);
    }

    for (const name of Object.keys(limits)) {
      slide(name).addEventListener("input", () => { set(name, name === "rho" ? 10 ** slide(name).value : +slide(name).value, "range"); update(); });
      type(name).addEventListener("input", () => { set(name, type(name).valueAsNumber, "number"); update(); });
      set(name, name === "rho" ? +(+type(name).value).toPrecision(3) : +type(name).value);
    }
    root.hidden = false;
    new ResizeObserver(() => update()).observe(stage);
    update();
  }

  // Paper has no clicks: what is folded is opened

  function printing() {
    let opened = [];
    addEventListener("beforeprint", () => { opened = all("details.numbers:not([open])"); for (const one of opened) one.open = true; });
    addEventListener("afterprint", () => { for (const one of opened) one.open = false; });
  }

  theme(document.querySelector(".theme"));
  navigation();
  all(".pictures").forEach(pictures);
  numbers();
  all(".explorer").forEach(explorer);
  all(".noise").forEach(sliders);
  all("details[data-fallback]").forEach((one) => { one.open = false; });
  printing();
})();
