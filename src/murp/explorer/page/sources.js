// Where the page's data comes from: the server it was loaded from, or the data stored in an exported page.

const TYPES = { float32: Float32Array, uint32: Uint32Array, uint8: Uint8Array };

// An array of the interface: little-endian numbers in base64.
export function unpack(packed) {
  const text = atob(packed.base64);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i += 1) bytes[i] = text.charCodeAt(i);
  return new TYPES[packed.type](bytes.buffer);
}

// An answer that is none. closest: what may have been meant
export class Refusal extends Error {
  constructor(message, status, closest = []) {
    super(message);
    Object.assign(this, { status, closest });
  }
}

class Server {
  constructor() {
    this.kept = new Map();
  }

  async get(path, parameters = {}) {
    const given = Object.entries(parameters).filter(([, value]) => value !== null && value !== undefined);
    const query = new URLSearchParams(given).toString();
    const response = await fetch(query ? `${path}?${query}` : path).catch(() => {
      throw new Error("The explorer does not answer. Is `murp explore` still running?");
    });
    const answer = await response.json().catch(() => {
      throw new Error(`The explorer sent no proper answer (status ${response.status}). Try again; its terminal may tell more.`);
    });
    if (!response.ok) throw new Refusal(`${answer.error} ${answer.advice}`, response.status, answer.closest);
    return answer;
  }

  // As get, remembering the last answers, those on their way included.
  once(path, parameters = {}) {
    const key = path + JSON.stringify(parameters);
    if (!this.kept.has(key)) {
      if (this.kept.size > 300) this.kept.clear();
      const answer = this.get(path, parameters);
      this.kept.set(key, answer);
      answer.catch(() => this.kept.delete(key));
    }
    return this.kept.get(key);
  }

  // The last relation's edges, unpacked: every view of the map asks for them.
  async edges(relation) {
    if (this.relation !== relation) {
      const answer = await this.once("/api/edges", { relation });
      this.relation = relation;
      this.unpacked = unpack(answer.edges);
    }
    return this.unpacked;
  }

  about = () => this.get("/api/run");
  entities = () => this.get("/api/entities");
  search = async (q, k) => (await this.get("/api/search", { q, k })).results;
  entity = (entity, run) => this.once("/api/entity", { entity, run });
  project = (centre, run) => this.get("/api/project", { centre: centre || null, run, k: 20, points: true });
  predict = (question, run) => this.once("/api/predict", { ...question, run, k: 50 });
  question = (question, projection, run) => this.get("/api/question", { ...question, projection, run });
  differences = () => this.once("/api/differences");
  metrics = (run) => this.once("/api/metrics", { run });
  column = (name, run) => this.once("/api/column", { name, run });
  tree = (run) => this.once("/api/tree", { run });
  why = (question, answer, run) => this.once("/api/why", { ...question, answer, run });
}

const SPLITS = ["train", "valid", "test"];
const KNOWN_FACTS = 12; // facts shown of one relation

// An exported page knows one picture and no model: names, glosses, norms, biases, and facts, known and likely.
class Stored {
  constructor(data) {
    this.data = data;
    this.lowered = data.entities.names.map((name) => name.toLowerCase());
    this.norms = unpack(data.norms);
    this.biases = Object.entries(data.biases).map(([role, values]) => [role, unpack(values)]);
    this.place = new Map(data.entities.ids.map((id, i) => [id, i]));
    this.facts = data.about.relations.map((relation) => ({
      relation, edges: unpack(data.edges[relation.id]), splits: unpack(data.splits[relation.id]),
    }));
    this.likely = { rows: unpack(data.likely.rows), others: unpack(data.likely.others), probabilities: unpack(data.likely.probabilities), each: data.likely.rows.shape[1] };
    this.parents = unpack(data.tree.parents);
  }

