// Where everything stands in the picture. Pure: from a fabric and a size, boxes and lines in pixels of that size.
//
// Planes never meet, so each has a panel of its own: T1s above, T0s below them, NIC ports at the bottom, every T0 over
// the middle of its ports. Below the panels stand the NICs, one tile each. What it all looks like is the map's.

const GAP = 10;
const HEAD = 28;
const SIDE = 12;
const PANEL_SHAPE = 1.35; // width over height that a panel is read best in
const TILE_WIDEST = 210;
const TILE_NARROWEST = 38;
const NODE_LARGEST = 10;
const NODE_SMALLEST = 0.9;

/**
 * The scene of `fabric` ({planes, nics, switches, links} as `fabricOf` makes it) in `width` by `height` pixels.
 *
 * `parts` is a Map of everything that can be chosen, by id: {id, kind, plane, x, y, w, h} with x and y the middle;
 * links have {x1, y1, x2, y2, a, b} beside it, from the lower end to the upper. `lanes` is the distance of a direction
 * from the middle of its link, `thick` by how much lines are thinner than usual, so that many can be told apart.
 */
export function layOut(fabric, width, height) {
  const parts = new Map();
  const tiles = tileGrid(fabric.nics.length, width, height);
  const grid = panelGrid(fabric.planes, width, height - tiles.height - GAP);
  let dense = 0;
  for (let plane = 0; plane < fabric.planes; plane += 1) {
    const box = panelBox(grid, plane);
    parts.set(planeId(plane), {
      id: planeId(plane),
      kind: "plane",
      plane,
      panel: box,
      ...middle(box.x, box.y, box.w, HEAD),
    });
    dense = Math.max(dense, placePlane(parts, fabric, plane, box));
  }
  placeTiles(parts, fabric, tiles, height);
  return { width, height, planes: fabric.planes, columns: grid.columns, parts, ...pens(dense, grid.w) };
}

/** The id of a plane as a part; a NIC's port is `h003:5`, everything else goes by its own name. */
export const planeId = plane => `plane ${plane}`;
export const portId = (nic, plane) => `${nic}:${plane}`;

function middle(x, y, w, h) {
  return { x: x + w / 2, y: y + h / 2, w, h };
}

function pens(links, width) {
  const room = width / Math.max(links, 1); // of a panel for each of its links
  const thick = Math.max(0.3, Math.min(1, room / 3));
  return { lanes: 0.4 + 1.4 * thick, thick };
}

/** How many columns of panels leave each of them the most of the shape that is read best. */
export function panelGrid(planes, width, height) {
  let best = null;
  for (let columns = 1; columns <= planes; columns += 1) {
    const rows = Math.ceil(planes / columns);
    const w = (width - GAP * (columns - 1)) / columns;
    const h = (height - GAP * (rows - 1)) / rows;
    const size = Math.min(w / PANEL_SHAPE, h) - (columns * rows - planes) * 0.01;
    if (best === null || size > best.size) best = { columns, rows, w, h, size };
  }
  return best;
}

function panelBox(grid, plane) {
  const column = plane % grid.columns;
  const row = Math.floor(plane / grid.columns);
  return { x: column * (grid.w + GAP), y: row * (grid.h + GAP), w: grid.w, h: grid.h };
}

function placePlane(parts, fabric, plane, box) {
  const inside = { x: box.x + SIDE, w: box.w - 2 * SIDE };
  const t0s = fabric.switches.filter(one => one.plane === plane && one.tier === "t0");
  const t1s = fabric.switches.filter(one => one.plane === plane && one.tier === "t1");
  const size = Math.min(nodeSize(inside.w, t0s.length), nodeSize(inside.w, t1s.length), box.h / 14);
  const portSize = Math.min(nodeSize(inside.w, fabric.nics.length), 6);
  const bottom = box.y + box.h - portSize - 7;
  const top = box.y + HEAD + size + 7;
  const between = top + (bottom - top) * 0.64;
  const portX = new Map(
    fabric.nics.map((nic, place) => [nic.id, inside.x + (inside.w * (place + 0.5)) / fabric.nics.length]),
  );
  for (const nic of fabric.nics) {
    const id = portId(nic.id, plane);
    parts.set(id, {
      id,
      kind: "port",
      plane,
      nic: nic.id,
      x: portX.get(nic.id),
      y: bottom,
      w: 2 * portSize,
      h: 2 * portSize,
    });
  }
  const links = fabric.links.filter(link => link.plane === plane);
  for (const [place, t0] of t0s.entries()) {
    const below = links.filter(link => link.b === t0.id).map(link => portX.get(link.a));
    const x = below.length
      ? (Math.min(...below) + Math.max(...below)) / 2
      : inside.x + (inside.w * (place + 0.5)) / t0s.length;
    parts.set(t0.id, {
      id: t0.id,
      kind: "switch",
      tier: "t0",
      plane,
      index: t0.index,
      x,
      y: between,
      w: 2 * size,
      h: 2 * size,
    });
  }
  for (const [place, t1] of t1s.entries()) {
    const x = inside.x + (inside.w * (place + 0.5)) / t1s.length;
    parts.set(t1.id, {
      id: t1.id,
      kind: "switch",
      tier: "t1",
      plane,
      index: t1.index,
      x,
      y: top,
      w: 2 * size,
      h: 2 * size,
    });
  }
  for (const link of links) placeLink(parts, link);
  return links.length;
}

