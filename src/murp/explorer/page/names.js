// What runs and entities are called, told apart where names are the same.

const MODELS = { murp: "MuRP", mure: "MuRE" };

// The names that occur more than once.
export function repeated(names) {
  const seen = new Set();
  return new Set(names.filter((name) => seen.size === seen.add(name).size));
}

// Gives every run its `kind` and a `title`, to which the name of its folder belongs where two are of one kind.
export function nameRuns(runs) {
  const folders = repeated(runs.map((run) => run.name));
  for (const run of runs) run.kind = `${MODELS[run.model] ?? run.model} d=${run.dim}`;
  const kinds = repeated(runs.map((run) => run.kind));
  runs.forEach((run, i) => {
    run.called = folders.has(run.name) ? `${run.name} (${i + 1})` : run.name;
    run.title = kinds.has(run.kind) ? `${run.kind} ${run.called}` : run.kind;
  });
}