  about = async () => this.data.about;
  entities = async () => this.data.entities;
  project = async () => this.data.project;
  edges = async (relation) => unpack(this.data.edges[relation]);
  column = async (name) => this.data.columns[name];
  tree = async () => this.data.tree;

  reference = (i) => ({ id: this.data.entities.ids[i], name: this.data.entities.names[i] });

  // The known facts of point i, relation by relation.
  knownFacts(i) {
    const groups = [];
    for (const { relation, edges, splits } of this.facts) {
      for (const [side, own] of [["tail", 0], ["head", 1]]) {
        const facts = [];
        for (let e = 0; e < splits.length; e += 1) {
          if (edges[2 * e + own] === i) facts.push({ ...this.reference(edges[2 * e + 1 - own]), known: SPLITS[splits[e]] });
        }
        if (facts.length) groups.push({ relation, side, total: facts.length, facts: facts.slice(0, KNOWN_FACTS) });
      }
    }
    return groups.sort((a, b) => b.total - a.total);
  }

  // Its likely new ones.
  likelyOf(i) {
    const { rows, others, probabilities, each } = this.likely;
    const { relations } = this.data.about;
    const found = [];
    for (let n = each * i; n < Math.min(each * (i + 1), rows.length); n += 1) {
      if (rows[n] >= 2 * relations.length) continue;
      const side = rows[n] < relations.length ? "tail" : "head";
      found.push({ ...this.reference(others[n]), relation: relations[rows[n] % relations.length], side, probability: probabilities[n], calibrated: this.data.likely.calibrated ? probabilities[n] : null });
    }
    return found;
  }

  path(i) {
    const path = [i];
    while (this.parents[path.at(-1)] !== path.at(-1)) path.push(this.parents[path.at(-1)]);
    return path.map(this.reference);
  }

  async entity(id) {
    const i = this.place.get(id);
    if (i === undefined) throw new Refusal(`There is no entity ${id} in this page.`, 404);
    const { names, glosses } = this.data.entities;
    const biases = Object.fromEntries(this.biases.map(([role, values]) => [role, values[i]]));
    const facts = { known_facts: this.knownFacts(i), likely: this.likelyOf(i), path: this.path(i) };
    return { id, name: names[i], gloss: glosses[i], norm: this.norms[i], biases, neighbours: [], ...facts };
  }

  async search(text, k) {
    const wanted = text.trim().toLowerCase();
    const { ids, names, glosses } = this.data.entities;
    const found = [];
    for (let i = 0; i < ids.length; i += 1) {
      const at = this.lowered[i].indexOf(wanted);
      const isNamed = at >= 0 || ids[i].toLowerCase().includes(wanted);
      if (!isNamed && !glosses[i]?.toLowerCase().includes(wanted)) continue;
      const rank = this.lowered[i] === wanted ? 0 : at === 0 ? 1 : isNamed ? 2 : 3;
      found.push([rank, names[i].length, i]);
    }
    found.sort((a, b) => a[0] - b[0] || a[1] - b[1] || a[2] - b[2]);
    return found.slice(0, k).map(([, , i]) => ({ id: ids[i], name: names[i], gloss: glosses[i] }));
  }
}

export function openSource() {
  const data = document.getElementById("data");
  return data ? new Stored(JSON.parse(data.textContent)) : new Server();
}

export const isStored = () => document.getElementById("data") !== null;

// Where the page of a training has its data from.
export function openTraining() {
  const data = document.getElementById("data");
  if (!data) {
    const server = new Server();
    return {
      isStored: false,
      about: () => server.get("/api/training"),
      points: () => server.once("/api/training/points"),
      picture: (epoch) => server.get("/api/training/picture", { epoch }),
      embedding: (dim) => server.once("/api/training/embedding", { dim }),
    };
  }
  const stored = JSON.parse(data.textContent);
  return { isStored: true, about: async () => stored.training, points: async () => stored.points, picture: async (epoch) => stored.pictures[epoch], embedding: async (dim) => stored.embeddings[dim] };
}
