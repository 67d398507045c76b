// What goes to the server and comes from it: see orchestrator/web/messages.py. Owns the token, the stream and its
// return after a loss; what the answers mean is for others.

const TOKEN_HEADER = "X-Mrcfabric-Token";
const TOKEN_KEY = "mrcfabric.token";
const SILENCE_MS = 6000; // the server speaks at least every second
const RETURN_MS = [250, 500, 1000, 2000];

let ours = ""; // the token, as far as this page has one

/** An answer that is a refusal, with words for the reader. */
export class Refused extends Error {}

/**
 * The token that came in the address, kept for this tab so that a reload has it; the address is relieved of it, so that
 * it is not shown, copied or kept in the browser's history.
 */
export function takeToken() {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given) {
    sessionStorage.setItem(TOKEN_KEY, given);
    history.replaceState(null, "", location.pathname + location.search);
  }
  ours = given ?? sessionStorage.getItem(TOKEN_KEY) ?? "";
  return ours;
}

/** A path with the token, for what has no headers: a stream, a link. */
export const withToken = path => (ours ? `${path}?token=${encodeURIComponent(ours)}` : path);

/** GET a path; raises Refused. */
export const read = path => ask("GET", path, ours ? { [TOKEN_HEADER]: ours } : {});

/** POST or DELETE a path with the token; raises Refused. */
export const act = (method, path, token, body) => ask(method, path, { [TOKEN_HEADER]: token }, body);

async function ask(method, path, headers = {}, body = undefined) {
  if (body !== undefined) headers = { ...headers, "Content-Type": "application/json" };
  let answer;
  try {
    answer = await fetch(path, {
      method,
      headers,
      cache: "no-store",
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch {
    throw new Refused("the server does not answer");
  }
  const told = await answer.json().catch(() => ({ error: `the server answered ${answer.status}` }));
  if (!answer.ok) throw new Refused(told?.error ?? `the server answered ${answer.status}`);
  return told;
}

/** The stream, for as long as the page is open. `hear(message)` gets each message, `state(word)` live or lost. */
export class Stream {
  constructor(hear, state) {
    this._hear = hear;
    this._state = state;
    this._watched = [];
    this._tries = 0;
    this._open();
  }

  /** Ask for the EVs of these QPs, [{nic, qpn}], from now on and after every return. */
  watch(qps) {
    this._watched = qps;
    if (this._socket.readyState === WebSocket.OPEN) this._socket.send(JSON.stringify({ watch: qps }));
  }

  _open() {
    const socket = new WebSocket(new URL(withToken("api/stream"), location.href.replace(/^http/, "ws")));
    this._socket = socket;
    socket.onopen = () => {
      if (this._watched.length) this.watch(this._watched);
    };
    socket.onmessage = event => {
      this._tries = 0;
      this._listen();
      this._state("live");
      this._hear(JSON.parse(event.data));
    };
    socket.onclose = () => this._lost(socket);
    this._listen();
  }

  _listen() {
    clearTimeout(this._silence);
    this._silence = setTimeout(() => this._lost(this._socket), SILENCE_MS);
  }

  _lost(socket) {
    if (socket !== this._socket) return;
    this._socket = { readyState: WebSocket.CLOSED };
    clearTimeout(this._silence);
    socket.onmessage = null;
    socket.close();
    this._state("lost");
    setTimeout(() => this._open(), RETURN_MS[Math.min(this._tries, RETURN_MS.length - 1)]);
    this._tries += 1;
  }
}