function nodeSize(width, nodes) {
  return Math.max(NODE_SMALLEST, Math.min(NODE_LARGEST, width / Math.max(nodes, 1) / 2.7));
}

function placeLink(parts, link) {
  const lower = parts.get(link.a) ?? parts.get(portId(link.a, link.plane));
  const upper = parts.get(link.b);
  const [x1, y1] = [lower.x, lower.y - lower.h / 2];
  const [x2, y2] = [upper.x, upper.y + upper.h / 2];
  parts.set(link.id, {
    id: link.id,
    kind: "link",
    plane: link.plane,
    a: lower.id,
    b: upper.id,
    x1,
    y1,
    x2,
    y2,
    x: (x1 + x2) / 2,
    y: (y1 + y2) / 2,
    w: Math.abs(x2 - x1),
    h: Math.abs(y2 - y1),
  });
}

function tileGrid(nics, width, height) {
  const w = Math.min(TILE_WIDEST, Math.max(TILE_NARROWEST, width / Math.max(nics, 1) - 4));
  const columns = Math.max(1, Math.floor((width + 4) / (w + 4)));
  const rows = Math.ceil(nics / columns);
  const h = w >= 90 ? 44 : rows <= 2 ? 32 : Math.min(28, Math.max(18, (height * 0.28) / rows - 4));
  return { columns: Math.min(columns, nics), rows, w, h, height: rows * (h + 4) - 4 };
}

function placeTiles(parts, fabric, tiles, height) {
  const top = height - tiles.height;
  for (const [place, nic] of fabric.nics.entries()) {
    const x = (place % tiles.columns) * (tiles.w + 4);
    const y = top + Math.floor(place / tiles.columns) * (tiles.h + 4);
    parts.set(nic.id, { id: nic.id, kind: "nic", plane: null, ...middle(x, y, tiles.w, tiles.h) });
  }
}

/** The part at a point: a node, a port, a NIC or a plane's head where the point is on it, else the nearest link. */
export function partAt(scene, x, y, reach = 7) {
  let nearest = null;
  let distance = reach;
  for (const part of scene.parts.values()) {
    if (part.kind === "link") {
      const away = distanceTo(part, x, y);
      if (away < distance) [nearest, distance] = [part, away];
    } else if (Math.abs(x - part.x) <= part.w / 2 + 1.5 && Math.abs(y - part.y) <= part.h / 2 + 1.5) {
      return part;
    }
  }
  return nearest;
}

function distanceTo(line, x, y) {
  const [dx, dy] = [line.x2 - line.x1, line.y2 - line.y1];
  const along = Math.max(0, Math.min(1, ((x - line.x1) * dx + (y - line.y1) * dy) / (dx * dx + dy * dy || 1)));
  return Math.hypot(x - line.x1 - along * dx, y - line.y1 - along * dy);
}

/** The two directions of a link as lines beside its middle: {up, down}, each [x1, y1, x2, y2]. */
export function laneLines(link, lanes) {
  const [dx, dy] = [link.x2 - link.x1, link.y2 - link.y1];
  const length = Math.hypot(dx, dy) || 1;
  const [sx, sy] = [(-dy / length) * lanes, (dx / length) * lanes];
  return {
    up: [link.x1 - sx, link.y1 - sy, link.x2 - sx, link.y2 - sy],
    down: [link.x1 + sx, link.y1 + sy, link.x2 + sx, link.y2 + sy],
  };
}
